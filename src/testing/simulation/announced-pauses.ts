import type { SimulatedProcess } from './scheduler.ts'

interface AnnouncedPause {
  readonly by: SimulatedProcess
  /** When the runner received the response. */
  readonly receivedAt: number
  readonly until: number
  /** When the store persisted the pause; null until then. */
  storedAt: number | null
}

export interface AnnouncedPausesOptions {
  readonly now: () => number
  /** Maximum difference between the clocks of two runners. */
  readonly toleranceMs: number
  readonly reportViolation: (oracle: string, message: string) => void
}

/**
 * O18: after the vendor asks for a pause, no request is sent until the pause is over. The runner that received it
 * complies at once; the others, and its own restarts, as soon as the store knows.
 */
export class AnnouncedPauses {
  readonly #options: AnnouncedPausesOptions
  #announced: AnnouncedPause[] = []

  constructor(options: AnnouncedPausesOptions) {
    this.#options = options
  }

  /** Called when a runner has received an HTTP response. */
  onResponse(process: SimulatedProcess, response: Response): void {
    const ms = parseRetryAfter(response)
    if (ms !== null) this.onPause(process, ms)
  }

  /** Called when a runner has been asked to pause for this long. */
  onPause(process: SimulatedProcess, ms: number): void {
    const { now, toleranceMs } = this.#options
    if (ms <= toleranceMs || !process.isRunning) return
    this.#announced.push({ by: process, receivedAt: now(), until: now() + ms, storedAt: null })
  }

  /** Called when the store has persisted the pauses of this process. */
  onPauseStored(process: SimulatedProcess): void {
    for (const pause of this.#announced) if (pause.by === process) pause.storedAt ??= this.#options.now()
  }

  /** Called when a cycle has ended normally: by then the store must know every pause the runner received. */
  onCycleEnd(process: SimulatedProcess): void {
    const { now, reportViolation: violate } = this.#options
    const forgotten = this.#announced.find(
      (pause) => pause.by === process && pause.storedAt === null && pause.until > now(),
    )
    if (forgotten !== undefined)
      violate(
        'O18',
        `a cycle of ${process.name} ended without persisting the pause that the vendor had announced until ${forgotten.until}`,
      )
  }

  /** When the last pause ends. */
  get untilMs(): number {
    return this.#announced.reduce((most, { until }) => Math.max(most, until), 0)
  }

  /** Called when a runner sends a request. */
  onRequest(process: SimulatedProcess): void {
    const { now, toleranceMs, reportViolation: violate } = this.#options
    const at = now()
    this.#announced = this.#announced.filter(({ until }) => until > at)
    const broken = this.#announced.find(
      (pause) =>
        at < pause.until - toleranceMs &&
        (pause.by === process || (pause.storedAt !== null && pause.storedAt + STORE_READ_DELAY_MS < at)),
    )
    if (broken !== undefined)
      violate(
        'O18',
        `${process.name} sent a request ${broken.until - at} ms before the end of the pause that the vendor had announced to ${broken.by.name}`,
      )
  }
}

/** A runner may have read the store just before and be about to send a request. */
const STORE_READ_DELAY_MS = 5_000

/** In the unit of the response: `Retry-After` is in seconds. */
function parseRetryAfter(response: Response): number | null {
  const seconds = response.status >= 400 ? Number(response.headers.get('retry-after') ?? Number.NaN) : Number.NaN
  return Number.isFinite(seconds) ? seconds * 1_000 : null
}
