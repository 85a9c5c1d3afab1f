import { parentPort, workerData } from 'node:worker_threads'
import { isSyncError, SyncError } from '../../contract/index.ts'
import { Connection, findSession, openSession, type ConnectionOptions, type TenantSession } from './connection.ts'
import { callStoreMethod, type StoreMethod } from './store-methods.ts'
import type { MigrationProgress } from './migrate-log.ts'
import { unpackCommit, type PackedCommit } from './packed-commit.ts'

/** The thread that owns the file. It answers calls in order; SQLite has one writer anyway. */

export interface ThreadCall {
  readonly id: number
  readonly tenant: string
  readonly method: StoreMethod | 'close'
  readonly args: readonly unknown[]
}

export type ThreadReply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: { readonly code: string; readonly message: string } }
  | { readonly migration: MigrationProgress }

const port = parentPort
if (port === null) throw new Error('This module runs only inside a worker thread.')
const connection = attempt(
  () =>
    new Connection({
      ...(workerData as ConnectionOptions),
      onMigration: (migration) => port.postMessage({ migration } satisfies ThreadReply),
    }),
)
const sessions = new Map<string, TenantSession>()

port.on('message', ({ id, tenant, method, args }: ThreadCall) => {
  const answer = attempt(() => {
    if ('error' in connection) throw connection.error
    if (method === 'close') return connection.value.close()
    let session = sessions.get(tenant)
    // Reading first: a thread that only reads does not wait for writers.
    session ??= findSession(connection.value, tenant) ?? openSession(connection.value, tenant)
    sessions.set(tenant, session)
    return callStoreMethod(session, method, method === 'commit' ? [unpackCommit(args[0] as PackedCommit)] : args)
  })
  port.postMessage('error' in answer ? { id, error: serializeError(answer.error) } : { id, value: answer.value })
  if (method === 'close') port.close()
})

function attempt<T>(body: () => T): { value: T } | { error: unknown } {
  try {
    return { value: body() }
  } catch (error) {
    return { error }
  }
}

/** An error's class is lost between threads; its code is not. */
function serializeError(error: unknown): { code: string; message: string } {
  const known = isSyncError(error)
    ? error
    : new SyncError('STORE_FAILED', error instanceof Error ? error.message : String(error))
  return { code: known.code, message: known.message }
}
