import type { Clock } from '../contract/index.ts'
import { systemClock } from '../platform/clock.ts'

/** The real time plus the skipped time, for a simulator and the source that reads it. */
export class SkippingClock implements Clock {
  #skippedMs = 0

  now(): number {
    return systemClock.now() + this.#skippedMs
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return systemClock.sleep(ms, signal)
  }

  skip(ms: number): void {
    this.#skippedMs += ms
  }
}
