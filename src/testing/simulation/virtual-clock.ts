import type { Clock } from '../../contract/index.ts'
import type { SimulatedProcess } from './scheduler.ts'

/** A process's own clock: virtual time plus its error, which may step. */
export class VirtualClock implements Clock {
  errorMs = 0
  readonly #process: SimulatedProcess
  readonly #onBadSleep: (ms: number) => void

  constructor(process: SimulatedProcess, onBadSleep: (ms: number) => void = () => {}) {
    this.#process = process
    this.#onBadSleep = onBadSleep
  }

  now(): number {
    return this.#process.scheduler.now + this.errorMs
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (!(ms >= 0) || !Number.isFinite(ms)) this.#onBadSleep(ms)
    return this.#process.wait('clock.sleep', Math.max(0, ms), signal)
  }
}
