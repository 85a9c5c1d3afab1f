import { SyncError } from '../../contract/index.ts'

/** Throws SYNC_INVALID where the source is declared: a vendor refuses a larger page, or cuts it without a word. */
export function checkPageSize(vendor: string, size: number, max: number, option = 'limit'): void {
  if (Number.isSafeInteger(size) && size >= 1 && size <= max) return
  throw new SyncError('SYNC_INVALID', `${vendor} returns 1 to ${max} records a page; \`${option}\` is ${size}.`)
}
