import type { SimulatedProcess } from './scheduler.ts'

interface AnnouncedPause {
  readonly by: SimulatedProcess
  /** When the runner had the answer in its hands. */
  readonly receivedAt: number
  readonly until: number
  /** When the store had it; null while it has not. */
  storedAt: number | null
}

export interface AnnouncedPausesOptions {
  readonly now: () => number
  /** How wrong the clocks of two runners can be against each other. */
  readonly toleranceMs: number
  readonly reportViolation: (oracle: string, message: string) => void
}

/**
 * O18: when the vendor asks for a pause, nobody asks it anything until the pause is over. The runner that was told knows at once;
 * the others, and its own later lives, as soon as the store knows.
 */
export class AnnouncedPauses {
  readonly #options: AnnouncedPausesOptions
  #announced: AnnouncedPause[] = []

  constructor(options: AnnouncedPausesOptions) {
    this.#options = options
  }

  /** A runner has received an answer over HTTP. */
  onResponse(process: SimulatedProcess, response: Response): void {
    const ms = parseRetryAfter(response)
    if (ms !== null) this.onPause(process, ms)
  }

  /** A runner has been told to ask nothing for so long. */
  onPause(process: SimulatedProcess, ms: number): void {
    const { now, toleranceMs } = this.#options
    if (ms <= toleranceMs || !process.isRunning) return
    this.#announced.push({ by: process, receivedAt: now(), until: now() + ms, storedAt: null })
  }

  /** The store has kept the pauses of this process. */
  onPauseStored(process: SimulatedProcess): void {
    for (const pause of this.#announced) if (pause.by === process) pause.storedAt ??= this.#options.now()
  }

  /** A cycle has ended in good order: by then the store must know what the runner was told. */
  onCycleEnd(process: SimulatedProcess): void {
    const { now, reportViolation: violate } = this.#options
    const forgotten = this.#announced.find((pause) => pause.by === process && pause.storedAt === null && pause.until > now())
    if (forgotten !== undefined) violate('O18', `a cycle of ${process.name} ended without keeping the pause that the vendor had announced until ${forgotten.until}`)
  }

  /** When the last one is over. */
  get untilMs(): number {
    return this.#announced.reduce((most, { until }) => Math.max(most, until), 0)
  }

  /** A runner sends a request. */
  onRequest(process: SimulatedProcess): void {
    const { now, toleranceMs, reportViolation: violate } = this.#options
    const at = now()
    this.#announced = this.#announced.filter(({ until }) => until > at)
    const broken = this.#announced.find((pause) => at < pause.until - toleranceMs && (pause.by === process || (pause.storedAt !== null && pause.storedAt + STORE_READ_DELAY_MS < at)))
    if (broken !== undefined) violate('O18', `${process.name} asked ${broken.until - at} ms before the end of the pause that the vendor had announced to ${broken.by.name}`)
  }
}

/** A runner may have looked at the store just before, and be on its way to ask. */
const STORE_READ_DELAY_MS = 5_000

/** As the refusal says it: `Retry-After` in seconds. */
function parseRetryAfter(response: Response): number | null {
  const seconds = response.status >= 400 ? Number(response.headers.get('retry-after') ?? Number.NaN) : Number.NaN
  return Number.isFinite(seconds) ? seconds * 1_000 : null
}
