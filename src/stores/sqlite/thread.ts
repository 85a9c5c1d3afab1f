import { parentPort, workerData } from 'node:worker_threads'
import { isSyncError, SyncError } from '../../contract/index.ts'
import { Connection, openSession, type ConnectionOptions, type Session } from './connection.ts'
import { callMethod, type LedgerMethod } from './ledger.ts'
import type { MigrationProgress } from './migrate-log.ts'
import { unpackCommit, type PackedCommit } from './packing.ts'

/** The thread that owns the file. It answers calls in the order they come; SQLite has one writer anyway. */

export interface Call {
  readonly id: number
  readonly tenant: string
  readonly method: LedgerMethod | 'close'
  readonly args: readonly unknown[]
}

export type Answer =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: { readonly code: string; readonly message: string } }
  | { readonly migration: MigrationProgress }

const port = parentPort
if (port === null) throw new Error('This file is the inside of a worker thread.')
const connection = attempt(() => new Connection({ ...(workerData as ConnectionOptions), onMigration: (migration) => port.postMessage({ migration } satisfies Answer) }))
const sessions = new Map<string, Session>()

port.on('message', ({ id, tenant, method, args }: Call) => {
  const answer = attempt(() => {
    if ('error' in connection) throw connection.error
    if (method === 'close') return connection.value.close()
    let session = sessions.get(tenant)
    if (session === undefined) sessions.set(tenant, (session = openSession(connection.value, tenant)))
    return callMethod(session, method, method === 'commit' ? [unpackCommit(args[0] as PackedCommit)] : args)
  })
  port.postMessage('error' in answer ? { id, error: describe(answer.error) } : { id, value: answer.value })
  if (method === 'close') port.close()
})

function attempt<T>(body: () => T): { value: T } | { error: unknown } {
  try {
    return { value: body() }
  } catch (error) {
    return { error }
  }
}

/** An error's class does not survive the way between threads; its code does. */
function describe(error: unknown): { code: string; message: string } {
  const known = isSyncError(error) ? error : new SyncError('STORE_FAILED', error instanceof Error ? error.message : String(error))
  return { code: known.code, message: known.message }
}
