import { SyncError, type SyncContext } from '../../contract/index.ts'
import { err, ok, type FailoverResult } from './result.ts'
import { combineSignals } from '../../values/combine-signals.ts'

/** Runs a request with its own deadline, so a provider that hangs does not use up the page's time. */
export async function withDeadline<Value>(
  ms: number,
  provider: string,
  context: SyncContext,
  request: (bounded: SyncContext) => Promise<Value>,
): Promise<FailoverResult<Value>> {
  const timeout = new AbortController()
  const done = new AbortController()
  const signal = AbortSignal.any([context.signal, timeout.signal])
  const bounded: SyncContext = {
    ...context,
    signal,
    fetch: (input, init) => context.fetch(input, { ...init, signal: combineSignals(signal, init?.signal) }),
  }
  const expired = context.clock.sleep(ms, AbortSignal.any([context.signal, done.signal])).then((): never => {
    const error = new SyncError('SOURCE_TIMEOUT', `${provider} did not answer within ${ms} ms.`)
    timeout.abort(error)
    throw error
  })
  expired.catch(() => {})
  try {
    return ok(await Promise.race([Promise.resolve().then(() => request(bounded)), expired]))
  } catch (thrown) {
    // Cancelling the cycle is not a failure of the provider.
    if (context.signal.aborted) throw context.signal.reason
    return err(thrown)
  } finally {
    done.abort(new Error('in time'))
  }
}
