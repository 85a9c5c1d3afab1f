import { ERROR_CODES, type Checkpoint, type ConnectionStatus, type Remedy } from '../contract/index.ts'
import { isBackfillNeeded, type PairBackfill } from './pair-backfill.ts'

/**
 *   INITIALIZING ──success──▶ HEALTHY ──failure──▶ WARNING ──third failure, or one that needs an operator──▶ ERROR
 *                                ▲                    │                                                        │
 *                                └──────success───────┴────────────────success, resume─────────────────────────┘
 *   PAUSED overrides all of them until the sync is resumed.
 *
 * A pair is INITIALIZING until its first backfill is complete. While a backfill is requested, or if the source no longer
 * retains the changes to read, it is WARNING at best: a sync that may lack changes is never HEALTHY.
 */
export type Health = 'HEALTHY' | 'INITIALIZING' | 'WARNING' | 'ERROR' | 'PAUSED'

export type HealthFacts = Pick<Checkpoint, 'paused' | 'failures' | 'lastError' | 'lastSuccessAt'>

/** The health of a sync with a connection: one that needs its user is an error, one that was switched off a pause. */
export function computeConnectedHealth(status: ConnectionStatus | undefined, health: Health): Health {
  if (status === undefined || status === 'active' || health === 'PAUSED') return health
  return status === 'needs_reauthorization' ? 'ERROR' : 'PAUSED'
}

/** The first cycle counts as initializing while it waits and while it runs. `backfill`: see `findPairBackfill`. */
export function computeHealth(
  { paused, failures, lastError, lastSuccessAt }: HealthFacts,
  backfill: PairBackfill | null,
): Health {
  if (paused) return 'PAUSED'
  const hasLostChanges = backfill !== null && backfill.backfillNeeded !== null
  const isRequested = hasLostChanges && backfill.isPredicted !== true
  if (failures >= ERROR_AFTER_FAILURES) return 'ERROR'
  if (failures > 0) {
    const remedy = lastError === null ? null : ERROR_CODES[lastError.code].remedy
    // Lost history needs no operator once the backfill is requested.
    const needsPerson = remedy !== null && FAILURE_EFFECTS[remedy].needsPerson && !(remedy === 'restart' && isRequested)
    return needsPerson ? 'ERROR' : 'WARNING'
  }
  if (hasLostChanges) return 'WARNING'
  return lastSuccessAt === null || (backfill !== null && isBackfillNeeded(backfill)) ? 'INITIALIZING' : 'HEALTHY'
}

const ERROR_AFTER_FAILURES = 3

/**
 * Effect of a failed cycle on later ones. Only refused credentials stop the schedule, because retrying with them may
 * lock the account. Other errors may be fixed on the other side and are retried after a backoff.
 */
export const FAILURE_EFFECTS: Readonly<
  Record<Remedy, { readonly needsPerson: boolean; readonly stopsSchedule: boolean }>
> = {
  retry: { needsPerson: false, stopsSchedule: false },
  wait: { needsPerson: false, stopsSchedule: false },
  bug: { needsPerson: false, stopsSchedule: false },
  restart: { needsPerson: true, stopsSchedule: false },
  fix: { needsPerson: true, stopsSchedule: false },
  reauth: { needsPerson: true, stopsSchedule: true },
}
