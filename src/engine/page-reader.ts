import { SyncError, type CycleFacts, type Log, type Page, type StateText, type SyncContext } from '../contract/index.ts'
import { originOf, withEndOfWait, type AccountPauses } from './account-pauses.ts'
import { checkPage, parseState, type CheckedPage } from './check-page.ts'
import { childLog } from './child-log.ts'
import { classify } from './classify.ts'
import type { CycleOptions } from './cycle-options.ts'
import type { CycleTrace, PageTrace } from './cycle-trace.ts'
import type { KeptLease } from './keep-lease.ts'
import type { Pacer } from './pacer.ts'
import { PagePreparer, type PreparedPage } from './prepare-page.ts'
import { requestAttributes, requestIdOf } from './request-attributes.ts'
import { isWorthRetrying, pageDelayMs } from './retry.ts'
import type { SyncPlan } from './sync-plan.ts'
import type { Tally } from './tally.ts'
import { abortable, rejectAfter } from './waiting.ts'

export interface PageRequest {
  readonly state: StateText
  /** The tenant's sequence known now: whatever another sync lands from here on may be newer than what is read. */
  readonly readFrom: number
  readonly cycle: CycleFacts
  /** See SyncContext.unordered. */
  readonly unordered: readonly string[]
}

export interface ReadPage {
  readonly request: PageRequest
  readonly trace: PageTrace
  readonly checked: CheckedPage
  readonly prepared: PreparedPage
  readonly times: AnswerTimes | null
}

/** What the `Date` headers of a page's answers say, in the source's time. */
export interface AnswerTimes {
  /** The earliest of them. */
  readonly datedMs: number
  /** The earliest time at which one of the answers was true: when it was sent for, or put into a cache. */
  readonly readSinceMs: number
}

/** A page under way. Its failure waits for whoever takes the page; discarding it aborts what it is doing. */
export interface Reading {
  readonly page: Promise<ReadPage>
  discard(): void
}

/** Asks the source for pages: paced, in time, again after a passing failure, and never trusting what comes back. */
export class PageReader {
  readonly #plan: SyncPlan
  readonly #options: CycleOptions
  readonly #pacer: Pacer
  readonly #pauses: AccountPauses
  readonly #lease: KeptLease
  readonly #stopping: AbortSignal
  readonly #tally: Tally
  readonly #trace: CycleTrace
  readonly #preparer: PagePreparer

  constructor(
    plan: SyncPlan, options: CycleOptions, pacer: Pacer, pauses: AccountPauses, lease: KeptLease, stopping: AbortSignal, tally: Tally, trace: CycleTrace,
  ) {
    this.#plan = plan
    this.#options = options
    this.#pacer = pacer
    this.#pauses = pauses
    this.#lease = lease
    this.#stopping = stopping
    this.#tally = tally
    this.#trace = trace
    this.#preparer = new PagePreparer(plan.sync, plan.databases, plan.limits)
  }

