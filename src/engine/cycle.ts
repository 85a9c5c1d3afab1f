import {
  SyncError, type Begun, type Checkpoint, type Commit, type CommitOutcome, type CycleReport, type Inflight, type LandingCounts,
  type Lease, type Move, type Page, type StateText, type StopReason, type SyncContext, type SyncRef,
} from '../contract/index.ts'
import { checkPage, parseState, type CheckedPage } from './check-page.ts'
import { classify } from './classify.ts'
import type { CycleOptions, CycleResult } from './cycle-options.ts'
import { keepLease } from './keep-lease.ts'
import { LoopGuard } from './loop-guard.ts'
import { Pacer } from './pacer.ts'
import { PagePreparer, type PreparedPage } from './prepare-page.ts'
import { cycleDelayMs, isWorthRetrying, pageDelayMs, storeDelayMs } from './retry.ts'
import type { SyncPlan } from './sync-plan.ts'
import { abortable, rejectAfter } from './waiting.ts'

/**
 * One cycle: take the lease, read where it stands, then page by page: execute, check, commit. While a page commits, the
 * next is already being read; a failed commit throws it away.
 */
export async function runCycle(plan: SyncPlan, options: CycleOptions): Promise<CycleResult> {
  const ref: SyncRef = { worker: plan.worker, sync: plan.sync }
  const startedAt = options.ports.clock.now()
  const taken = await takeLease(ref, plan, options)
  if (taken.kind === 'held') {
    const error = new SyncError('LEASE_HELD', `${plan.sync} is being run by ${taken.by}.`)
    return notRun(ref, 'held', startedAt, options, error)
  }
  if (taken.checkpoint.paused) {
    await options.store.release(taken.lease)
    return notRun(ref, 'paused', startedAt, options, new SyncError('PAUSED', `${plan.sync} is paused.`))
  }
  return new Cycle(plan, options, ref, taken.lease, taken.checkpoint, startedAt).run()
}

class Cycle {
  readonly #plan: SyncPlan
  readonly #options: CycleOptions
  readonly #ref: SyncRef
  readonly #lease: Lease
  readonly #startedAt: number
  readonly #stopping = new AbortController()
  readonly #preparer: PagePreparer
  #checkpoint: Checkpoint
  #inflight!: Inflight
  #resumed = false
  #restarted = false
  #position = 0
  #pacer!: Pacer
  #guard!: LoopGuard
  #pages = 0
  #retries = 0
  #waitedMs = 0
  #tidemark: string | null
  #scope: string | null
  readonly #counts: LandingCounts = { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 }

  constructor(plan: SyncPlan, options: CycleOptions, ref: SyncRef, lease: Lease, checkpoint: Checkpoint, startedAt: number) {
    this.#plan = plan
    this.#options = options
    this.#ref = ref
    this.#lease = lease
    this.#checkpoint = checkpoint
    this.#startedAt = startedAt
    this.#scope = plan.scope
    this.#tidemark = checkpoint.tidemark
    this.#preparer = new PagePreparer(plan.sync, plan.databases, plan.limits)
  }

