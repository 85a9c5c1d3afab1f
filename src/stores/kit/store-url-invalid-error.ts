import { SyncError } from '../../contract/index.ts'
import { maskUrl } from '../../redaction/mask-url.ts'

export function createStoreUrlInvalidError(url: string, what: string): SyncError {
  return new SyncError('STORE_URL_INVALID', `The store URL ${JSON.stringify(maskUrl(url))} ${what}.`)
}
