import { ERROR_CODES, type Checkpoint, type Remedy } from '../contract/index.ts'
import { isBackfillNeeded, type PairBackfill } from './pair-backfill.ts'

/**
 *   INITIALIZING ──success──▶ HEALTHY ──failure──▶ WARNING ──third failure, or one that waits for a person──▶ ERROR
 *                                ▲                    │                                                        │
 *                                └──────success───────┴────────────────success, resume─────────────────────────┘
 *   PAUSED covers all of them until somebody resumes.
 *
 * A pair is INITIALIZING until its first backfill is complete. While one is ordered, and as soon as the source has
 * forgotten what a sync has to read, it is WARNING at best: a sync that may lack changes is never HEALTHY.
 */
export type Health = 'HEALTHY' | 'INITIALIZING' | 'WARNING' | 'ERROR' | 'PAUSED'

export type HealthFacts = Pick<Checkpoint, 'paused' | 'failures' | 'lastError' | 'lastSuccessAt'>

/** The first cycle counts as initializing while it waits and while it runs. `backfill`: see backfillOf. */
export function computeHealth({ paused, failures, lastError, lastSuccessAt }: HealthFacts, backfill: PairBackfill | null): Health {
  if (paused) return 'PAUSED'
  const isLacking = backfill !== null && backfill.backfillNeeded !== null
  const isOrdered = isLacking && backfill.isPredicted !== true
  if (failures >= ERROR_AFTER_FAILURES) return 'ERROR'
  if (failures > 0) {
    const remedy = lastError === null ? null : ERROR_CODES[lastError.code].remedy
    // Lost history waits for no person once the backfill is ordered.
    const needsPerson = remedy !== null && FAILURE_EFFECTS[remedy].needsPerson && !(remedy === 'restart' && isOrdered)
    return needsPerson ? 'ERROR' : 'WARNING'
  }
  if (isLacking) return 'WARNING'
  return lastSuccessAt === null || (backfill !== null && isBackfillNeeded(backfill)) ? 'INITIALIZING' : 'HEALTHY'
}

const ERROR_AFTER_FAILURES = 3

/**
 * What a failed cycle means for the ones after it. Only refused credentials stop the schedule: asking again with them
 * may lock the account. Everything else may heal by itself, or by a hand on the other side, and is worth a try a while later.
 */
export const FAILURE_EFFECTS: Readonly<Record<Remedy, { readonly needsPerson: boolean; readonly stopsSchedule: boolean }>> = {
  retry: { needsPerson: false, stopsSchedule: false },
  wait: { needsPerson: false, stopsSchedule: false },
  bug: { needsPerson: false, stopsSchedule: false },
  restart: { needsPerson: true, stopsSchedule: false },
  fix: { needsPerson: true, stopsSchedule: false },
  reauth: { needsPerson: true, stopsSchedule: true },
}
