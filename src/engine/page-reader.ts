import { SyncError, type CycleFacts, type Page, type StateText, type SyncContext } from '../contract/index.ts'
import { checkPage, parseState, type CheckedPage } from './check-page.ts'
import { classify } from './classify.ts'
import type { CycleOptions } from './cycle-options.ts'
import type { KeptLease } from './keep-lease.ts'
import type { Pacer } from './pacer.ts'
import { PagePreparer, type PreparedPage } from './prepare-page.ts'
import { isWorthRetrying, pageDelayMs } from './retry.ts'
import type { SyncPlan } from './sync-plan.ts'
import type { Tally } from './tally.ts'
import { abortable, rejectAfter } from './waiting.ts'

export interface PageRequest {
  readonly state: StateText
  /** The tenant's sequence known now: whatever another sync lands from here on may be newer than what is read. */
  readonly readFrom: number
  readonly cycle: CycleFacts
}

export interface ReadPage {
  readonly request: PageRequest
  readonly checked: CheckedPage
  readonly prepared: PreparedPage
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
  readonly #lease: KeptLease
  readonly #stopping: AbortSignal
  readonly #tally: Tally
  readonly #preparer: PagePreparer

  constructor(plan: SyncPlan, options: CycleOptions, pacer: Pacer, lease: KeptLease, stopping: AbortSignal, tally: Tally) {
    this.#plan = plan
    this.#options = options
    this.#pacer = pacer
    this.#lease = lease
    this.#stopping = stopping
    this.#tally = tally
    this.#preparer = new PagePreparer(plan.sync, plan.databases, plan.limits)
  }

  read(request: PageRequest): Reading {
    const discarding = new AbortController()
    const page = this.#askWithRetries(request.cycle, AbortSignal.any([this.#stopping, discarding.signal]), async (context) => {
      const returned = await this.#plan.execute(parseState(this.#plan.sync, request.state), context)
      return this.#take(request, fromResult(returned))
    })
    page.catch(() => {})
    return { page, discard: () => discarding.abort(new SyncError('CANCELLED', 'The page is no longer wanted.')) }
  }

  /** Anything else of the source, with the same patience. */
  ask<T>(cycle: CycleFacts, call: (context: SyncContext) => Promise<T>): Promise<T> {
    return this.#askWithRetries(cycle, this.#stopping, call)
  }

  landed({ prepared }: ReadPage): void {
    this.#preparer.landed(prepared)
  }

  async #askWithRetries<T>(cycle: CycleFacts, signal: AbortSignal, call: (context: SyncContext) => Promise<T>): Promise<T> {
    const { clock, random, log } = this.#options.ports
    const { retriesMax, waitMaxMs } = this.#plan.limits
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#askOnce(cycle, signal, call)
      } catch (thrown) {
        const error = classify(signal.aborted ? signal.reason : thrown)
        if (signal.aborted || !isWorthRetrying(error) || attempt > retriesMax) throw error
        const ms = pageDelayMs(error, attempt, random)
        if (ms > waitMaxMs) throw error
        this.#tally.retried(ms)
        log.warn('page failed, trying again', { worker: this.#plan.worker, sync: this.#plan.sync, code: error.code, attempt, waitMs: ms })
        this.#options.onProgress?.({ kind: 'waiting', ms, code: error.code })
        await clock.sleep(ms, signal)
      }
    }
  }

  async #askOnce<T>(cycle: CycleFacts, signal: AbortSignal, call: (context: SyncContext) => Promise<T>): Promise<T> {
    if (this.#lease.isOver()) await this.#lease.renew()
    signal.throwIfAborted()
    const { sync, limits } = this.#plan
    const timing = new AbortController()
    const context = this.#context(cycle, AbortSignal.any([signal, timing.signal]))
    const late = rejectAfter(this.#options.ports.clock, limits.deadlineMs, signal, () => {
      const error = new SyncError('SOURCE_TIMEOUT', `${sync}: \`execute\` took longer than ${limits.deadlineMs} ms.`)
      timing.abort(error)
      return error
    })
    try {
      const asking = Promise.resolve().then(() => call(context))
      // A source that ignores the signal is left behind; whatever it still answers is never looked at.
      return await Promise.race([abortable(asking, signal), late.promise])
    } finally {
      late.cancel()
    }
  }

  async #take(request: PageRequest, page: Page): Promise<ReadPage> {
    const checked = checkPage(this.#plan.sync, page, this.#plan.limits.stateBytesMax)
    return { request, checked, prepared: await this.#preparer.prepare(checked.changes) }
  }

  #context(cycle: CycleFacts, signal: AbortSignal): SyncContext {
    const { ports, secrets } = this.#options
    const pacer = this.#pacer
    const lease = this.#lease
    const options = this.#options
    return {
      clock: ports.clock,
      random: ports.random,
      log: ports.log,
      signal,
      secrets,
      pacer,
      cycle,
      fetch: async (input, init = {}) => {
        await pacer.wait()
        if (lease.isOver()) await lease.renew()
        signal.throwIfAborted()
        return options.fetch(input, { ...init, signal: init.signal ? AbortSignal.any([signal, init.signal]) : signal })
      },
    }
  }
}

/** A connector may also return its failure instead of throwing it. */
function fromResult(returned: Page | { error: unknown }): Page {
  if (typeof returned === 'object' && returned !== null && !('changes' in returned) && 'error' in returned) throw returned.error
  return returned as Page
}
