import { ERROR_CODES, type Checkpoint, type Remedy } from '../contract/index.ts'

/**
 *   INITIALIZING ──success──▶ HEALTHY ──failure──▶ WARNING ──third failure, or one that waits for a person──▶ ERROR
 *                                ▲                    │                                                        │
 *                                └──────success───────┴────────────────success, resume─────────────────────────┘
 *   PAUSED covers all of them until somebody resumes.
 */
export type Health = 'HEALTHY' | 'INITIALIZING' | 'WARNING' | 'ERROR' | 'PAUSED'

export type HealthFacts = Pick<Checkpoint, 'paused' | 'failures' | 'lastError' | 'lastSuccessAt'>

/** The word for where a sync stands. The first cycle counts as initializing while it waits and while it runs. */
export function healthOf({ paused, failures, lastError, lastSuccessAt }: HealthFacts): Health {
  if (paused) return 'PAUSED'
  if (failures === 0) return lastSuccessAt === null ? 'INITIALIZING' : 'HEALTHY'
  if (failures >= FAILURES_OF_AN_ERROR) return 'ERROR'
  return lastError !== null && AFTER_FAILURE[ERROR_CODES[lastError.code].remedy].needsPerson ? 'ERROR' : 'WARNING'
}

const FAILURES_OF_AN_ERROR = 3

/**
 * What a failed cycle means for the ones after it. Only refused credentials stop the schedule: asking again with them
 * may lock the account. Everything else may heal by itself, or by a hand on the other side, and is worth a try a while later.
 */
export const AFTER_FAILURE: Readonly<Record<Remedy, { readonly needsPerson: boolean; readonly stopsSchedule: boolean }>> = {
  retry: { needsPerson: false, stopsSchedule: false },
  wait: { needsPerson: false, stopsSchedule: false },
  bug: { needsPerson: false, stopsSchedule: false },
  restart: { needsPerson: true, stopsSchedule: false },
  fix: { needsPerson: true, stopsSchedule: false },
  reauth: { needsPerson: true, stopsSchedule: true },
}