  async run(): Promise<CycleResult> {
    const { store, ports, signal } = this.#options
    const stop = (): void => this.#stopping.abort(new SyncError('CANCELLED', `${this.#plan.sync} was stopped.`))
    if (signal?.aborted === true) stop()
    signal?.addEventListener('abort', stop, { once: true })
    const keeping = keepLease({ store, clock: ports.clock, lease: this.#lease, ttlMs: this.#plan.limits.leaseTtlMs, stopping: this.#stopping })
    let stopReason: StopReason
    let error: SyncError | null = null
    try {
      this.#pacer = new Pacer(ports.clock, this.#stopping.signal, this.#plan.pacers, await this.#withStore(() => store.pacers(this.#ref)))
      await this.#begin(this.#options.fresh === true)
      stopReason = await this.#readPages()
    } catch (thrown) {
      error = classify(thrown)
      stopReason = stopReasonOf(error)
    } finally {
      keeping.stop()
      signal?.removeEventListener('abort', stop)
      this.#stopping.abort(new SyncError('CANCELLED', 'The cycle is over.'))
    }
    return this.#finish(stopReason, error)
  }

  /** The loop. It ends by the source's word, a budget, a pause, or an error. */
  async #readPages(): Promise<StopReason> {
    let reading = this.#read(this.#inflight.state, this.#inflight.page + 1)
    let overlaps = 0
    for (;;) {
      let read: ReadPage
      try {
        read = await reading.page
      } catch (error) {
        if (!this.#mayRestart(error)) throw error
        this.#options.ports.log.warn('the source rejected the position inside the cycle; starting over from the committed one', { worker: this.#plan.worker, sync: this.#plan.sync })
        this.#restarted = true
        await this.#begin(true)
        reading = this.#read(this.#inflight.state, this.#inflight.page + 1)
        continue
      }
      const { checked, prepared } = read
      if (checked.hasMore) this.#guard.check(read.asked, checked.state!, prepared.landings)
      const outOfBudget = checked.hasMore ? this.#outOfBudget() : null
      const next = checked.hasMore && outOfBudget === null ? this.#read(checked.state, this.#inflight.page + 2) : null

      const outcome = await this.#commit(read, this.#moveFor(checked, prepared)).catch((error: unknown) => {
        next?.discard()
        throw error
      })
      if (outcome.kind !== 'landed') {
        next?.discard()
        if (outcome.kind === 'braked') return this.#giveUp(read, outcome)
        if (++overlaps > OVERLAPS_MAX) throw new SyncError('OVERLAP_UNRESOLVED', `${this.#plan.sync}: another sync kept writing the same rows while page ${this.#inflight.page + 1} was read.`)
        this.#position = await this.#withStore(() => this.#options.store.position())
        reading = this.#read(this.#inflight.state, this.#inflight.page + 1)
        continue
      }
      overlaps = 0
      this.#noteLanded(checked, prepared, outcome)
      if (checked.hasMore) this.#guard.advance(read.asked, checked.state!, prepared.landings)
      if (!checked.hasMore) return 'complete'
      if (outOfBudget !== null) return outOfBudget
      if (outcome.paused) {
        next!.discard()
        return 'paused'
      }
      reading = next!
    }
  }

