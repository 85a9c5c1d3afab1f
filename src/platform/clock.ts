import type { Clock } from '../contract/index.ts'

/** The longest a timer can wait; beyond it Node fires at once. */
const TIMER_MAX_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    signal?.throwIfAborted()
    // Counted on the monotonic clock: somebody setting the wall clock must not stretch or end a wait.
    const end = performance.now() + ms
    for (let left = ms; left > 0; left = end - performance.now()) await waitForTimer(Math.min(Math.ceil(left), TIMER_MAX_MS), signal)
  },
}

function waitForTimer(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    function abort(): void {
      clearTimeout(timeout)
      reject(signal!.reason as Error)
    }
    const timeout = setTimeout(() => {
      signal?.removeEventListener('abort', abort)
      resolve()
    }, ms)
    signal?.addEventListener('abort', abort, { once: true })
  })
}
