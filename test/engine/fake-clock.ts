import type { Clock } from '../../src/contract/index.ts'

/** Time that passes only when it is told to, or driven: from one moment that somebody wants to be woken at to the next. */
export class FakeClock implements Clock {
  readonly #timers = new Set<{ at: number; wake: () => void }>()
  #elapsed = 0
  #wall: number

  constructor(start = '2026-03-01T00:00:00Z') {
    this.#wall = Date.parse(start)
  }

  now(): number {
    return this.#wall + this.#elapsed
  }

  /** How many are asleep. */
  get sleepers(): number {
    return this.#timers.size
  }

  /** Somebody sets the clock; whoever sleeps does not notice. */
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

  /** Lets time pass until the promise settles. */
  async drive<T>(promise: Promise<T>): Promise<T> {
    let settled = false
    promise.then(() => (settled = true), () => (settled = true))
    for (let steps = 0; ; steps++) {
      await everythingReady()
      if (settled) return promise
      if (steps > 100_000) throw new Error('it does not end')
      if (!this.#wakeNext(Infinity)) throw new Error('nobody sleeps, and still it does not end')
    }
  }

  /** What is due on the way happens in order, each with everything that follows from it. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms
    for (;;) {
      await everythingReady()
      if (!this.#wakeNext(end)) break
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

  /** False when nobody wants to be woken by then. */
  #wakeNext(by: number): boolean {
    let next: { at: number; wake: () => void } | null = null
    for (const timer of this.#timers) if (timer.at <= by && (next === null || timer.at < next.at)) next = timer
    if (next === null) return false
    this.#timers.delete(next)
    this.#elapsed = Math.max(this.#elapsed, next.at)
    next.wake()
    return true
  }
}

/** Everything that needs no time has happened: a store in memory answers within microtasks. */
function everythingReady(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
