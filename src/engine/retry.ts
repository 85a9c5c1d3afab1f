import type { Random, SyncError } from '../contract/index.ts'

const FIRST_DELAY_MS = 1_000

/** After how many failed cycles in a row the next one waits how long, counted from the failure. */
const CYCLE_BACKOFF_MS = [60_000, 300_000, 1_800_000, 7_200_000]

/** How long to stay away after a failed try of one page: as long as the server asks or the backoff says, whichever is more. */
export function pageDelayMs(error: SyncError, attempt: number, random: Random): number {
  const backoff = FIRST_DELAY_MS * 2 ** (attempt - 1)
  return Math.max(waitHintMs(error), Math.round(backoff * (0.5 + random.next())))
}

/** The same between cycles. */
export function cycleDelayMs(error: SyncError, failures: number, random: Random): number {
  const backoff = CYCLE_BACKOFF_MS[Math.min(failures, CYCLE_BACKOFF_MS.length) - 1] ?? 0
  return Math.max(waitHintMs(error), Math.round(backoff * (0.9 + 0.2 * random.next())))
}

/** For a database that is busy: short, and different for everybody who waits. */
export function storeDelayMs(attempt: number, random: Random): number {
  return Math.round(25 * 2 ** attempt * (0.5 + random.next()))
}

export function isRetryable(error: SyncError): boolean {
  return error.remedy === 'retry' || error.remedy === 'wait'
}

/** Garbage from a server (negative, NaN, ten years) must not stop the world. */
const HINT_MAX_MS = 24 * 60 * 60_000

/** How long the source asked to be left alone; 0 when it did not say. */
export function waitHintMs(error: SyncError): number {
  const ms = error.retryAfterMs
  return ms === undefined || !(ms > 0) ? 0 : Math.min(ms, HINT_MAX_MS)
}
