import { SyncError, type Mode, type SyncContext } from '../../contract/index.ts'

/** For an invalid response. The request is retried a few times; then the cycle fails and keeps its state. */
export function sourceInvalidError(message: string): SyncError {
  return new SyncError('SOURCE_INVALID', message)
}

/**
 * For a state that does not belong to this strategy: edited by hand, or written by another version of the connector.
 */
export function stateRejectedError(strategy: string, what: string): SyncError {
  return new SyncError('CURSOR_REJECTED', `The stored state is not a ${strategy} state: ${what}.`)
}

export function requireMode(strategy: string, mode: Mode, { cycle }: SyncContext, why: string): void {
  if (cycle.mode !== mode) throw new SyncError('SYNC_INVALID', `${strategy} is for \`mode: '${mode}'\` only: ${why}.`)
}

/** Options are checked when the strategy is created, so a mistake is reported before the first cycle. */
export function requireNumber(strategy: string, name: string, value: unknown, min: number): void {
  if (typeof value === 'number' && value >= min && !Number.isNaN(value)) return
  throw new SyncError(
    'SYNC_INVALID',
    `${strategy}: \`${name}\` is ${typeof value === 'number' ? value : `a ${typeof value}`}; it must be a number of at least ${min}.`,
  )
}
