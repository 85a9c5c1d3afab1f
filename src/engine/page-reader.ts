import { setMaxListeners } from 'node:events'
import {
  SyncError,
  type CycleFacts,
  type JsonValue,
  type Log,
  type Page,
  type PartitionChange,
  type PartitionReader,
  type SourceConnection,
  type StateText,
  type SyncContext,
} from '../contract/index.ts'
import { parseOrigin, withRetryTime, type AccountPauses } from './account-pauses.ts'
import { checkPage, parseState, type CheckedPage } from './check-page.ts'
import { createChildLog } from '../telemetry/child-log.ts'
import { classifyError } from './classify-error.ts'
import { openConnection } from './connection-scope.ts'
import type { CycleOptions } from './cycle-options.ts'
import type { CycleTrace, PageTrace } from './cycle-trace.ts'
import type { LeaseHeartbeat } from './lease-heartbeat.ts'
import type { Pacer } from './pacer.ts'
import type { PageTransformer } from './page-transformer.ts'
import { PagePreparer, type PreparedPage } from './page-preparer.ts'
import { buildRequestAttributes, readRequestId } from '../telemetry/request-attributes.ts'
import { isRetryable, pageDelayMs } from './retry.ts'
import type { SyncPlan } from './sync-plan.ts'
import type { CycleCounters } from './cycle-counters.ts'
import { raceWithAbort, rejectAfter } from './promise-timeouts.ts'
import { unlinkUnused } from './unlink-unused.ts'
import { LinkedAbortController } from '../values/linked-abort-controller.ts'
import { combineSignals } from '../values/combine-signals.ts'
import { overlayPartitions } from '../values/partition-overlay.ts'

export interface PageRequest {
  readonly state: StateText
  /** The tenant's head sequence now: changes that another sync commits later may be newer than this page. */
  readonly readAtSequence: number
  readonly cycle: CycleFacts
  /** See SyncContext.unordered. */
  readonly unordered: readonly string[]
  /** States of partitions in the page before this one, which is being committed. */
  readonly partitions: readonly PartitionChange[]
}

export interface FetchedPage {
  readonly request: PageRequest
  readonly trace: PageTrace
  readonly checked: CheckedPage
  readonly prepared: PreparedPage
  readonly times: ResponseTimes | null
}

/** The times in the `Date` headers of a page's responses, in the source's clock. */
export interface ResponseTimes {
  /** The earliest `Date` header. */
  readonly dateHeaderMs: number
  /** The earliest time at which one of the responses was current: when it was requested, or cached. */
  readonly readSinceMs: number
}

/** A page being read. Its failure is thrown to the caller that awaits the page; discarding it aborts the read. */
export interface PendingPage {
  readonly page: Promise<FetchedPage>
  discard(): void
}

export interface PageReaderOptions {
  readonly plan: SyncPlan
  readonly options: CycleOptions
  readonly pacer: Pacer
  readonly pauses: AccountPauses
  readonly heartbeat: LeaseHeartbeat
  /** The committed partitions of the sync. */
  readonly partitions: PartitionReader
  /** Aborted when the cycle is over. */
  readonly cycleSignal: AbortSignal
  readonly counters: CycleCounters
  readonly trace: CycleTrace
  readonly transformer: PageTransformer
}

/**
 * Reads pages from the source: paced, with a deadline, with retries for transient failures, and with validation of
 * every result.
 */
export class PageReader {
  readonly #plan: SyncPlan
  readonly #options: CycleOptions
  readonly #pacer: Pacer
  readonly #pauses: AccountPauses
  readonly #heartbeat: LeaseHeartbeat
  readonly #partitions: PartitionReader
  readonly #cycleSignal: AbortSignal
  readonly #counters: CycleCounters
  readonly #trace: CycleTrace
  readonly #transformer: PageTransformer
  readonly #preparer: PagePreparer
  #lastController: LinkedAbortController | null = null

  constructor({
    plan,
    options,
    pacer,
    pauses,
    heartbeat,
    partitions,
    cycleSignal,
    counters,
    trace,
    transformer,
  }: PageReaderOptions) {
    this.#plan = plan
    this.#options = options
    this.#pacer = pacer
    this.#pauses = pauses
    this.#heartbeat = heartbeat
    this.#partitions = partitions
    this.#cycleSignal = cycleSignal
    this.#counters = counters
    this.#trace = trace
    this.#transformer = transformer
    this.#preparer = new PagePreparer(plan.sync, plan.databases, plan.limits)
  }

