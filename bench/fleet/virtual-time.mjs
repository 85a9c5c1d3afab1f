import { Heap } from '../../dist/runner/heap.js'

/** Time that jumps from one timer to the next, for any number of timers. */
export class VirtualTime {
  #timers = new Heap((a, b) => a.at < b.at)
  #now = Date.UTC(2026, 0, 1)

  now() {
    return this.#now
  }

  sleep(ms, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const abort = () => {
        this.#timers.remove(timer)
        reject(signal.reason)
      }
      const timer = {
        at: this.#now + ms,
        wake: () => {
          signal?.removeEventListener('abort', abort)
          resolve()
        },
      }
      this.#timers.add(timer)
      signal?.addEventListener('abort', abort, { once: true })
    })
  }

  /** Runs until the condition holds, or the time is over. */
  async run(until, end) {
    while (!until()) {
      await new Promise((resolve) => setImmediate(resolve))
      const first = this.#timers.first
      if (first === undefined || first.at > end) return
      this.#now = Math.max(this.#now, first.at)
      // All timers of the same time together.
      for (let next = first; next !== undefined && next.at <= this.#now; next = this.#timers.first) {
        this.#timers.remove(next)
        next.wake()
      }
    }
  }
}