  read(request: PageRequest): Reading {
    const discarding = new AbortController()
    const trace = this.#trace.page(request.cycle)
    const signal = AbortSignal.any([this.#stopping, discarding.signal])
    const page = trace.span.within(() => this.#askWithRetries(trace, signal, async (context, asking) => {
      const { unordered } = request
      const asked = unordered.length === 0 ? context : { ...context, unordered }
      const returned = await this.#plan.execute(parseState(this.#plan.sync, request.state), asked)
      return this.#take(request, trace, fromResult(returned), asking.times)
    }))
    page.catch((thrown: unknown) => this.#trace.failed(trace, thrown))
    return {
      page,
      discard: () => {
        this.#trace.dropped(trace, 'discarded')
        discarding.abort(new SyncError('CANCELLED', 'The page is no longer wanted.'))
      },
    }
  }

  /** Anything else of the source, with the same patience. */
  ask<T>(cycle: CycleFacts, call: (context: SyncContext) => Promise<T>): Promise<T> {
    // A source is asked with the context alone: more arguments would be taken for it by what wraps a source.
    return this.#askWithRetries(this.#trace.beside(cycle), this.#stopping, (context) => call(context))
  }

  landed({ prepared }: ReadPage): void {
    this.#preparer.landed(prepared)
  }

  async #askWithRetries<T>(
    trace: PageTrace, signal: AbortSignal, call: (context: SyncContext, asking: Asking) => Promise<T>,
  ): Promise<T> {
    const { clock, random, meter } = this.#options.ports
    const { retriesMax, waitMaxMs } = this.#plan.limits
    const asking: Asking = { trace, log: childLog(this.#options.ports.log, { cycle: trace.facts.id, page: trace.facts.page }), requestId: undefined, origin: null, times: null }
    for (let attempt = 1; ; attempt++) {
      try {
        asking.times = null
        return await this.#askOnce(asking, signal, (context) => call(context, asking))
      } catch (thrown) {
        const error = classify(signal.aborted ? signal.reason : thrown)
        if (signal.aborted || !isWorthRetrying(error)) throw error
        await this.#pauses.noteError(asking.origin, error)
        const ms = pageDelayMs(error, attempt, random)
        if (attempt > retriesMax) throw await this.#pauses.noteGivenUp(asking.origin, error)
        if (ms > waitMaxMs) throw withEndOfWait(error, clock.now())
        this.#tally.retried(ms)
        meter?.note('errors', 1, { 'error.type': error.code, 'tidemark.fate': 'retried' })
        meter?.note('waitDuration', ms / 1_000, { 'tidemark.reason': 'source' })
        asking.log.warn('page failed, trying again', { code: error.code, attempt, waitMs: ms, requestId: asking.requestId })
        this.#options.onProgress?.({ kind: 'waiting', cycle: trace.facts.id, ms, code: error.code })
        await clock.sleep(ms, signal)
      }
    }
  }

  async #askOnce<T>(asking: Asking, signal: AbortSignal, call: (context: SyncContext) => Promise<T>): Promise<T> {
    if (this.#lease.isOver()) await this.#lease.renew()
    signal.throwIfAborted()
    await this.#pauses.check(null, signal)
    const { sync, limits } = this.#plan
    const timing = new AbortController()
    const context = this.#context(asking, AbortSignal.any([signal, timing.signal]))
    const late = rejectAfter(this.#options.ports.clock, limits.deadlineMs, signal, () => {
      const error = new SyncError('SOURCE_TIMEOUT', `${sync}: \`execute\` took longer than ${limits.deadlineMs} ms.`)
      timing.abort(error)
      return error
    })
    try {
      const answer = Promise.resolve().then(() => call(context))
      // A source that ignores the signal is left behind; whatever it still answers is never looked at.
      return await Promise.race([abortable(answer, signal), late.promise])
    } finally {
      late.cancel()
    }
  }

  async #take(request: PageRequest, trace: PageTrace, page: Page, times: AnswerTimes | null): Promise<ReadPage> {
    const checked = checkPage(this.#plan.sync, page, this.#plan.limits.stateBytesMax)
    return { request, trace, checked, prepared: await this.#preparer.prepare(checked.changes, checked.tables), times }
  }

  #context(asking: Asking, signal: AbortSignal): SyncContext {
    const { ports, secrets } = this.#options
    return {
      clock: ports.clock,
      random: ports.random,
      log: asking.log,
      signal,
      secrets,
      pacer: this.#pacer,
      cycle: asking.trace.facts,
      fetch: (input, init = {}) => this.#request(asking, input, { ...init, signal: init.signal ? AbortSignal.any([signal, init.signal]) : signal }, signal),
    }
  }

  async #request(asking: Asking, input: string | URL, init: RequestInit, signal: AbortSignal): Promise<Response> {
    await this.#pacer.wait()
    if (this.#lease.isOver()) await this.#lease.renew()
    const origin = asking.origin = originOf(input)
    await this.#pauses.check(origin, signal)
    signal.throwIfAborted()
    const { clock } = this.#options.ports
    const askedAt = clock.now()
    const response = await this.#trace.request(asking.trace, input, init, (sent) => this.#options.fetch(input, sent))
    await this.#pauses.noteAnswer(origin, response)
    asking.requestId = requestIdOf(response)
    const datedMs = Date.parse(response.headers.get('date') ?? '')
    // A clock that was set back meanwhile does not tell how long it took: not longer than a page may take.
    const tookMs = clock.now() >= askedAt ? clock.now() - askedAt : this.#plan.limits.deadlineMs
    if (Number.isFinite(datedMs)) asking.times = earliest(asking.times, { datedMs, readSinceMs: datedMs - tookMs })
    const { 'http.request.method': method, 'server.address': host } = requestAttributes(input, init.method)
    asking.log.debug('the source answered', { method, host, status: response.status, requestId: asking.requestId })
    return response
  }
}

/** What is under way, for those who watch. */
interface Asking {
  readonly trace: PageTrace
  readonly log: Log
  /** What the vendor calls the request that it answered last. */
  requestId: string | undefined
  /** The origin that was asked last; null before the first request. */
  origin: string | null
  /** Of this attempt. */
  times: AnswerTimes | null
}

function earliest(a: AnswerTimes | null, b: AnswerTimes): AnswerTimes {
  if (a === null) return b
  return { datedMs: Math.min(a.datedMs, b.datedMs), readSinceMs: Math.min(a.readSinceMs, b.readSinceMs) }
}

/** A connector may also return its failure instead of throwing it. */
function fromResult(returned: Page | { error: unknown }): Page {
  if (typeof returned === 'object' && returned !== null && !('changes' in returned) && 'error' in returned) throw returned.error
  return returned as Page
}
