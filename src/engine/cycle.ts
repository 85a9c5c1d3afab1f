import {
  SyncError,
  type Checkpoint,
  type Commit,
  type CommitOutcome,
  type CycleFacts,
  type Inflight,
  type Lease,
  type ListingContext,
  type Log,
  type StateTransition,
  type StateText,
  type StopReason,
  type Sweep,
  type SyncRef,
} from '../contract/index.ts'
import { AccountPauses, PauseError } from './account-pauses.ts'
import { requestBackfill, ensureAnchor } from './anchor.ts'
import type { CheckedPage } from './check-page.ts'
import { createChildLog } from '../telemetry/child-log.ts'
import { classifyError } from './classify-error.ts'
import type { CycleOptions, CycleResult } from './cycle-options.ts'
import { CycleTrace } from './cycle-trace.ts'
import { DriftDetector } from './drift-detector.ts'
import { assertHistoryRetained, findHistoryStart, getRetentionMs } from './source-retention.ts'
import { startLeaseHeartbeat } from './lease-heartbeat.ts'
import { SourceLookups } from './source-lookups.ts'
import { LateRowMonitor } from './late-row-monitor.ts'
import { LoopGuard, type LoopGuardStep } from './loop-guard.ts'
import { Pacer } from './pacer.ts'
import { PageReader, type PendingPage, type FetchedPage } from './page-reader.ts'
import { cycleDelayMs, waitHintMs } from './retry.ts'
import { RetryingStore } from './retrying-store.ts'
import {
  ABSENT_LOOKUPS_MAX,
  assertDeletesSupported,
  buildCommitDeletes,
  findConcurrentListings,
  buildCommitOwners,
  buildCommitSchemaModes,
  type SyncPlan,
} from './sync-plan.ts'
import { noCounts, CycleCounters } from './cycle-counters.ts'
import { CycleTidemark, isCoveredByBackfill, type PageTimes } from './cycle-tidemark.ts'
import { required } from '../values/required.ts'

/**
 * Runs one cycle: acquires the lease, loads the checkpoint, then executes, checks and commits page by page. While a
 * page commits, the next one is already being read; a failed commit discards it.
 */
export async function runCycle(plan: SyncPlan, options: CycleOptions): Promise<CycleResult> {
  const {
    ports,
    store: { tenant },
    trigger,
  } = options
  const trace = new CycleTrace({ plan, ports, tenant, trigger })
  return trace.traceCycle(() =>
    acquireAndRun(
      plan,
      {
        ...options,
        ports: { ...ports, log: createChildLog(ports.log, { tenant, worker: plan.worker, sync: plan.sync }) },
      },
      trace,
    ),
  )
}

async function acquireAndRun(plan: SyncPlan, options: CycleOptions, trace: CycleTrace): Promise<CycleResult> {
  const startedAt = options.ports.clock.now()
  const counters = new CycleCounters()
  const retryingStore = new RetryingStore(options.store, options.ports, counters)
  const result = await acquireLease(plan, options, retryingStore)
  if (result.kind === 'held') {
    return trace.endCycle(
      buildSkippedResult(
        plan,
        'held',
        startedAt,
        options,
        new SyncError('LEASE_HELD', `${plan.sync} is being run by ${result.holder}.`),
      ),
      null,
    )
  }
  if (result.checkpoint.paused) {
    await options.store.release(result.lease)
    return trace.endCycle(
      buildSkippedResult(plan, 'paused', startedAt, options, new SyncError('PAUSED', `${plan.sync} is paused.`)),
      null,
    )
  }
  return new Cycle(plan, options, retryingStore, counters, trace, result.lease, result.checkpoint, startedAt).run()
}

class Cycle {
  readonly #plan: SyncPlan
  readonly #options: CycleOptions
  readonly #lease: Lease
  readonly #startedAt: number
  readonly #abortController = new AbortController()
  readonly #counters: CycleCounters
  readonly #retryingStore: RetryingStore
  readonly #trace: CycleTrace
  /** Names the sync and, once it has begun, the cycle. */
  #log: Log
  #checkpoint: Checkpoint
  #inflight: Inflight | null = null
  #reader!: PageReader
  #lookups!: SourceLookups
  #guard!: LoopGuard
  #driftDetector = new DriftDetector({})
  #headSequence = 0
  /** The last sequence that was committed at least the source's lag before the cycle began. */
  #settledSequence = 0
  #resumed = false
  #restarted = false
  /** The source must still have every change since this time; see assertHistoryRetained. */
  #historySince = Infinity
  #lateRows: LateRowMonitor | null = null
  #tidemark: CycleTidemark
  #scope: string | null
  #endReason: string | null = null

