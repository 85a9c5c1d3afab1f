import type { Clock } from './ports.ts'

/** A clock that advances only on demand. Sleepers wake in order of their time. */
export class ManualClock implements Clock {
  #nowMs: number
  readonly #sleepers: Array<{ atMs: number; wake: () => void }> = []

  constructor(nowMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = nowMs
  }

  now(): number {
    return this.#nowMs
  }

  advance(ms: number): void {
    const until = this.#nowMs + ms
    for (;;) {
      const next = this.#sleepers.filter((sleeper) => sleeper.atMs <= until).toSorted((a, b) => a.atMs - b.atMs)[0]
      if (next === undefined) break
      this.#sleepers.splice(this.#sleepers.indexOf(next), 1)
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      next.wake()
    }
    this.#nowMs = until
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    return new Promise((resolve, reject) => {
      const sleeper = { atMs: this.#nowMs + Math.max(0, ms), wake: resolve }
      this.#sleepers.push(sleeper)
      signal?.addEventListener(
        'abort',
        () => {
          const at = this.#sleepers.indexOf(sleeper)
          if (at >= 0) this.#sleepers.splice(at, 1)
          reject(signal.reason as Error)
        },
        { once: true },
      )
    })
  }
}
