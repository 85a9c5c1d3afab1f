import type { Clock } from '../../src/contract/index.ts'

/** Time that passes only when told to. What was due on the way happens in order, each with everything that follows from it. */
export class VirtualTime implements Clock {
  readonly #timers = new Set<{ at: number; wake: () => void }>()
  #elapsed = 0
  #wall: number

  constructor(start = '2026-03-01T00:00:00Z') {
    this.#wall = Date.parse(start)
  }

  now(): number {
    return this.#wall + this.#elapsed
  }

  /** Somebody sets the clock; timers do not notice. */
  step(ms: number): void {
    this.#wall += ms
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(signal.reason as Error)
      const abort = (): void => {
        this.#timers.delete(timer)
        reject(signal!.reason as Error)
      }
      const timer = {
        at: this.#elapsed + ms,
        wake: () => {
          signal?.removeEventListener('abort', abort)
          resolve()
        },
      }
      this.#timers.add(timer)
      signal?.addEventListener('abort', abort, { once: true })
    })
  }

  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms
    for (;;) {
      await settled()
      let next: { at: number; wake: () => void } | null = null
      for (const timer of this.#timers) if (timer.at <= end && (next === null || timer.at < next.at)) next = timer
      if (next === null) break
      this.#timers.delete(next)
      this.#elapsed = Math.max(this.#elapsed, next.at)
      next.wake()
    }
    this.#elapsed = end
  }

  /** A little at a time until it is so. */
  async until(condition: () => boolean, stepMs = 100, limitMs = 3_600_000): Promise<void> {
    for (let passed = 0; !condition(); passed += stepMs) {
      if (passed > limitMs) throw new Error(`it did not come true in ${limitMs} ms`)
      await this.advance(stepMs)
    }
  }
}

/** Everything that needs no time has happened: a store in memory answers within microtasks. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