  constructor(
    plan: SyncPlan,
    options: CycleOptions,
    retryingStore: RetryingStore,
    counters: CycleCounters,
    trace: CycleTrace,
    lease: Lease,
    checkpoint: Checkpoint,
    startedAt: number,
  ) {
    this.#plan = plan
    this.#options = options
    this.#lease = lease
    this.#checkpoint = checkpoint
    this.#startedAt = startedAt
    this.#tidemark = CycleTidemark.create(checkpoint.tidemark, null)
    this.#scope = plan.scope
    this.#retryingStore = retryingStore
    this.#counters = counters
    this.#trace = trace
    this.#log = options.ports.log
  }

  async run(): Promise<CycleResult> {
    const { store, ports, signal } = this.#options
    const stop = (): void => this.#abortController.abort(new SyncError('CANCELLED', `${this.#plan.sync} was stopped.`))
    if (signal?.aborted === true) stop()
    signal?.addEventListener('abort', stop, { once: true })
    const heartbeat = startLeaseHeartbeat({
      store,
      clock: ports.clock,
      lease: this.#lease,
      ttlMs: this.#plan.limits.leaseTtlMs,
      requestedAt: this.#startedAt,
      cycleAbort: this.#abortController,
    })
    const pauseStore = this.#options.pauses ?? store
    const pauses = new AccountPauses(this.#plan, ports, {
      recordPause: (request) => this.#retryingStore.call(() => pauseStore.recordPause(request)),
      pauses: (query) => this.#retryingStore.call(() => pauseStore.pauses(query)),
    })
    let stopReason: StopReason
    let error: SyncError | null = null
    try {
      const { pacers, worker } = this.#plan
      const pacer = new Pacer(ports, this.#abortController.signal, pacers, (request) =>
        this.#retryingStore.call(() => store.takeSlots({ worker, ...request })),
      )
      this.#reader = new PageReader(
        this.#plan,
        this.#options,
        pacer,
        pauses,
        heartbeat,
        this.#abortController.signal,
        this.#counters,
        this.#trace,
      )
      this.#lookups = new SourceLookups(this.#plan, this.#reader, this.#log)
      assertDeletesSupported(this.#plan, store)
      const inflight = await this.#beginCycle(this.#options.fresh === true || this.#isOutdated())
      this.#lateRows = await LateRowMonitor.create(this.#plan, this.#retryingStore)
      stopReason = await this.#readPages(inflight)
      if (stopReason === 'complete') this.#lateRows?.report(this.#log, ports.clock.now())
    } catch (thrown) {
      error = classifyError(thrown)
      stopReason = toStopReason(error)
      if (this.#isHistoryLost(error)) error = await this.#requestBackfill(error)
    } finally {
      heartbeat.stop()
      signal?.removeEventListener('abort', stop)
      this.#abortController.abort(new SyncError('CANCELLED', 'The cycle is over.'))
    }
    await pauses.flush(ports.random)
    return this.#finish(stopReason, error)
  }

