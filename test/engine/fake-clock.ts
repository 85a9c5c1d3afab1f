import type { Clock } from '../../src/contract/index.ts'

/** A clock that advances only on request, from one wake-up time to the next. */
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

  /** The number of pending sleeps. */
  get sleepers(): number {
    return this.#timers.size
  }

  /** Sets the clock without waking sleepers. */
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

  /** Advances time until the promise settles. */
  async drive<T>(promise: Promise<T>): Promise<T> {
    let settled = false
    promise.then(
      () => (settled = true),
      () => (settled = true),
    )
    for (let steps = 0; ; steps++) {
      await everythingReady()
      if (settled) return promise
      if (steps > 100_000) throw new Error('it does not end')
      if (!this.#wakeNext(Infinity)) throw new Error('no timer is set, and still it does not end')
    }
  }

  /** Wakes sleepers on the way in order, each with all its follow-up work. */
  async advance(ms: number): Promise<void> {
    const end = this.#elapsed + ms
    for (;;) {
      await everythingReady()
      if (!this.#wakeNext(end)) break
    }
    this.#elapsed = end
  }

  /** Advances in small steps until the condition holds. */
  async until(condition: () => boolean, stepMs = 100, limitMs = 3_600_000): Promise<void> {
    for (let passed = 0; !condition(); passed += stepMs) {
      if (passed > limitMs) throw new Error(`it did not come true in ${limitMs} ms`)
      await this.advance(stepMs)
    }
  }

  /** False if no sleeper is due by then. */
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

/** Waits until all work that needs no time is done: an in-memory store responds within microtasks. */
function everythingReady(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