  async #begin(fresh: boolean): Promise<void> {
    const { store, ports, trigger } = this.#options
    const begun: Begun | null = await this.#withStore(() => store.begin(this.#lease, {
      at: ports.clock.now(), mode: this.#plan.mode, trigger, fresh, databases: this.#plan.databases.map((database) => database.name),
    }))
    if (begun === null) throw leaseLost(this.#plan)
    this.#inflight = begun.inflight
    this.#resumed = begun.resumed
    this.#position = begun.position
    this.#guard = new LoopGuard(this.#plan.sync, this.#plan.limits.emptyPagesMax, begun.inflight.state)
    this.#options.onProgress?.({ kind: 'begun', cycle: begun.inflight.cycle, resumed: begun.resumed, page: begun.inflight.page })
  }

  // ── reading ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Starts reading a page. Its failure waits for whoever takes the page; discarding it aborts what it is doing. */
  #read(state: StateText, number: number): Reading {
    const discarding = new AbortController()
    const signal = AbortSignal.any([this.#stopping.signal, discarding.signal])
    const page = this.#readWithRetries(state, number, signal)
    page.catch(() => {})
    return { page, discard: () => discarding.abort(new SyncError('CANCELLED', 'The page is no longer wanted.')) }
  }

  async #readWithRetries(state: StateText, number: number, signal: AbortSignal): Promise<ReadPage> {
    const { clock, random, log } = this.#options.ports
    const { retriesMax, waitMaxMs } = this.#plan.limits
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#readOnce(state, number, signal)
      } catch (thrown) {
        const error = signal.aborted ? classify(signal.reason) : classify(thrown)
        if (signal.aborted || !isWorthRetrying(error) || attempt > retriesMax) throw error
        const ms = pageDelayMs(error, attempt, random)
        if (ms > waitMaxMs) throw error
        this.#retries++
        this.#waitedMs += ms
        log.warn('page failed, trying again', { worker: this.#plan.worker, sync: this.#plan.sync, code: error.code, attempt, waitMs: ms })
        this.#options.onProgress?.({ kind: 'waiting', ms, code: error.code })
        await clock.sleep(ms, signal)
      }
    }
  }

  async #readOnce(state: StateText, number: number, signal: AbortSignal): Promise<ReadPage> {
    const { clock } = this.#options.ports
    const { deadlineMs, stateBytesMax } = this.#plan.limits
    // Taken before the source is asked: whatever another sync lands from here on may be newer than what we read.
    const readFrom = this.#position
    const timing = new AbortController()
    const deadline = AbortSignal.any([signal, timing.signal])
    const executing = Promise.resolve().then(() => this.#plan.execute(parseState(state), this.#context(number, deadline)))
    const late = rejectAfter(clock, deadlineMs, deadline, () => {
      const error = new SyncError('SOURCE_TIMEOUT', `${this.#plan.sync}: \`execute\` took longer than ${deadlineMs} ms.`)
      timing.abort(error)
      return error
    })
    try {
      // A source that ignores the signal is left behind; whatever it still answers is never looked at.
      const page = fromResult(await Promise.race([abortable(executing, signal), late.promise]))
      const checked = checkPage(this.#plan.sync, page, stateBytesMax)
      const prepared = await this.#preparer.prepare(checked.changes)
      return { asked: state, readFrom, checked, prepared }
    } finally {
      late.cancel()
    }
  }

  #context(page: number, signal: AbortSignal): SyncContext {
    const { ports, fetch, secrets } = this.#options
    const pacer = this.#pacer
    return {
      clock: ports.clock,
      random: ports.random,
      log: ports.log,
      signal,
      secrets,
      pacer,
      fetch: async (input, init = {}) => {
        await pacer.wait()
        return fetch(input, { ...init, signal: init.signal ? AbortSignal.any([signal, init.signal]) : signal })
      },
      cycle: { id: this.#inflight.cycle, mode: this.#plan.mode, startedAt: this.#inflight.startedAt, page },
    }
  }

  /** A position that only this cycle used may be given up: the committed one is still there. Once, or it would never end. */
  #mayRestart(error: unknown): boolean {
    return error instanceof SyncError && error.code === 'CURSOR_REJECTED' && this.#inflight.page > 0 && !this.#restarted
  }

  #outOfBudget(): 'max_pages' | 'timeout' | null {
    const { pagesMax, minutesMax } = this.#plan.limits
    if (this.#pages + 1 >= pagesMax) return 'max_pages'
    if (minutesMax > 0 && this.#options.ports.clock.now() - this.#startedAt >= minutesMax * 60_000) return 'timeout'
    return null
  }

  // ── landing ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #moveFor(checked: CheckedPage, prepared: PreparedPage): Move {
    const { cycle, state: asked } = this.#inflight
    const page = this.#inflight.page + 1
    if (checked.hasMore) return { kind: 'continue', cycle, page, state: checked.state }
    const scope = joinScope(this.#plan.scope, checked.scope) ?? this.#scope
    const replace = this.#plan.mode === 'replace'
    return {
      kind: 'complete', cycle, page,
      // Replace: state is only for paging. Incremental without a new state: what this page was asked with still holds.
      state: replace ? null : (checked.state ?? asked),
      tidemark: later(this.#tidemark, prepared.tidemark),
      scope,
      sweep: replace ? this.#sweepFor(scope) : null,
    }
  }

  #sweepFor(scope: string | null): { maxShare: number; allowEmpty: boolean } {
    if (this.#options.allowDeletes === true) return { maxShare: 1, allowEmpty: true }
    // Somebody else may be asking, or for something else: then what is missing is not known to be gone.
    const sameScope = this.#checkpoint.scope === null || this.#checkpoint.scope === scope
    return sameScope ? this.#plan.sweep : { maxShare: 0, allowEmpty: false }
  }

  async #commit(read: ReadPage, move: Move): Promise<Exclude<CommitOutcome, { kind: 'fenced' | 'conflict' }>> {
    const { store, ports } = this.#options
    const commit: Commit = {
      lease: this.#lease,
      version: this.#checkpoint.version,
      at: ports.clock.now(),
      move,
      owner: this.#plan.owner,
      landings: read.prepared.landings,
      quarantined: read.prepared.quarantined,
      columns: read.prepared.columns,
      readFrom: read.readFrom,
      upstreamToleranceMs: this.#plan.upstreamToleranceMs,
      pacers: this.#pacer.slots(),
    }
    let unsure = false
    const outcome = await this.#withStore(async () => {
      try {
        return await store.commit(commit)
      } catch (error) {
        if (classify(error).code === 'COMMIT_UNKNOWN') unsure = true
        throw error
      }
    })
    if (outcome.kind === 'fenced') throw leaseLost(this.#plan)
    if (outcome.kind === 'conflict') {
      // Only our own lost commit can have brought the registry exactly where this one leads.
      if (unsure && hasLanded(outcome.checkpoint, commit)) {
        return { kind: 'landed', version: outcome.checkpoint.version, position: await this.#withStore(() => store.position()), counts: noneCounted(), paused: outcome.checkpoint.paused }
      }
      throw new SyncError('VERSION_CONFLICT', `${this.#plan.sync}: the checkpoint is at version ${outcome.checkpoint.version}, the cycle began at ${commit.version}.`)
    }
    return outcome
  }

  #noteLanded(checked: CheckedPage, prepared: PreparedPage, outcome: Extract<CommitOutcome, { kind: 'landed' }>): void {
    this.#pages++
    this.#position = outcome.position
    this.#tidemark = later(this.#tidemark, prepared.tidemark)
    this.#scope = joinScope(this.#plan.scope, checked.scope) ?? this.#scope
    this.#inflight = { ...this.#inflight, page: this.#inflight.page + 1, state: checked.state }
    this.#checkpoint = { ...this.#checkpoint, version: outcome.version }
    for (const name of Object.keys(outcome.counts) as Array<keyof LandingCounts>) this.#counts[name] += outcome.counts[name]
    this.#options.onProgress?.({ kind: 'landed', page: this.#inflight.page, counts: { ...this.#counts }, tidemark: this.#tidemark, position: outcome.position })
  }

  /** The sweep was refused: land what was read, forget the cycle, so that the next one lists everything anew. */
  async #giveUp(read: ReadPage, braked: Extract<CommitOutcome, { kind: 'braked' }>): Promise<never> {
    const scopeChanged = this.#checkpoint.scope !== null && joinScope(this.#plan.scope, read.checked.scope) !== this.#checkpoint.scope
    const error = new SyncError(
      scopeChanged ? 'SCOPE_CHANGED' : 'MASS_DELETE',
      `${this.#plan.sync}: the source listed ${braked.owned - braked.doomed} of the ${braked.owned} rows in ${braked.database}; ${braked.doomed} would be deleted, and none were.`,
    )
    const { cycle, page } = this.#inflight
    const outcome = await this.#commit(read, { kind: 'abandon', cycle, page: page + 1, reason: error.message })
    if (outcome.kind === 'landed') this.#noteLanded(read.checked, read.prepared, outcome)
    throw error
  }

  /** A busy database is tried again, a bounded number of times; the page is not read again for it. */
  async #withStore<T>(call: () => Promise<T>): Promise<T> {
    const { clock, random } = this.#options.ports
    for (let attempt = 1; ; attempt++) {
      try {
        return await call()
      } catch (thrown) {
        const error = classify(thrown)
        if (!STORE_RETRIED.has(error.code) || attempt > STORE_RETRIES_MAX) throw error
        const ms = storeDelayMs(attempt, random)
        this.#retries++
        this.#waitedMs += ms
        await clock.sleep(ms)
      }
    }
  }

  async #finish(stopReason: StopReason, error: SyncError | null): Promise<CycleResult> {
    const { store, ports } = this.#options
    const endedAt = ports.clock.now()
    const failed = error !== null && error.code !== 'CANCELLED' ? error : null
    const retryAt = failed === null ? null : endedAt + cycleDelayMs(failed, this.#checkpoint.failures + 1, ports.random)
    const report: CycleReport = {
      cycle: this.#inflight?.cycle ?? 0, stopReason, endedAt, pages: this.#pages, counts: { ...this.#counts },
      retries: this.#retries, waitedMs: this.#waitedMs,
      error: failed === null ? null : { code: failed.code, message: failed.message },
      retryAt,
    }
    // What matters has landed; a lease that cannot be given back runs out by itself.
    await store.release(this.#lease, report).catch((thrown: unknown) => {
      ports.log.warn('the lease could not be released', { worker: this.#plan.worker, sync: this.#plan.sync, code: classify(thrown).code })
    })
    return {
      ...this.#ref, cycle: this.#inflight?.cycle ?? null, stopReason, resumed: this.#resumed, pages: this.#pages, counts: { ...this.#counts },
      retries: this.#retries, waitedMs: this.#waitedMs, startedAt: this.#startedAt, endedAt,
      version: this.#checkpoint.version, position: this.#position, tidemark: this.#tidemark,
      error: failed === null ? null : { code: failed.code, message: failed.message, advice: failed.advice },
      retryAt,
    }
  }
}

