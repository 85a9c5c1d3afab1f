import { SyncError, type SyncContext } from '../../contract/index.ts'
import { err, ok, type FailoverResult } from './result.ts'

/** Asks within a time of its own, so that one provider that hangs does not use up the page's. */
export async function withDeadline<Value>(ms: number, provider: string, context: SyncContext, ask: (bounded: SyncContext) => Promise<Value>): Promise<FailoverResult<Value>> {
  const timing = new AbortController()
  const done = new AbortController()
  const signal = AbortSignal.any([context.signal, timing.signal])
  const bounded: SyncContext = { ...context, signal, fetch: (input, init) => context.fetch(input, { ...init, signal: init?.signal ? AbortSignal.any([signal, init.signal]) : signal }) }
  const late = context.clock.sleep(ms, AbortSignal.any([context.signal, done.signal])).then((): never => {
    const error = new SyncError('SOURCE_TIMEOUT', `${provider} took longer than ${ms} ms.`)
    timing.abort(error)
    throw error
  })
  late.catch(() => {})
  try {
    return ok(await Promise.race([Promise.resolve().then(() => ask(bounded)), late]))
  } catch (thrown) {
    // Whoever stops the cycle does not say anything of the provider.
    if (context.signal.aborted) throw context.signal.reason
    return err(thrown)
  } finally {
    done.abort(new Error('in time'))
  }
}
