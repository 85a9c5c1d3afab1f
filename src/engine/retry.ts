import type { Random, SyncError } from '../contract/index.ts'

const FIRST_DELAY_MS = 1_000

/** The delay after 1, 2, 3, … consecutive failed cycles, counted from the failure. */
const CYCLE_BACKOFF_MS = [60_000, 300_000, 1_800_000, 7_200_000]

/** The delay after a failed attempt of one page: the server's requested wait or the backoff, whichever is longer. */
export function pageDelayMs(error: SyncError, attempt: number, random: Random): number {
  const backoff = FIRST_DELAY_MS * 2 ** (attempt - 1)
  return Math.max(waitHintMs(error), Math.round(backoff * (0.5 + random.next())))
}

/** The delay between cycles. */
export function cycleDelayMs(error: SyncError, failures: number, random: Random): number {
  const backoff = CYCLE_BACKOFF_MS[Math.min(failures, CYCLE_BACKOFF_MS.length) - 1] ?? 0
  return Math.max(waitHintMs(error), Math.round(backoff * (0.9 + 0.2 * random.next())))
}

/** For a busy database: short, with jitter so that waiters do not collide. */
export function storeDelayMs(attempt: number, random: Random): number {
  return Math.round(25 * 2 ** attempt * (0.5 + random.next()))
}

export function isRetryable(error: SyncError): boolean {
  return error.remedy === 'retry' || error.remedy === 'wait'
}

/** Invalid values from a server (negative, NaN, ten years) must not stop the sync. */
const HINT_MAX_MS = 24 * 60 * 60_000

/** The wait that the source requested; 0 if it gave none. */
export function waitHintMs(error: SyncError): number {
  const ms = error.retryAfterMs
  return ms === undefined || !(ms > 0) ? 0 : Math.min(ms, HINT_MAX_MS)
}
