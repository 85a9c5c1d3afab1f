import type { Clock } from '../contract/index.ts'
import { LinkedAbortController } from '../values/linked-abort-controller.ts'

/** Resolves with the promise, or rejects with the signal's reason if it is aborted first. */
export function raceWithAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) {
    promise.catch(() => {})
    return Promise.reject(signal.reason)
  }
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

/** Rejects after a delay, unless cancelled. */
export function rejectAfter(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  reason: () => unknown,
): { promise: Promise<never>; cancel(): void } {
  const cancelController = new LinkedAbortController(signal)
  const promise = clock.sleep(ms, cancelController.signal).then((): never => {
    throw reason()
  })
  promise.catch(() => {}).finally(() => cancelController.unlink())
  return { promise, cancel: () => cancelController.abort(new Error('in time')) }
}
