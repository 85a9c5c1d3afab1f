import { SyncError } from '../../contract/index.ts'

/** Refuses what a confined statement may not use; see SelectOptions.only. */
export function createConfinedError(what: string): SyncError {
  return new SyncError(
    'ARGUMENT_INVALID',
    `The query cannot use ${what}. It can read the tables of databases that you may read, and their histories, with functions that only compute.`,
  )
}