  /** The page loop. It ends when the source has no more pages, or by a limit, a pause or an error. */
  async #readPages(inflight: Inflight): Promise<StopReason> {
    let reading = this.#startRead(inflight, inflight.state, 1)
    let overlaps = 0
    let oldPages = 0
    let unordered: readonly string[] = []
    for (;;) {
      const read = await reading.page.catch((error: unknown) => this.#restartOrThrow(error, inflight))
      this.#assertHistoryRetained()
      if (read === null) {
        // The first page uses the committed state, so the same request is repeated.
        if (inflight.page > 0) inflight = await this.#beginCycle(true)
        reading = this.#startRead(inflight, inflight.state, 1)
        continue
      }
      // After OLD_PAGES_MAX attempts the page is accepted: the clock is probably wrong.
      if (this.#isOlderThanPreviousPages(read) && oldPages++ < OLD_PAGES_MAX) {
        this.#trace.endDroppedPage(read.trace, 'discarded')
        reading = this.#startRead(inflight, inflight.state, 1, unordered)
        continue
      }
      oldPages = 0
      const { checked, prepared } = read
      const step = checked.hasMore
        ? this.#guard.check(inflight, required(checked.state, 'state of a page with more to come'), prepared)
        : null
      const budgetEnd = checked.hasMore ? this.#findExceededBudget() : null
      const next = checked.hasMore && budgetEnd === null ? this.#startRead(inflight, checked.state, 2) : null

      const drift = checked.hasMore
        ? this.#driftDetector.detect(prepared.columns)
        : await this.#describeFinalDrift(prepared)
      // If this fails, the end of the cycle also aborts the prefetched page.
      const transition =
        step === null
          ? this.#buildFinalTransition(inflight, read, await this.#computeFinalTidemark(inflight, read))
          : this.#buildPageTransition(inflight, read, step)
      const outcome = await this.#commit(read, transition, drift)
      if (outcome.kind !== 'landed') {
        next?.discard()
        if (outcome.kind !== 'overlap') return this.#abandonCycle(inflight, read, outcome)
        this.#trace.endDroppedPage(read.trace, 'overlap')
        if (++overlaps > OVERLAPS_MAX)
          throw new SyncError(
            'OVERLAP_UNRESOLVED',
            `${this.#plan.sync}: another sync kept writing the same rows while page ${inflight.page + 1} was read.`,
          )
        unordered = [...new Set([...unordered, ...outcome.keys])]
        this.#headSequence = await this.#retryingStore.call((store) => store.headSequence())
        reading = this.#startRead(inflight, inflight.state, 1, unordered)
        continue
      }
      overlaps = 0
      unordered = []
      if (step !== null) this.#guard.advance(step)
      this.#inflight = inflight = { ...inflight, page: inflight.page + 1, state: checked.state }
      const before = this.#headSequence
      this.#recordLanding(read, outcome, transition, drift)
      await this.#lateRows?.inspectPage(outcome, before, prepared.landings)
      if (!checked.hasMore) return 'complete'
      if (budgetEnd !== null) return budgetEnd
      if (outcome.paused) return 'paused'
      reading = required(next, 'page read ahead')
    }
  }

