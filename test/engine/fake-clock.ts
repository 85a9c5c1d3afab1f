import type { Clock } from '../../src/contract/index.ts'

/** Time that moves only when everybody sleeps: to the moment the first of them wants to be woken. */
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
      if (this.#timers.size === 0) throw new Error('nobody sleeps, and still it does not end')
      if (steps > 100_000) throw new Error('it does not end')
      const [first] = [...this.#timers].toSorted((a, b) => a.at - b.at)
      this.#timers.delete(first!)
      this.#elapsed = Math.max(this.#elapsed, first!.at)
      first!.wake()
    }
  }
}

/** Everything that needs no time has happened: a store in memory answers within microtasks. */
export function everythingReady(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
