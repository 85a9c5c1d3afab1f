import type { Clock } from '../contract/index.ts'

/** The maximum timer delay; with a longer one Node fires immediately. */
const TIMER_MAX_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    signal?.throwIfAborted()
    // Uses the monotonic clock: a change of the wall clock must not lengthen or end a wait.
    const end = performance.now() + ms
    for (let left = ms; left > 0; left = end - performance.now())
      await waitForTimer(Math.min(Math.ceil(left), TIMER_MAX_MS), signal)
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