  async #beginCycle(fresh: boolean): Promise<Inflight> {
    const { ports, trigger, onProgress } = this.#options
    const { mode, databases, limits, sync } = this.#plan
    const started = await this.#retryingStore.call((store) =>
      store.beginCycle(this.#lease, {
        at: ports.clock.now(),
        mode,
        trigger,
        fresh,
        databases: databases.map((database) => database.name),
      }),
    )
    if (started === null) throw new SyncError('LEASE_LOST', `${sync}: another runner took over.`)
    this.#inflight = started.inflight
    this.#log = createChildLog(ports.log, { cycle: started.inflight.cycle })
    this.#resumed = started.resumed
    this.#headSequence = started.headSequence
    // A resumed cycle keeps the scope and tidemark of the pages before the interruption.
    this.#scope = started.inflight.scope ?? this.#plan.scope
    this.#tidemark = CycleTidemark.create(this.#checkpoint.tidemark, started.inflight)
    this.#driftDetector = new DriftDetector(started.columns)
    this.#guard = new LoopGuard(sync, limits.emptyPagesMax, started.inflight, this.#checkpoint.lastError)
    this.#settledSequence = started.inflight.startSequence
    if (this.#plan.mode === 'replace' && this.#plan.lagMs)
      await this.#loadSettledSequence(started.inflight, this.#plan.lagMs)
    onProgress?.({
      kind: 'begun',
      cycle: started.inflight.cycle,
      resumed: started.resumed,
      page: started.inflight.page,
    })
    if (started.inflight.page === 0)
      await ensureAnchor(
        this.#plan,
        this.#options,
        this.#reader,
        this.#retryingStore,
        toCycleFacts(started.inflight, 1),
      )
    this.#historySince = await this.#findHistoryStart(started.inflight)
    this.#assertHistoryRetained()
    return started.inflight
  }

  #requireInflight(): Inflight {
    return required(this.#inflight, 'unfinished cycle')
  }

  /** Invariants 5 and 6: changes more recent than the source's lag may not be visible in its listing yet. */
  async #loadSettledSequence({ startedAt, startSequence }: Inflight, lagMs: number): Promise<void> {
    const sequence = await this.#retryingStore.call((store) => store.sequenceBefore(startedAt - lagMs))
    this.#settledSequence = Math.min(startSequence, sequence)
  }

  /** The unfinished cycle of a backfill that was requested again since: it began before the new anchor. */
  #isOutdated(): boolean {
    const { inflight, backfillNeeded } = this.#checkpoint
    return inflight !== null && backfillNeeded?.cycle === inflight.cycle
  }

  /** Infinity if nothing can be lost: the source has no limit, or the cycle has no state to continue from. */
  async #findHistoryStart(inflight: Inflight): Promise<number> {
    const { worker, pair } = this.#plan
    if (getRetentionMs(this.#plan) === null || inflight.state === null) return Infinity
    const backfill =
      pair?.role === 'delta'
        ? await this.#retryingStore.call((store) => store.readCheckpoint({ worker, sync: pair.backfill }))
        : null
    return findHistoryStart(this.#checkpoint, inflight, backfill)
  }

  /** Called before the first page, and before a page that has been read is committed. */
  #assertHistoryRetained(): void {
    assertHistoryRetained(this.#plan, this.#historySince, this.#options.ports.clock.now())
  }

  /** `ahead` is 1 for the page after the last committed one. */
  #startRead(inflight: Inflight, state: StateText, ahead: 1 | 2, unordered: readonly string[] = []): PendingPage {
    return this.#reader.read({
      state,
      unordered,
      readAtSequence: this.#headSequence,
      cycle: toCycleFacts(inflight, ahead),
    })
  }

  /**
   * Returns null if the source rejected a state: the committed one is used instead. Only once, or it might never end.
   */
  #restartOrThrow(error: unknown, inflight: Inflight): null {
    if (classifyError(error).code !== 'CURSOR_REJECTED' || inflight.state === null || this.#restarted) throw error
    this.#restarted = true
    this.#log.warn('the source rejected the state; restarting from the committed state')
    return null
  }

  /**
   * True also if the source rejects a state again after the cycle restarted from the committed one: the changes since
   * then can no longer be read, at the first page or at the first page of a later stream.
   */
  #isHistoryLost({ code }: SyncError): boolean {
    if (this.#plan.mode !== 'incremental') return false
    return (
      code === 'HISTORY_LOST' || (code === 'CURSOR_REJECTED' && this.#restarted && this.#checkpoint.committed !== null)
    )
  }

  #findExceededBudget(): 'max_pages' | 'timeout' | null {
    const { pagesMax, minutesMax } = this.#plan.limits
    if (this.#counters.pages + 1 >= pagesMax) return 'max_pages'
    if (minutesMax > 0 && this.#options.ports.clock.now() - this.#startedAt >= minutesMax * 60_000) return 'timeout'
    return null
  }

  #buildPageTransition({ cycle, page, mode }: Inflight, read: FetchedPage, step: LoopGuardStep): CycleTransition {
    const { state, scope } = read.checked
    const tidemark = this.#applyReadTime(read).withPage(mode, toPageTimes(read))
    return {
      kind: 'continue',
      cycle,
      page: page + 1,
      state,
      tidemark: tidemark.candidate,
      scope: this.#mergeScope(scope),
      guardState: tidemark.serializeWith(step.guardState),
    }
  }

  #buildFinalTransition(
    { cycle, page, state: requestState }: Inflight,
    { checked }: FetchedPage,
    tidemark: string | null,
  ): CycleTransition {
    const scope = this.#mergeScope(checked.scope)
    const replace = this.#plan.mode === 'replace'
    return {
      kind: 'complete',
      cycle,
      page: page + 1,
      // Replace: state is only for paging. Incremental without a new state: the state of this request is still valid.
      state: replace ? null : (checked.state ?? requestState),
      tidemark,
      scope,
      sweep: replace ? this.#buildSweep(scope) : null,
      endReason: checked.endReason,
    }
  }

  async #computeFinalTidemark({ mode, startedAt }: Inflight, read: FetchedPage): Promise<string | null> {
    const { worker, pair } = this.#plan
    if (pair?.role === 'delta') {
      const backfill = await this.#retryingStore.call((store) => store.readCheckpoint({ worker, sync: pair.backfill }))
      if (!isCoveredByBackfill(this.#checkpoint, backfill)) return null
    }
    return this.#applyReadTime(read).computeFinal({ mode, startedAtMs: startedAt }, toPageTimes(read))
  }

  #applyReadTime({ times }: FetchedPage): CycleTidemark {
    return (this.#tidemark = this.#tidemark.withReadTime(times?.readSinceMs ?? null))
  }

  /** Invariant 6: a listing page older than the pages before it comes from a cache, or a clock is wrong. */
  #isOlderThanPreviousPages({ times }: FetchedPage): boolean {
    return this.#plan.mode === 'replace' && times !== null && this.#tidemark.isReadAfter(times.dateHeaderMs)
  }

  #buildSweep(scope: string | null): Sweep {
    const settledSequence = this.#settledSequence
    const { allowDeletes, actor, trigger } = this.#options
    if (allowDeletes === true) return { maxShare: 1, allowEmpty: true, settledSequence, allowedBy: actor ?? trigger }
    const { maxShare, allowEmpty, lookupsMax = ABSENT_LOOKUPS_MAX } = this.#plan.sweep
    // With another account or filter, a missing row is not known to be deleted.
    const limits = this.#isScopeChanged(scope) ? { maxShare: 0, allowEmpty: false } : { maxShare, allowEmpty }
    const { database } = this.#lookups
    return {
      ...limits,
      settledSequence,
      ...(database !== null && lookupsMax > 0 && { confirmAbsent: { database, limit: lookupsMax } }),
    }
  }

  #isScopeChanged(scope: string | null): boolean {
    return this.#checkpoint.scope !== null && this.#checkpoint.scope !== scope
  }

  #mergeScope(seen: string | null): string | null {
    if (seen === null) return this.#scope
    return this.#plan.scope === null ? seen : `${this.#plan.scope} ${seen}`
  }

  /**
   * Includes fields that are gone from a listing that ends with this page. Those are reported once, not with every
   * listing.
   */
  async #describeFinalDrift({ columns }: FetchedPage['prepared']): Promise<string[]> {
    const messages = this.#driftDetector.detect(columns)
    const removed = this.#plan.mode === 'replace' && !this.#resumed ? this.#driftDetector.detectRemoved(columns) : []
    if (removed.length === 0) return messages
    const audit = await this.#retryingStore.call((store) => store.audit(this.#lease.ref, { limit: AUDIT_LOOKBACK_MAX }))
    const reported = audit.filter(({ action }) => action === 'drift').flatMap(({ reason }) => reason.split('; '))
    return [...messages, ...removed.filter((message) => !reported.includes(message))]
  }

  /**
   * Commits a page. If the listing alone does not decide, the source's lookup is called and the page is committed
   * again.
   */
  async #commit(read: FetchedPage, transition: StateTransition, drift: readonly string[] = []): Promise<PageOutcome> {
    const { request, trace, checked, prepared } = read
    let commit = this.#buildCommit(read, transition, drift)
    if (checked.isLog || prepared.landings.length > 0)
      commit = { ...commit, ...(await this.#orderAgainstListings(read)) }
    for (;;) {
      const outcome = await this.#trace.traceCommit(trace, () => this.#retryingStore.commit(commit))
      if (outcome.kind === 'contested') {
        const answers = await this.#lookups.checkContested(request.cycle, outcome.keys, prepared.landings)
        const isDecided = answers.confirmed.length + answers.refuted.length === outcome.keys.length
        const next = isDecided ? commit.transition : this.#holdTidemark(commit.transition)
        commit = {
          ...commit,
          transition: next,
          listing: { settledSequence: this.#settledSequence, lookupAnswers: answers },
        }
      } else if (outcome.kind === 'absent') {
        const key = await this.#lookups.findPresent(request.cycle, outcome.keys)
        if (key !== null) return { kind: 'incomplete', key, absent: outcome.count }
        commit = { ...commit, transition: withoutAbsenceCheck(commit.transition) }
      } else return outcome
    }
  }

  /**
   * Invariant 12: the copy keeps versions that the listing contradicts, so the cycle does not advance the tidemark.
   */
  #holdTidemark(transition: StateTransition): StateTransition {
    this.#tidemark = this.#tidemark.hold()
    if (transition.kind === 'complete')
      return { ...transition, tidemark: this.#tidemark.applyHold(transition.tidemark) }
    if (transition.kind !== 'continue' || transition.guardState === null) return transition
    return { ...transition, guardState: this.#tidemark.serializeWith(JSON.parse(transition.guardState) as object) }
  }

  #buildCommit(
    { request, checked, prepared }: FetchedPage,
    transition: StateTransition,
    drift: readonly string[],
  ): Commit {
    const text = this.#driftDetector.formatMessages(drift)
    return {
      lease: this.#lease,
      version: this.#checkpoint.version,
      at: this.#options.ports.clock.now(),
      transition,
      owner: this.#plan.owner,
      owners: buildCommitOwners(this.#plan),
      landings: prepared.landings,
      quarantined: prepared.quarantined,
      columns: prepared.columns,
      ...(prepared.shapes.length > 0 && { shapes: prepared.shapes }),
      historyDays: Object.fromEntries(this.#plan.databases.map(({ name, historyDays = null }) => [name, historyDays])),
      readAtSequence: request.readAtSequence,
      upstreamToleranceMs: this.#plan.upstreamToleranceMs,
      ...(this.#plan.mode === 'replace' && { listing: this.#buildListingContext(checked) }),
      ...(text !== null && { drift: text }),
      ...buildCommitDeletes(this.#plan),
      ...buildCommitSchemaModes(this.#plan),
    }
  }

  /** A lookup cannot confirm an entry of a log: only a second read of the log decides. */
  #buildListingContext({ isLog }: CheckedPage): ListingContext {
    const { database } = this.#lookups
    return { settledSequence: this.#settledSequence, ...(!isLog && database !== null && { lookupDatabase: database }) }
  }

  /**
   * A listing's page may be older than the records that this sync reads concurrently. A record that changed and changed
   * back is logged even though it is equal: the listing, which saw it in between, must be ordered before it.
   */
  async #orderAgainstListings({
    request,
    checked: { isLog },
    prepared: { landings },
  }: FetchedPage): Promise<Partial<Commit>> {
    if (isLog && this.#plan.mode === 'replace')
      return { readAtSequence: this.#requireInflight().startSequence, isHistoricalLog: true }
    const listingStart = await this.#findLatestListingStart()
    if (listingStart === null) return {}
    // Without a time, only an entry made after this page was requested is newer than every page of the listing.
    const isTimeless = !isLog && landings.some(({ upstreamAt }) => upstreamAt === null)
    return { forceLogSince: isTimeless ? Math.max(listingStart, request.readAtSequence) : listingStart }
  }

  /**
   * The start of the latest running listing. Queried after the page was read: a listing that begins now reads later
   * than the page.
   */
  async #findLatestListingStart(): Promise<number | null> {
    let listingStart: number | null = null
    for (const sync of findConcurrentListings(this.#plan)) {
      const { inflight } = await this.#retryingStore.call((store) =>
        store.readCheckpoint({ worker: this.#plan.worker, sync }),
      )
      if (inflight !== null) listingStart = Math.max(listingStart ?? 0, inflight.startSequence)
    }
    return listingStart
  }

  #recordLanding(
    read: FetchedPage,
    outcome: Extract<CommitOutcome, { kind: 'landed' }>,
    transition: CycleTransition,
    drift: readonly string[] = [],
  ): void {
    const { checked, prepared } = read
    const text = this.#driftDetector.formatMessages(drift)
    if (text !== null) this.#log.warn('records differ from earlier ones; they were committed', { drift: text })
    if (outcome.drift !== undefined)
      this.#log.warn('some values do not fit their columns; the records were committed', {
        drift: outcome.drift.join('; '),
      })
    for (const { database, key, code, message } of outcome.refused ?? [])
      this.#log.warn('a record does not fit its columns and was quarantined', { database, key, code, message })
    this.#driftDetector.recordLanded(prepared.columns, drift, outcome.drift)
    this.#reader.recordLanded(read)
    this.#counters.addPage(outcome.counts)
    this.#trace.endLandedPage(read.trace, checked.changes.length, outcome.counts)
    this.#headSequence = outcome.headSequence
    if (transition.kind === 'continue')
      this.#tidemark = this.#tidemark.withPage(this.#requireInflight().mode, toPageTimes(read))
    else if (transition.kind === 'complete')
      this.#tidemark = this.#tidemark.complete(this.#tidemark.applyHold(transition.tidemark))
    this.#scope = this.#mergeScope(checked.scope)
    this.#endReason = checked.endReason
    this.#checkpoint = { ...this.#checkpoint, version: outcome.version }
    this.#options.onProgress?.({
      kind: 'landed',
      cycle: transition.cycle,
      page: transition.page,
      counts: { ...this.#counters.counts },
      tidemark: this.#tidemark.current,
      headSequence: outcome.headSequence,
      ...(checked.left !== null && { left: checked.left }),
    })
  }

  /**
   * The sweep was refused: commits the rows of the page and discards the cycle, so that the next one lists everything
   * again.
   */
  async #abandonCycle({ cycle, page }: Inflight, read: FetchedPage, refusal: SweepRefusal): Promise<never> {
    const error = this.#toRefusalError(read, refusal)
    const transition: CycleTransition = { kind: 'abandon', cycle, page: page + 1, reason: error.message }
    const outcome = await this.#commit(read, transition)
    if (outcome.kind === 'landed') this.#recordLanding(read, outcome, transition)
    throw error
  }

  #toRefusalError({ checked }: FetchedPage, refusal: SweepRefusal): SyncError {
    const { sync } = this.#plan
    if (refusal.kind === 'incomplete') {
      const { key, absent } = refusal
      return new SyncError(
        'LISTING_INCOMPLETE',
        `${sync}: the source did not list ${absent} rows that it listed before, but still has ${JSON.stringify(key)}; none were deleted.`,
      )
    }
    const { database, owned, toDelete } = refusal
    return new SyncError(
      this.#isScopeChanged(this.#mergeScope(checked.scope)) ? 'SCOPE_CHANGED' : 'MASS_DELETE',
      `${sync}: the source no longer lists ${toDelete} of the ${owned} rows of ${database}; none were deleted.`,
    )
  }

  async #requestBackfill(lost: SyncError): Promise<SyncError> {
    return requestBackfill(this.#plan, this.#options, this.#retryingStore, {
      lease: this.#lease,
      version: this.#checkpoint.version,
      error: lost,
    }).catch((problem: unknown) => {
      // The state stays, so the next cycle detects the loss again.
      this.#log.warn('could not request the backfill', { code: classifyError(problem).code })
      return lost
    })
  }

  async #finish(stopReason: StopReason, thrown: SyncError | null): Promise<CycleResult> {
    const { store, ports } = this.#options
    const endedAt = ports.clock.now()
    const failure = thrown === null || thrown.code === 'CANCELLED' ? null : thrown
    const error = failure === null ? null : { code: failure.code, message: failure.message }
    const isBlockedByPause = failure instanceof PauseError
    // The end of a pause is known; an additional backoff would only delay the copy.
    const delayMs =
      failure === null
        ? 0
        : isBlockedByPause
          ? waitHintMs(failure)
          : cycleDelayMs(failure, this.#checkpoint.failures + 1, ports.random)
    const retryAt = failure === null ? null : endedAt + delayMs
    const totals = this.#counters.totals()
    // All pages are committed; a lease that cannot be released expires.
    await store
      .release(this.#lease, {
        cycle: this.#inflight?.cycle ?? 0,
        stopReason,
        endedAt,
        ...totals,
        error,
        retryAt,
        isBlockedByPause,
      })
      .catch((problem: unknown) => {
        this.#log.warn('could not release the lease', { code: classifyError(problem).code })
      })
    const completeSince =
      this.#tidemark.completeSince ??
      (stopReason === 'complete' ? this.#requireInflight().startedAt : this.#checkpoint.lastSuccessAt)
    return this.#trace.endCycle(
      {
        ...this.#lease.ref,
        cycle: this.#inflight?.cycle ?? null,
        stopReason,
        endReason: stopReason === 'complete' ? this.#endReason : null,
        resumed: this.#resumed,
        ...totals,
        startedAt: this.#startedAt,
        endedAt,
        version: this.#checkpoint.version,
        headSequence: this.#headSequence,
        tidemark: this.#tidemark.current,
        drift: [...this.#driftDetector.messages],
        error: failure === null ? null : { code: failure.code, message: failure.message, advice: failure.advice },
        retryAt,
      },
      completeSince,
    )
  }
}

