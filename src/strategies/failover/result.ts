import { isSyncError, SyncError } from '../../contract/index.ts'

/** A result with an expected failure, returned instead of thrown. */
export type FailoverResult<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly error: SyncError }

export function ok<Value>(value: Value): FailoverResult<Value> {
  return { ok: true, value }
}

/** Converts anything thrown to a SyncError; other exceptions are defects of the connector. */
export function err(thrown: unknown): { readonly ok: false; readonly error: SyncError } {
  if (thrown instanceof SyncError) return { ok: false, error: thrown }
  if (isSyncError(thrown))
    return {
      ok: false,
      error: new SyncError(thrown.code, thrown.message, {
        cause: thrown,
        ...(thrown.retryAfterMs !== undefined && { retryAfterMs: thrown.retryAfterMs }),
      }),
    }
  const message =
    thrown instanceof Error && thrown.message !== '' ? thrown.message : `The connector threw ${String(thrown)}.`
  return { ok: false, error: new SyncError('CONNECTOR_FAILED', message, { cause: thrown }) }
}
