import { SyncError } from '../../contract/index.ts'
import { maskUrl } from '../../redaction/mask-url.ts'

/** Creates the error of a store URL that cannot be used, with its password masked. */
export function createStoreUrlInvalidError(url: string, what: string): SyncError {
  return new SyncError('STORE_URL_INVALID', `The store URL ${JSON.stringify(maskUrl(url))} ${what}.`)
}