const OVERLAPS_MAX = 20
const STORE_RETRIES_MAX = 6
const STORE_RETRIED: ReadonlySet<string> = new Set(['STORE_BUSY', 'COMMIT_UNKNOWN'])

interface ReadPage {
  readonly asked: StateText
  readonly readFrom: number
  readonly checked: CheckedPage
  readonly prepared: PreparedPage
}

interface Reading {
  readonly page: Promise<ReadPage>
  discard(): void
}

async function takeLease(ref: SyncRef, plan: SyncPlan, { store, ports, holder, isDead }: CycleOptions): ReturnType<CycleOptions['store']['acquire']> {
  const request = { holder, ttlMs: plan.limits.leaseTtlMs, at: ports.clock.now() }
  const first = await store.acquire(ref, request)
  if (first.kind === 'held' && isDead?.(first.by) === true) return store.acquire(ref, { ...request, evict: first.by })
  return first
}

/** Whether a commit whose answer was lost did its work, told by where the registry stands. */
function hasLanded(checkpoint: Checkpoint, { move, version }: Commit): boolean {
  if (move.kind === 'continue') return checkpoint.inflight?.cycle === move.cycle && checkpoint.inflight.page === move.page
  if (move.kind === 'complete') return checkpoint.version === version + 1 && checkpoint.committedBy === move.cycle
  return checkpoint.inflight === null && checkpoint.version === version
}