/** A transition that commits a page. */
type CycleTransition = Extract<StateTransition, { readonly cycle: number }>

type SweepRefusal =
  | Extract<CommitOutcome, { kind: 'massDeleteBlocked' }>
  | { readonly kind: 'incomplete'; readonly key: string; readonly absent: number }
type PageOutcome = Extract<CommitOutcome, { kind: 'landed' | 'overlap' }> | SweepRefusal

/** The absences are confirmed, so the sweep may delete. */
function withoutAbsenceCheck(transition: StateTransition): StateTransition {
  if (transition.kind !== 'complete' || transition.sweep === null) return transition
  const { confirmAbsent: _, ...sweep } = transition.sweep
  return { ...transition, sweep }
}

const OVERLAPS_MAX = 20

/** Attempts for a page that is dated before the pages before it. */
const OLD_PAGES_MAX = 3

/** Audit log entries to search for drift that was already reported. */
const AUDIT_LOOKBACK_MAX = 1_000

/** Triggers without a person behind them. */
const AUTOMATIC_TRIGGERS: readonly string[] = ['schedule', 'webhook']

async function acquireLease(
  plan: SyncPlan,
  { ports, holder, isHolderGone, trigger }: CycleOptions,
  retryingStore: RetryingStore,
): ReturnType<CycleOptions['store']['acquire']> {
  const ref: SyncRef = { worker: plan.worker, sync: plan.sync }
  const request = {
    holder,
    ttlMs: plan.limits.leaseTtlMs,
    at: ports.clock.now(),
    automatic: AUTOMATIC_TRIGGERS.includes(trigger),
  }
  const first = await retryingStore.call((store) => store.acquire(ref, request))
  // Our own name means that a response was lost: holder names are unique per cycle.
  if (first.kind === 'held' && (first.holder === holder || isHolderGone?.(first.holder) === true))
    return retryingStore.call((store) => store.acquire(ref, { ...request, evictHolder: first.holder }))
  return first
}

