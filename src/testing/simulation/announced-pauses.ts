import type { Process } from './scheduler.ts'

interface Announced {
  readonly by: Process
  /** When the runner had the answer in its hands. */
  readonly heardAt: number
  readonly until: number
  /** When the store had it; null while it has not. */
  keptAt: number | null
}

export interface AnnouncedPausesOptions {
  readonly now: () => number
  /** How wrong the clocks of two runners can be against each other. */
  readonly toleranceMs: number
  readonly violate: (oracle: string, message: string) => void
}

/**
 * O18: when the vendor asks for a pause, nobody asks it anything until the pause is over. The runner that was told knows at once;
 * the others, and its own later lives, as soon as the store knows.
 */
export class AnnouncedPauses {
  readonly #options: AnnouncedPausesOptions
  #announced: Announced[] = []

  constructor(options: AnnouncedPausesOptions) {
    this.#options = options
  }

  /** A runner has received an answer over HTTP. */
  answered(process: Process, response: Response): void {
    const ms = pauseOf(response)
    if (ms !== null) this.announced(process, ms)
  }

  /** A runner has been told to ask nothing for so long. */
  announced(process: Process, ms: number): void {
    const { now, toleranceMs } = this.#options
    if (ms <= toleranceMs || !process.alive) return
    this.#announced.push({ by: process, heardAt: now(), until: now() + ms, keptAt: null })
  }

  /** The store has kept the pauses of this process. */
  kept(process: Process): void {
    for (const pause of this.#announced) if (pause.by === process) pause.keptAt ??= this.#options.now()
  }

  /** A cycle has ended in good order: by then the store must know what the runner was told. */
  ended(process: Process): void {
    const { now, violate } = this.#options
    const forgotten = this.#announced.find((pause) => pause.by === process && pause.keptAt === null && pause.until > now())
    if (forgotten !== undefined) violate('O18', `a cycle of ${process.name} ended without keeping the pause that the vendor had announced until ${forgotten.until}`)
  }

  /** When the last one is over. */
  get untilMs(): number {
    return this.#announced.reduce((most, { until }) => Math.max(most, until), 0)
  }

  /** A runner sends a request. */
  asked(process: Process): void {
    const { now, toleranceMs, violate } = this.#options
    const at = now()
    this.#announced = this.#announced.filter(({ until }) => until > at)
    const broken = this.#announced.find((pause) => at < pause.until - toleranceMs && (pause.by === process || (pause.keptAt !== null && pause.keptAt + HEARD_LATE_MS < at)))
    if (broken !== undefined) violate('O18', `${process.name} asked ${broken.until - at} ms before the end of the pause that the vendor had announced to ${broken.by.name}`)
  }
}

/** A runner may have looked at the store just before, and be on its way to ask. */
const HEARD_LATE_MS = 5_000

/** As the refusal says it: `Retry-After` in seconds. */
function pauseOf(response: Response): number | null {
  const seconds = response.status >= 400 ? Number(response.headers.get('retry-after') ?? Number.NaN) : Number.NaN
  return Number.isFinite(seconds) ? seconds * 1_000 : null
}