/** A connector may also return its failure instead of throwing it. */
function fromResult(returned: Page | { error: unknown }): Page {
  if (typeof returned === 'object' && returned !== null && !('changes' in returned) && 'error' in returned) throw returned.error
  return returned as Page
}

function stopReasonOf(error: SyncError): StopReason {
  switch (error.code) {
    case 'CANCELLED':
      return 'cancelled'
    case 'LEASE_LOST':
      return 'lease_lost'
    case 'COMMIT_UNKNOWN':
      return 'unknown'
    case 'MASS_DELETE':
    case 'SCOPE_CHANGED':
      return 'blocked'
    default:
      return 'error'
  }
}

function leaseLost(plan: SyncPlan): SyncError {
  return new SyncError('LEASE_LOST', `${plan.sync}: another runner took over.`)
}

function joinScope(declared: string | null, seen: string | null): string | null {
  return declared === null || seen === null ? declared ?? seen : `${declared} ${seen}`
}

/** Canonical instants compare as text; a cursor is simply the latest one. */
function later(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return b ?? a
  return a > b && isInstant(a) && isInstant(b) ? a : b
}

function isInstant(text: string): boolean {
  return text.length === 27 && text.endsWith('Z')
}

function noneCounted(): LandingCounts {
  return { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 }
}

function notRun(ref: SyncRef, stopReason: 'held' | 'paused', startedAt: number, { ports }: CycleOptions, error: SyncError): CycleResult {
  return {
    ...ref, cycle: null, stopReason, resumed: false, pages: 0, counts: noneCounted(), retries: 0, waitedMs: 0, startedAt, endedAt: ports.clock.now(),
    version: 0, position: 0, tidemark: null, error: { code: error.code, message: error.message, advice: error.advice }, retryAt: null,
  }
}