function toCycleFacts(inflight: Inflight, ahead: 1 | 2): CycleFacts {
  return { id: inflight.cycle, mode: inflight.mode, startedAt: inflight.startedAt, page: inflight.page + ahead }
}

function toStopReason(error: SyncError): StopReason {
  switch (error.code) {
    case 'CANCELLED':
      return 'cancelled'
    case 'LEASE_LOST':
      return 'lease_lost'
    case 'COMMIT_UNKNOWN':
      return 'unknown'
    case 'MASS_DELETE':
    case 'SCOPE_CHANGED':
    case 'LISTING_INCOMPLETE':
      return 'blocked'
    default:
      return 'error'
  }
}

function toPageTimes({ checked, prepared }: FetchedPage): PageTimes {
  return { stated: checked.tidemark, newest: prepared.newestUpstreamAt, lastCursor: prepared.lastCursor }
}

function buildSkippedResult(
  { worker, sync }: SyncPlan,
  stopReason: 'held' | 'paused',
  startedAt: number,
  { ports }: CycleOptions,
  { code, message, advice }: SyncError,
): CycleResult {
  return {
    worker,
    sync,
    cycle: null,
    stopReason,
    endReason: null,
    resumed: false,
    pages: 0,
    counts: noCounts(),
    retries: 0,
    waitedMs: 0,
    startedAt,
    endedAt: ports.clock.now(),
    version: 0,
    headSequence: 0,
    tidemark: null,
    drift: [],
    error: { code, message, advice },
    retryAt: null,
  }
}
