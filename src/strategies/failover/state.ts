import type { CycleFacts, JsonValue } from '../../contract/index.ts'
import { stateRejectedError } from '../kit/strategy-errors.ts'
import { INITIAL_HEALTH, type ProviderHealth } from './circuit-breaker.ts'
import { findCursorStateFault, isCount, isRecord, type CursorMap, type CursorState } from './cursors.ts'
import { createSession, type ImportSession } from './import-session.ts'

/** The whole state, as JSON: the cursor of every operation, the health of every provider, the totals of this import. */
export interface FailoverState {
  readonly cursors: CursorMap
  readonly providers: Readonly<Record<string, ProviderHealth>>
  readonly session: ImportSession
  /** The repair state of each operation. */
  readonly kept?: Readonly<Record<string, JsonValue>>
}

/**
 * Prepares the state for a cycle: a new cycle reopens every operation, a resumed one only continues the unfinished
 * ones.
 */
export function loadState(value: unknown, cycle: CycleFacts): FailoverState {
  if (value === undefined) return { cursors: {}, providers: {}, session: createSession(cycle.id, cycle.startedAt) }
  const state = validateState(value)
  if (state.session.cycle === cycle.id) return state
  const cursors = Object.fromEntries(
    Object.entries(state.cursors).map(([operation, cursor]) => [operation, reopenCursor(cursor)]),
  )
  return { ...state, cursors, session: createSession(cycle.id, cycle.startedAt) }
}

export function getHealth(state: FailoverState, provider: string): ProviderHealth {
  return state.providers[provider] ?? INITIAL_HEALTH
}

function reopenCursor(cursor: CursorState): CursorState {
  return cursor.metadata?.isComplete === true
    ? { ...cursor, metadata: { ...cursor.metadata, isComplete: false } }
    : cursor
}

function validateState(value: unknown): FailoverState {
  if (!isRecord(value) || !isRecord(value.cursors) || !isRecord(value.providers))
    throw stateRejectedError('failover', '`cursors` or `providers` is not a map')
  for (const cursor of Object.values(value.cursors)) {
    const fault = findCursorStateFault(cursor)
    if (fault !== null) throw stateRejectedError('failover', `a cursor ${fault}`)
  }
  const isHealthy = Object.values(value.providers).every(
    (health) =>
      isRecord(health) &&
      isCount(health.failures) &&
      typeof health.requests === 'number' &&
      typeof health.failed === 'number',
  )
  if (!isHealthy) throw stateRejectedError('failover', '`providers` has an invalid entry')
  if (!isRecord(value.session) || !isCount(value.session.cycle) || !isRecord(value.session.operations))
    throw stateRejectedError('failover', '`session` is invalid')
  return value as unknown as FailoverState
}
