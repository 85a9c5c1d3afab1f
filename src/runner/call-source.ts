import {
  SyncError,
  type ErrorCode,
  type PartitionReader,
  type Ports,
  type Secrets,
  type Store,
  type SyncContext,
} from '../contract/index.ts'
import { AccountPauses, parseOrigin, withRetryTime, type PauseStore } from '../engine/account-pauses.ts'
import { createChildLog } from '../telemetry/child-log.ts'
import { openConnection } from '../engine/connection-scope.ts'
import { classifyError } from '../engine/classify-error.ts'
import { Pacer, type SlotProvider } from '../engine/pacer.ts'
import { isRetryable, pageDelayMs } from '../engine/retry.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { raceWithAbort, rejectAfter } from '../engine/promise-timeouts.ts'
import type { Fetch } from '../platform/fetch.ts'
import { LinkedAbortController } from '../values/linked-abort-controller.ts'
import { combineSignals } from '../values/combine-signals.ts'
import { NO_PARTITIONS } from '../values/partition-overlay.ts'

export interface SourceRuntime {
  readonly ports: Ports
  readonly fetch: Fetch
  readonly secrets: Secrets
}

export interface SourceCallOptions {
  readonly tenant: string
  readonly plan: SyncPlan
  /** The store of the tenant's connections; a plan that names one needs it. */
  readonly store?: Store | null
  readonly pacers: Readonly<Record<string, number>>
  /** The slots that all processes share; by default slots after `pacers` that only this call knows. */
  readonly takeSlots?: SlotProvider
  readonly pauses: PauseStore
  /** Defaults to none. */
  readonly partitions?: PartitionReader
  /**
   * If set, retryable errors are retried as in a cycle, and this is called before each wait. If unset, there is one
   * attempt.
   */
  readonly onWait?: (wait: { readonly ms: number; readonly code: ErrorCode }) => void
}

/** Calls a source runtime of a cycle with the engine's limits: paced, respecting account pauses, with a deadline. */
export async function callSource<Result>(
  runtime: SourceRuntime,
  stopping: AbortSignal,
  options: SourceCallOptions,
  call: (context: SyncContext) => Promise<Result>,
): Promise<Result> {
  const {
    plan: { sync, limits },
    onWait,
  } = options
  const { clock, random } = runtime.ports
  const pauses = new AccountPauses(options.plan, runtime.ports, options.pauses)
  for (let attempt = 1; ; attempt++) {
    const last: LastRequest = { origin: null }
    try {
      return await callOnce(runtime, stopping, options, pauses, last, call)
    } catch (thrown) {
      if (stopping.aborted) throw new SyncError('CANCELLED', `${sync}: the request was cancelled.`)
      const error = classifyError(thrown)
      await pauses.recordError(last.origin, error)
      const ms = pageDelayMs(error, attempt, random)
      if (onWait === undefined || !isRetryable(error) || attempt > limits.retriesMax || ms > limits.waitMaxMs) {
        const final =
          onWait !== undefined && attempt > limits.retriesMax
            ? await pauses.recordFinalFailure(last.origin, error)
            : withRetryTime(error, clock.now())
        await pauses.flush(random)
        throw final
      }
      onWait({ ms, code: error.code })
      await clock.sleep(ms, stopping).catch(() => {})
    }
  }
}

interface LastRequest {
  /** Null before the first request. */
  origin: string | null
}

async function callOnce<Result>(
  { ports, secrets, fetch: sendRequest }: SourceRuntime,
  stopping: AbortSignal,
  {
    tenant,
    plan,
    store = null,
    pacers,
    takeSlots = createLocalSlots(pacers),
    partitions = NO_PARTITIONS,
  }: SourceCallOptions,
  pauses: AccountPauses,
  last: LastRequest,
  call: (context: SyncContext) => Promise<Result>,
): Promise<Result> {
  const ending = new LinkedAbortController(stopping)
  const { signal } = ending
  const connection = plan.connection == null ? undefined : await openConnection({ store, ports }, plan.connection)
  const pacer = new Pacer({ ports, signal, plans: plan.pacers, takeSlots })
  await pauses.check(null, signal)
  const late = rejectAfter(
    ports.clock,
    plan.limits.deadlineMs,
    signal,
    () =>
      new SyncError('SOURCE_TIMEOUT', `${plan.sync}: the source did not respond within ${plan.limits.deadlineMs} ms.`),
  )
  try {
    const result = Promise.resolve().then(() =>
      call({
        clock: ports.clock,
        random: ports.random,
        signal,
        secrets,
        ...(connection !== undefined && { connection }),
        pacer,
        log: createChildLog(ports.log, { tenant, worker: plan.worker, sync: plan.sync }),
        fetch: async (input, init = {}) => {
          await pacer.wait()
          const origin = (last.origin = parseOrigin(input))
          await pauses.check(origin, signal)
          const response = await sendRequest(input, {
            ...init,
            signal: combineSignals(signal, init.signal),
          })
          await pauses.recordResponse(origin, response)
          return response
        },
        partitions,
        cycle: { id: 0, mode: plan.mode, startedAt: ports.clock.now(), page: 1 },
      }),
    )
    return await Promise.race([raceWithAbort(result, signal), late.promise])
  } finally {
    late.cancel()
    ending.abort(new SyncError('CANCELLED', 'The request has ended.'))
    ending.unlink()
  }
}

/** Continues after the last slot taken from the store. Slots taken here are not written back. */
function createLocalSlots(lastSlots: Readonly<Record<string, number>>): SlotProvider {
  const last = new Map(Object.entries(lastSlots))
  return async ({ pacer, count, paceMs, at: now }) => {
    const first = Math.max((last.get(pacer) ?? -Infinity) + paceMs, now)
    last.set(pacer, first + (count - 1) * paceMs)
    return { now, firstSlotAt: first }
  }
}
