import { SyncError } from '../contract/index.ts'

/** Versions of the credentials restart with a new connection, so they do not show that it is another one. */
export function createReplacedError(name: string): SyncError {
  return new SyncError('CONNECTION_CHANGED', `The connection ${name} was removed and added again meanwhile.`)
}
