import type { CycleFacts, JsonValue } from '../../contract/index.ts'
import { unreadable } from '../kit/refusals.ts'
import { UNTRIED, type Health } from './breaker.ts'
import { faultOfState, isCount, isRecord, type CursorMap, type CursorState } from './cursors.ts'
import { newSession, type Session } from './session.ts'

/** All of it, and all of it JSON: where every operation stands, how every provider does, what this import has brought. */
export interface FailoverState {
  readonly cursors: CursorMap
  readonly providers: Readonly<Record<string, Health>>
  readonly session: Session
  /** What the source keeps for itself, by operation. */
  readonly kept?: Readonly<Record<string, JsonValue>>
}

/** As the cycle takes it up: a new one reads every operation on, a resumed one only those that had not ended. */
export function takeUp(value: unknown, cycle: CycleFacts): FailoverState {
  if (value === undefined) return { cursors: {}, providers: {}, session: newSession(cycle.id, cycle.startedAt) }
  const state = checked(value)
  if (state.session.cycle === cycle.id) return state
  const cursors = Object.fromEntries(Object.entries(state.cursors).map(([operation, cursor]) => [operation, reopened(cursor)]))
  return { ...state, cursors, session: newSession(cycle.id, cycle.startedAt) }
}

export function healthOf(state: FailoverState, provider: string): Health {
  return state.providers[provider] ?? UNTRIED
}

function reopened(cursor: CursorState): CursorState {
  return cursor.metadata?.isComplete === true ? { ...cursor, metadata: { ...cursor.metadata, isComplete: false } } : cursor
}

function checked(value: unknown): FailoverState {
  if (!isRecord(value) || !isRecord(value.cursors) || !isRecord(value.providers)) throw unreadable('failover', '`cursors` or `providers` is not a map')
  for (const cursor of Object.values(value.cursors)) {
    const fault = faultOfState(cursor)
    if (fault !== null) throw unreadable('failover', `a cursor ${fault}`)
  }
  const isHealthy = Object.values(value.providers).every((health) => isRecord(health) && isCount(health.failures) && typeof health.requests === 'number' && typeof health.failed === 'number')
  if (!isHealthy) throw unreadable('failover', 'what it knows of a provider is not that')
  if (!isRecord(value.session) || !isCount(value.session.cycle) || !isRecord(value.session.operations)) throw unreadable('failover', '`session` is none')
  return value as unknown as FailoverState
}