  read(request: PageRequest): PendingPage {
    // One page is read ahead. The page before it is committed, and its signal is needed only by its listeners.
    if (this.#lastController !== null) unlinkUnused(this.#lastController)
    const discardController = (this.#lastController = new LinkedAbortController(this.#cycleSignal))
    const trace = this.#trace.startPage(request.cycle)
    const page = trace.span.within(() =>
      this.#callWithRetries(trace, discardController.signal, async (context, sourceCall) => {
        const { unordered } = request
        const partitions = overlayPartitions(context.partitions, parseUncommitted(this.#plan.sync, request.partitions))
        const pageContext = {
          ...context,
          ...(request.partitions.length > 0 && { partitions }),
          ...(unordered.length > 0 && { unordered }),
        }
        const returned = await this.#plan.execute(parseState(this.#plan.sync, request.state), pageContext)
        return this.#checkAndPrepare(request, trace, unwrapResult(returned), sourceCall.times)
      }),
    )
    page.catch((thrown: unknown) => this.#trace.endFailedPage(trace, thrown))
    return {
      page,
      discard: () => {
        this.#trace.endDroppedPage(trace, 'discarded')
        discardController.abort(new SyncError('CANCELLED', 'The page is no longer needed.'))
      },
    }
  }

  /** Any other call to the source, with the same retries. */
  callSource<T>(cycle: CycleFacts, call: (context: SyncContext) => Promise<T>): Promise<T> {
    // Only the context is passed: a wrapper around a source could misread additional arguments.
    return this.#callWithRetries(this.#trace.forCycle(cycle), this.#cycleSignal, (context) => call(context))
  }

  recordLanded({ prepared }: FetchedPage): void {
    this.#preparer.recordLanded(prepared)
  }

  async #callWithRetries<T>(
    trace: PageTrace,
    signal: AbortSignal,
    call: (context: SyncContext, sourceCall: SourceCall) => Promise<T>,
  ): Promise<T> {
    const { clock, random, meter } = this.#options.ports
    const { retriesMax, waitMaxMs } = this.#plan.limits
    const sourceCall: SourceCall = {
      trace,
      log: createChildLog(this.#options.ports.log, { cycle: trace.facts.id, page: trace.facts.page }),
      requestId: undefined,
      origin: null,
      times: null,
    }
    for (let attempt = 1; ; attempt++) {
      try {
        sourceCall.times = null
        return await this.#callOnce(sourceCall, signal, (context) => call(context, sourceCall))
      } catch (thrown) {
        const error = classifyError(signal.aborted ? signal.reason : thrown)
        if (signal.aborted || !isRetryable(error)) throw error
        await this.#pauses.recordError(sourceCall.origin, error)
        const ms = pageDelayMs(error, attempt, random)
        if (attempt > retriesMax) throw await this.#pauses.recordFinalFailure(sourceCall.origin, error)
        if (ms > waitMaxMs) throw withRetryTime(error, clock.now())
        this.#counters.addRetry(ms)
        meter?.record('errors', 1, { 'error.type': error.code, 'tidemark.outcome': 'retried' })
        meter?.record('waitDuration', ms / 1_000, { 'tidemark.reason': 'source' })
        sourceCall.log.warn('page failed, retrying', {
          code: error.code,
          attempt,
          waitMs: ms,
          requestId: sourceCall.requestId,
        })
        this.#options.onProgress?.({ kind: 'waiting', cycle: trace.facts.id, ms, code: error.code })
        await clock.sleep(ms, signal)
      }
    }
  }

  async #callOnce<T>(
    sourceCall: SourceCall,
    signal: AbortSignal,
    call: (context: SyncContext) => Promise<T>,
  ): Promise<T> {
    if (this.#heartbeat.isExpired()) await this.#heartbeat.renew()
    signal.throwIfAborted()
    await this.#pauses.check(null, signal)
    const { sync, limits } = this.#plan
    const timeoutController = new LinkedAbortController(signal)
    // A source may have any number of requests open at once.
    setMaxListeners(0, timeoutController.signal)
    const connection = await this.#openConnection()
    const context = this.#createContext(sourceCall, timeoutController.signal, connection)
    const timeout = rejectAfter(this.#options.ports.clock, limits.deadlineMs, signal, () => {
      const error = new SyncError('SOURCE_TIMEOUT', `${sync}: \`execute\` took longer than ${limits.deadlineMs} ms.`)
      timeoutController.abort(error)
      return error
    })
    try {
      const answer = Promise.resolve().then(() => call(context))
      // A source that ignores the signal is abandoned; its late result is never used.
      return await Promise.race([raceWithAbort(answer, signal), timeout.promise])
    } finally {
      timeout.cancel()
      unlinkUnused(timeoutController)
    }
  }

  async #checkAndPrepare(
    request: PageRequest,
    trace: PageTrace,
    page: Page,
    times: ResponseTimes | null,
  ): Promise<FetchedPage> {
    const checked = await this.#transformer.transformPage(
      checkPage(this.#plan.sync, page, this.#plan.limits.stateBytesMax),
    )
    return { request, trace, checked, prepared: await this.#preparer.prepare(checked.changes, checked.tables), times }
  }

  /** For every call: its settings may have changed, or an operator may have disabled it. */
  async #openConnection(): Promise<SourceConnection | undefined> {
    const { connection } = this.#plan
    return connection == null ? undefined : openConnection(this.#options, connection)
  }

  #createContext(sourceCall: SourceCall, signal: AbortSignal, connection: SourceConnection | undefined): SyncContext {
    const { ports, secrets } = this.#options
    return {
      clock: ports.clock,
      random: ports.random,
      log: sourceCall.log,
      signal,
      secrets,
      ...(connection !== undefined && { connection }),
      pacer: this.#pacer,
      cycle: sourceCall.trace.facts,
      partitions: this.#partitions,
      fetch: (input, init = {}) =>
        this.#fetch(sourceCall, input, { ...init, signal: combineSignals(signal, init.signal) }, signal),
    }
  }

  async #fetch(sourceCall: SourceCall, input: string | URL, init: RequestInit, signal: AbortSignal): Promise<Response> {
    await this.#pacer.wait()
    const origin = (sourceCall.origin = parseOrigin(input))
    await this.#pauses.check(origin, signal)
    // After every wait: a process may be suspended in one, also while it reads the pauses from the store.
    if (this.#heartbeat.isExpired()) {
      await this.#heartbeat.renew()
      await this.#pauses.check(origin, signal)
    }
    signal.throwIfAborted()
    const { clock } = this.#options.ports
    const requestedAt = clock.now()
    const response = await this.#trace.traceRequest(sourceCall.trace, input, init, (sent) =>
      this.#options.fetch(input, sent),
    )
    await this.#pauses.recordResponse(origin, response)
    sourceCall.requestId = readRequestId(response)
    const dateHeaderMs = Date.parse(response.headers.get('date') ?? '')
    // If the clock was set back meanwhile, the duration is unknown: at most the deadline of a page.
    const elapsedMs = clock.now() >= requestedAt ? clock.now() - requestedAt : this.#plan.limits.deadlineMs
    if (Number.isFinite(dateHeaderMs))
      sourceCall.times = earliestTimes(sourceCall.times, { dateHeaderMs, readSinceMs: dateHeaderMs - elapsedMs })
    const { 'http.request.method': method, 'server.address': host } = buildRequestAttributes(input, init.method)
    sourceCall.log.debug('the source responded', {
      method,
      host,
      status: response.status,
      requestId: sourceCall.requestId,
    })
    return response
  }
}

/** State of one call to the source, for logs and traces. */
interface SourceCall {
  readonly trace: PageTrace
  readonly log: Log
  /** The vendor's id of the last request. */
  requestId: string | undefined
  /** The origin of the last request; null before the first. */
  origin: string | null
  /** The times of this attempt. */
  times: ResponseTimes | null
}

function earliestTimes(a: ResponseTimes | null, b: ResponseTimes): ResponseTimes {
  if (a === null) return b
  return { dateHeaderMs: Math.min(a.dateHeaderMs, b.dateHeaderMs), readSinceMs: Math.min(a.readSinceMs, b.readSinceMs) }
}

function parseUncommitted(sync: string, changes: readonly PartitionChange[]): Map<string, JsonValue | null> {
  return new Map(changes.map(({ key, state }) => [key, parseState(sync, state) ?? null]))
}

/** A connector may return an error instead of throwing it. */
function unwrapResult(returned: Page | { error: unknown }): Page {
  if (typeof returned === 'object' && returned !== null && !('changes' in returned) && 'error' in returned)
    throw returned.error
  return returned as Page
}
