import type { CycleFacts, JsonValue } from '../../contract/index.ts'
import { stateRejectedError } from '../kit/strategy-errors.ts'
import { INITIAL_HEALTH, type ProviderHealth } from './circuit-breaker.ts'
import { findCursorStateFault, isCount, isRecord, type CursorMap, type CursorState } from './cursors.ts'
import { createSession, type ImportSession } from './import-session.ts'

/** All of it, and all of it JSON: where every operation stands, how every provider does, what this import has brought. */
export interface FailoverState {
  readonly cursors: CursorMap
  readonly providers: Readonly<Record<string, ProviderHealth>>
  readonly session: ImportSession
  /** What the source keeps for itself, by operation. */
  readonly kept?: Readonly<Record<string, JsonValue>>
}

/** As the cycle takes it up: a new one reads every operation on, a resumed one only those that had not ended. */
export function loadState(value: unknown, cycle: CycleFacts): FailoverState {
  if (value === undefined) return { cursors: {}, providers: {}, session: createSession(cycle.id, cycle.startedAt) }
  const state = validateState(value)
  if (state.session.cycle === cycle.id) return state
  const cursors = Object.fromEntries(Object.entries(state.cursors).map(([operation, cursor]) => [operation, reopenCursor(cursor)]))
  return { ...state, cursors, session: createSession(cycle.id, cycle.startedAt) }
}

export function getHealth(state: FailoverState, provider: string): ProviderHealth {
  return state.providers[provider] ?? INITIAL_HEALTH
}

function reopenCursor(cursor: CursorState): CursorState {
  return cursor.metadata?.isComplete === true ? { ...cursor, metadata: { ...cursor.metadata, isComplete: false } } : cursor
}

function validateState(value: unknown): FailoverState {
  if (!isRecord(value) || !isRecord(value.cursors) || !isRecord(value.providers)) throw stateRejectedError('failover', '`cursors` or `providers` is not a map')
  for (const cursor of Object.values(value.cursors)) {
    const fault = findCursorStateFault(cursor)
    if (fault !== null) throw stateRejectedError('failover', `a cursor ${fault}`)
  }
  const isHealthy = Object.values(value.providers).every((health) => isRecord(health) && isCount(health.failures) && typeof health.requests === 'number' && typeof health.failed === 'number')
  if (!isHealthy) throw stateRejectedError('failover', 'what it knows of a provider is not that')
  if (!isRecord(value.session) || !isCount(value.session.cycle) || !isRecord(value.session.operations)) throw stateRejectedError('failover', '`session` is none')
  return value as unknown as FailoverState
}
