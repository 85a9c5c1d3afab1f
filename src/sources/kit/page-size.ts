import { SyncError } from '../../contract/index.ts'

/** Throws SYNC_INVALID at declaration: a vendor rejects a larger page, or truncates it silently. */
export function checkPageSize(vendor: string, size: number, max: number, option = 'limit'): void {
  if (Number.isSafeInteger(size) && size >= 1 && size <= max) return
  throw new SyncError('SYNC_INVALID', `${vendor} returns 1 to ${max} records a page; \`${option}\` is ${size}.`)
}
