import {
  SyncError, type Checkpoint, type Commit, type CommitOutcome, type CycleFacts, type Inflight, type Lease, type Listing, type Log, type Move, type StateText, type StopReason, type Sweep, type SyncRef,
} from '../contract/index.ts'
import { AccountPauses, PauseError } from './account-pauses.ts'
import { orderBackfill, settleAnchor } from './anchor.ts'
import type { CheckedPage } from './check-page.ts'
import { childLog } from './child-log.ts'
import { classify } from './classify.ts'
import type { CycleOptions, CycleResult } from './cycle-options.ts'
import { CycleTrace } from './cycle-trace.ts'
import { Drift } from './drift.ts'
import { checkHistory, historyNeededSince, retentionOf } from './history.ts'
import { keepLease } from './keep-lease.ts'
import { Lookups } from './lookups.ts'
import { LateRows } from './late-rows.ts'
import { LoopGuard, type Passed } from './loop-guard.ts'
import { Pacer } from './pacer.ts'
import { PageReader, type Reading, type ReadPage } from './page-reader.ts'
import { cycleDelayMs, waitHintMs } from './retry.ts'
import { StoreDoor } from './store-door.ts'
import { ABSENT_LOOKUPS_MAX, checkDeletes, deletesIn, listingsOf, ownersOf, schemasIn, type SyncPlan } from './sync-plan.ts'
import { noCounts, Tally } from './tally.ts'
import { CycleTidemark, hasBackfill, type PageTimes } from './tidemark.ts'

/**
 * One cycle: take the lease, read where it stands, then page by page: execute, check, commit. While a page commits, the
 * next is already being read; a failed commit throws it away.
 */
export async function runCycle(plan: SyncPlan, options: CycleOptions): Promise<CycleResult> {
  const { ports, store: { tenant }, trigger } = options
  const trace = new CycleTrace({ plan, ports, tenant, trigger })
  return trace.around(() => begin(plan, { ...options, ports: { ...ports, log: childLog(ports.log, { tenant, worker: plan.worker, sync: plan.sync }) } }, trace))
}

async function begin(plan: SyncPlan, options: CycleOptions, trace: CycleTrace): Promise<CycleResult> {
  const startedAt = options.ports.clock.now()
  const tally = new Tally()
  const door = new StoreDoor(options.store, options.ports, tally)
  const taken = await takeLease(plan, options, door)
  if (taken.kind === 'held') {
    return trace.ended(notRun(plan, 'held', startedAt, options, new SyncError('LEASE_HELD', `${plan.sync} is being run by ${taken.by}.`)), null)
  }
  if (taken.checkpoint.paused) {
    await options.store.release(taken.lease)
    return trace.ended(notRun(plan, 'paused', startedAt, options, new SyncError('PAUSED', `${plan.sync} is paused.`)), null)
  }
  return new Cycle(plan, options, door, tally, trace, taken.lease, taken.checkpoint, startedAt).run()
}

class Cycle {
  readonly #plan: SyncPlan
  readonly #options: CycleOptions
  readonly #lease: Lease
  readonly #startedAt: number
  readonly #stopping = new AbortController()
  readonly #tally: Tally
  readonly #door: StoreDoor
  readonly #trace: CycleTrace
  /** Says whose cycle and, once it has begun, which. */
  #log: Log
  #checkpoint: Checkpoint
  #inflight: Inflight | null = null
  #reader!: PageReader
  #lookups!: Lookups
  #guard!: LoopGuard
  #drift = new Drift({})
  #position = 0
  /** The last sequence that was committed at least the source's lag before the cycle began. */
  #settled = 0
  #resumed = false
  #restarted = false
  /** The source must still have every change since this time; see checkHistory. */
  #historySince = Infinity
  #late: LateRows | null = null
  #tidemark: CycleTidemark
  #scope: string | null
  #stopWord: string | null = null

  constructor(plan: SyncPlan, options: CycleOptions, door: StoreDoor, tally: Tally, trace: CycleTrace, lease: Lease, checkpoint: Checkpoint, startedAt: number) {
    this.#plan = plan
    this.#options = options
    this.#lease = lease
    this.#checkpoint = checkpoint
    this.#startedAt = startedAt
    this.#tidemark = CycleTidemark.of(checkpoint.tidemark, null)
    this.#scope = plan.scope
    this.#door = door
    this.#tally = tally
    this.#trace = trace
    this.#log = options.ports.log
  }

  async run(): Promise<CycleResult> {
    const { store, ports, signal } = this.#options
    const stop = (): void => this.#stopping.abort(new SyncError('CANCELLED', `${this.#plan.sync} was stopped.`))
    if (signal?.aborted === true) stop()
    signal?.addEventListener('abort', stop, { once: true })
    const keeping = keepLease({ store, clock: ports.clock, lease: this.#lease, ttlMs: this.#plan.limits.leaseTtlMs, askedAt: this.#startedAt, stopping: this.#stopping })
    const pauseStore = this.#options.pauses ?? store
    const pauses = new AccountPauses(this.#plan, ports, {
      notePause: (request) => this.#door.call(() => pauseStore.notePause(request)), pauses: (query) => this.#door.call(() => pauseStore.pauses(query)),
    })
    let stopReason: StopReason
    let error: SyncError | null = null
    try {
      const { pacers, worker } = this.#plan
      const pacer = new Pacer(ports, this.#stopping.signal, pacers, (request) => this.#door.call(() => store.takeSlots({ worker, ...request })))
      this.#reader = new PageReader(this.#plan, this.#options, pacer, pauses, keeping, this.#stopping.signal, this.#tally, this.#trace)
      this.#lookups = new Lookups(this.#plan, this.#reader, this.#log)
      checkDeletes(this.#plan, store)
      const inflight = await this.#begin(this.#options.fresh === true || this.#isOutdated())
      this.#late = await LateRows.of(this.#plan, this.#door)
      stopReason = await this.#readPages(inflight)
      if (stopReason === 'complete') this.#late?.tell(this.#log, ports.clock.now())
    } catch (thrown) {
      error = classify(thrown)
      stopReason = stopReasonOf(error)
      if (this.#isHistoryLost(error)) error = await this.#orderBackfill(error)
    } finally {
      keeping.stop()
      signal?.removeEventListener('abort', stop)
      this.#stopping.abort(new SyncError('CANCELLED', 'The cycle is over.'))
    }
    await pauses.keep(ports.random)
    return this.#finish(stopReason, error)
  }

  /** The loop. It ends by the source's word, a budget, a pause, or an error. */
  async #readPages(inflight: Inflight): Promise<StopReason> {
    let reading = this.#read(inflight, inflight.state, 1)
    let overlaps = 0
    let oldPages = 0
    let unordered: readonly string[] = []
    for (;;) {
      const read = await reading.page.catch((error: unknown) => this.#mayRestart(error, inflight))
      this.#checkHistory()
      if (read === null) {
        // The state of the first page is the committed one: it is asked with once more.
        if (inflight.page > 0) inflight = await this.#begin(true)
        reading = this.#read(inflight, inflight.state, 1)
        continue
      }
      // A wrong clock is believed in the end.
      if (this.#isOld(read) && oldPages++ < OLD_PAGES_MAX) {
        this.#trace.dropped(read.trace, 'discarded')
        reading = this.#read(inflight, inflight.state, 1, unordered)
        continue
      }
      oldPages = 0
      const { checked, prepared } = read
      const passed = checked.hasMore ? this.#guard.check(inflight, checked.state!, prepared) : null
      const budgetEnd = checked.hasMore ? this.#budgetEnd() : null
      const next = checked.hasMore && budgetEnd === null ? this.#read(inflight, checked.state, 2) : null

      const drift = checked.hasMore ? this.#drift.look(prepared.columns) : await this.#driftOfLast(prepared)
      // Should it fail, the end of the cycle also ends the page read ahead.
      const move = passed === null ? this.#lastMove(inflight, read, await this.#tidemarkAtEnd(inflight, read)) : this.#nextMove(inflight, read, passed)
      const outcome = await this.#commit(read, move, drift)
      if (outcome.kind !== 'landed') {
        next?.discard()
        if (outcome.kind !== 'overlap') return this.#giveUp(inflight, read, outcome)
        this.#trace.dropped(read.trace, 'overlap')
        if (++overlaps > OVERLAPS_MAX) throw new SyncError('OVERLAP_UNRESOLVED', `${this.#plan.sync}: another sync kept writing the same rows while page ${inflight.page + 1} was read.`)
        unordered = [...new Set([...unordered, ...outcome.keys])]
        this.#position = await this.#door.call((store) => store.position())
        reading = this.#read(inflight, inflight.state, 1, unordered)
        continue
      }
      overlaps = 0
      unordered = []
      if (passed !== null) this.#guard.advance(passed)
      this.#inflight = inflight = { ...inflight, page: inflight.page + 1, state: checked.state }
      const before = this.#position
      this.#noteLanded(read, outcome, move, drift)
      await this.#late?.look(outcome, before, prepared.landings)
      if (!checked.hasMore) return 'complete'
      if (budgetEnd !== null) return budgetEnd
      if (outcome.paused) return 'paused'
      reading = next!
    }
  }

  async #begin(fresh: boolean): Promise<Inflight> {
    const { ports, trigger, onProgress } = this.#options
    const { mode, databases, limits, sync } = this.#plan
    const begun = await this.#door.call((store) => store.begin(this.#lease, {
      at: ports.clock.now(), mode, trigger, fresh, databases: databases.map((database) => database.name),
    }))
    if (begun === null) throw new SyncError('LEASE_LOST', `${sync}: another runner took over.`)
    this.#inflight = begun.inflight
    this.#log = childLog(ports.log, { cycle: begun.inflight.cycle })
    this.#resumed = begun.resumed
    this.#position = begun.position
    // What the pages before an interruption told counts as if there had been none.
    this.#scope = begun.inflight.scope ?? this.#plan.scope
    this.#tidemark = CycleTidemark.of(this.#checkpoint.tidemark, begun.inflight)
    this.#drift = new Drift(begun.columns)
    this.#guard = new LoopGuard(sync, limits.emptyPagesMax, begun.inflight, this.#checkpoint.lastError)
    this.#settled = begun.inflight.startSequence
    if (this.#plan.mode === 'replace' && this.#plan.lagMs) await this.#settle(begun.inflight, this.#plan.lagMs)
    onProgress?.({ kind: 'begun', cycle: begun.inflight.cycle, resumed: begun.resumed, page: begun.inflight.page })
    if (begun.inflight.page === 0) await settleAnchor(this.#plan, this.#options, this.#reader, this.#door, factsOf(begun.inflight, 1))
    this.#historySince = await this.#neededSince(begun.inflight)
    this.#checkHistory()
    return begun.inflight
  }

  /** Invariants 5 and 6: what is younger than the source's lag may not show in its listing yet. */
  async #settle({ startedAt, startSequence }: Inflight, lagMs: number): Promise<void> {
    const sequence = await this.#door.call((store) => store.sequenceBefore(startedAt - lagMs))
    this.#settled = Math.min(startSequence, sequence)
  }

  /** The unfinished cycle of a backfill that was ordered since: it began before the new anchor. */
  #isOutdated(): boolean {
    const { inflight, backfillNeeded } = this.#checkpoint
    return inflight !== null && backfillNeeded?.cycle === inflight.cycle
  }

  /** Infinity where nothing can be lost: the source has no limit, or the cycle has no state to go on from. */
  async #neededSince(inflight: Inflight): Promise<number> {
    const { worker, pair } = this.#plan
    if (retentionOf(this.#plan) === null || inflight.state === null) return Infinity
    const backfill = pair?.role === 'delta' ? await this.#door.call((store) => store.read({ worker, sync: pair.backfill })) : null
    return historyNeededSince(this.#checkpoint, inflight, backfill)
  }

  /** Before the first page, and before a page that has been read is committed. */
  #checkHistory(): void {
    checkHistory(this.#plan, this.#historySince, this.#options.ports.clock.now())
  }

  /** `ahead` is 1 for the page after the last landed one. */
  #read(inflight: Inflight, state: StateText, ahead: 1 | 2, unordered: readonly string[] = []): Reading {
    return this.#reader.read({
      state,
      unordered,
      readFrom: this.#position,
      cycle: factsOf(inflight, ahead),
    })
  }

  /** Null when the source rejected a state: the committed one is tried instead, or once more. Once, or it might never end. */
  #mayRestart(error: unknown, inflight: Inflight): null {
    if (classify(error).code !== 'CURSOR_REJECTED' || inflight.state === null || this.#restarted) throw error
    this.#restarted = true
    this.#log.warn('the source rejected the state; starting over from the committed one')
    return null
  }

  /**
   * Also when the source refuses a state again after the cycle began anew from the committed one: what changed since cannot
   * be asked for any more, at its first page or at the first page of a later stream.
   */
  #isHistoryLost({ code }: SyncError): boolean {
    if (this.#plan.mode !== 'incremental') return false
    return code === 'HISTORY_LOST' || (code === 'CURSOR_REJECTED' && this.#restarted && this.#checkpoint.committed !== null)
  }

  #budgetEnd(): 'max_pages' | 'timeout' | null {
    const { pagesMax, minutesMax } = this.#plan.limits
    if (this.#tally.pages + 1 >= pagesMax) return 'max_pages'
    if (minutesMax > 0 && this.#options.ports.clock.now() - this.#startedAt >= minutesMax * 60_000) return 'timeout'
    return null
  }

  #nextMove({ cycle, page, mode }: Inflight, read: ReadPage, passed: Passed): CycleMove {
    const { state, scope } = read.checked
    const tidemark = this.#tidemarkWith(read).withPage(mode, timesOf(read))
    return {
      kind: 'continue', cycle, page: page + 1, state, tidemark: tidemark.candidate, scope: this.#scopeWith(scope),
      guard: tidemark.keptWith(passed.kept),
    }
  }

  #lastMove({ cycle, page, state: asked }: Inflight, { checked }: ReadPage, tidemark: string | null): CycleMove {
    const scope = this.#scopeWith(checked.scope)
    const replace = this.#plan.mode === 'replace'
    return {
      kind: 'complete', cycle, page: page + 1,
      // Replace: state is only for paging. Incremental without a new state: what this page was asked with still holds.
      state: replace ? null : (checked.state ?? asked),
      tidemark,
      scope,
      sweep: replace ? this.#sweepFor(scope) : null,
      stopWord: checked.stopWord,
    }
  }

  async #tidemarkAtEnd({ mode, startedAt }: Inflight, read: ReadPage): Promise<string | null> {
    const { worker, pair } = this.#plan
    if (pair?.role === 'delta') {
      const backfill = await this.#door.call((store) => store.read({ worker, sync: pair.backfill }))
      if (!hasBackfill(this.#checkpoint, backfill)) return null
    }
    return this.#tidemarkWith(read).atEnd({ mode, startedAtMs: startedAt }, timesOf(read))
  }

  #tidemarkWith({ times }: ReadPage): CycleTidemark {
    return (this.#tidemark = this.#tidemark.readSince(times?.readSinceMs ?? null))
  }

  /** Invariant 6: a page of a listing that is older than those before it comes from a cache, or a clock is wrong. */
  #isOld({ times }: ReadPage): boolean {
    return this.#plan.mode === 'replace' && times !== null && this.#tidemark.isReadAfter(times.datedMs)
  }

  #sweepFor(scope: string | null): Sweep {
    const settledSequence = this.#settled
    const { allowDeletes, actor, trigger } = this.#options
    if (allowDeletes === true) return { maxShare: 1, allowEmpty: true, settledSequence, allowedBy: actor ?? trigger }
    const { maxShare, allowEmpty, lookupsMax = ABSENT_LOOKUPS_MAX } = this.#plan.sweep
    // Somebody else may be asking, or for something else: then what is missing is not known to be gone.
    const limits = this.#isScopeChanged(scope) ? { maxShare: 0, allowEmpty: false } : { maxShare, allowEmpty }
    const { database } = this.#lookups
    return { ...limits, settledSequence, ...(database !== null && lookupsMax > 0 && { asks: { database, limit: lookupsMax } }) }
  }

  #isScopeChanged(scope: string | null): boolean {
    return this.#checkpoint.scope !== null && this.#checkpoint.scope !== scope
  }

  #scopeWith(seen: string | null): string | null {
    if (seen === null) return this.#scope
    return this.#plan.scope === null ? seen : `${this.#plan.scope} ${seen}`
  }

  /** With what is gone from a listing that ends with this page. That is told once, and not with every listing. */
  async #driftOfLast({ columns }: ReadPage['prepared']): Promise<string[]> {
    const words = this.#drift.look(columns)
    const gone = this.#plan.mode === 'replace' && !this.#resumed ? this.#drift.gone(columns) : []
    if (gone.length === 0) return words
    const audit = await this.#door.call((store) => store.audit(this.#lease.ref, { limit: AUDIT_LOOKED_AT }))
    const told = audit.filter(({ action }) => action === 'drift').flatMap(({ reason }) => reason.split('; '))
    return [...words, ...gone.filter((word) => !told.includes(word))]
  }

  /** Commits a page. Where the listing alone does not decide, the source's lookup is asked and the page is sent again. */
  async #commit(read: ReadPage, move: Move, drift: readonly string[] = []): Promise<PageOutcome> {
    const { request, trace, checked, prepared } = read
    let commit = this.#commitOf(read, move, drift)
    if (checked.isLog || prepared.landings.length > 0) commit = { ...commit, ...(await this.#besideListings(read)) }
    for (;;) {
      const outcome = await this.#trace.commit(trace, () => this.#door.commit(commit))
      if (outcome.kind === 'contested') {
        const answers = await this.#lookups.contested(request.cycle, outcome.keys, prepared.landings)
        const isDecided = answers.confirmed.length + answers.refuted.length === outcome.keys.length
        const moved = isDecided ? commit.move : this.#held(commit.move)
        commit = { ...commit, move: moved, listing: { settledSequence: this.#settled, answers } }
      } else if (outcome.kind === 'absent') {
        const key = await this.#lookups.present(request.cycle, outcome.keys)
        if (key !== null) return { kind: 'incomplete', key, absent: outcome.count }
        commit = { ...commit, move: withoutAsking(commit.move) }
      } else return outcome
    }
  }

  /** Invariant 12: the copy keeps versions that the listing contradicts, so the cycle does not move the tidemark. */
  #held(move: Move): Move {
    this.#tidemark = this.#tidemark.held()
    if (move.kind === 'complete') return { ...move, tidemark: this.#tidemark.limit(move.tidemark) }
    if (move.kind !== 'continue' || move.guard === null) return move
    return { ...move, guard: this.#tidemark.keptWith(JSON.parse(move.guard) as object) }
  }

  #commitOf({ request, checked, prepared }: ReadPage, move: Move, drift: readonly string[]): Commit {
    const text = this.#drift.textOf(drift)
    return {
      lease: this.#lease,
      version: this.#checkpoint.version,
      at: this.#options.ports.clock.now(),
      move,
      owner: this.#plan.owner,
      owners: ownersOf(this.#plan),
      landings: prepared.landings,
      quarantined: prepared.quarantined,
      columns: prepared.columns,
      ...(prepared.shapes.length > 0 && { shapes: prepared.shapes }),
      historyDays: Object.fromEntries(this.#plan.databases.map(({ name, historyDays = null }) => [name, historyDays])),
      readFrom: request.readFrom,
      upstreamToleranceMs: this.#plan.upstreamToleranceMs,
      ...(this.#plan.mode === 'replace' && { listing: this.#listingOf(checked) }),
      ...(text !== null && { drift: text }),
      ...deletesIn(this.#plan),
      ...schemasIn(this.#plan),
    }
  }

  /** A lookup says nothing of what a log told once: only its second reading decides. */
  #listingOf({ isLog }: CheckedPage): Listing {
    const { database } = this.#lookups
    return { settledSequence: this.#settled, ...(!isLog && database !== null && { asks: database }) }
  }

  /**
   * A listing's page may be older than what this sync reads meanwhile. Where that is nothing new, because something changed
   * and changed back, it is put on record all the same: the listing, which saw it in between, must know that it is older.
   */
  async #besideListings({ request, checked: { isLog }, prepared: { landings } }: ReadPage): Promise<Partial<Commit>> {
    if (isLog && this.#plan.mode === 'replace') return { readFrom: this.#inflight!.startSequence, isHistory: true }
    const began = await this.#listingsBegan()
    if (began === null) return {}
    // Without a time, only an entry made since this page was asked for is newer than every page the listing has asked for.
    const isTimeless = !isLog && landings.some(({ upstreamAt }) => upstreamAt === null)
    return { restateSince: isTimeless ? Math.max(began, request.readFrom) : began }
  }

  /** Where the latest listing under way began. Asked after the page was read: one that begins now reads later than the page. */
  async #listingsBegan(): Promise<number | null> {
    let began: number | null = null
    for (const sync of listingsOf(this.#plan)) {
      const { inflight } = await this.#door.call((store) => store.read({ worker: this.#plan.worker, sync }))
      if (inflight !== null) began = Math.max(began ?? 0, inflight.startSequence)
    }
    return began
  }

  #noteLanded(read: ReadPage, outcome: Extract<CommitOutcome, { kind: 'landed' }>, move: CycleMove, drift: readonly string[] = []): void {
    const { checked, prepared } = read
    const text = this.#drift.textOf(drift)
    if (text !== null) this.#log.warn('the records are not as they were before; they have landed', { drift: text })
    if (outcome.drift !== undefined) this.#log.warn('the columns do not show all of the records; they have landed', { drift: outcome.drift.join('; ') })
    for (const { database, key, code, message } of outcome.refused ?? []) this.#log.warn('a record does not fit its columns and was quarantined', { database, key, code, message })
    this.#drift.landed(prepared.columns, drift, outcome.drift)
    this.#reader.landed(read)
    this.#tally.landed(outcome.counts)
    this.#trace.landed(read.trace, checked.changes.length, outcome.counts)
    this.#position = outcome.position
    if (move.kind === 'continue') this.#tidemark = this.#tidemark.withPage(this.#inflight!.mode, timesOf(read))
    else if (move.kind === 'complete') this.#tidemark = this.#tidemark.completed(this.#tidemark.limit(move.tidemark))
    this.#scope = this.#scopeWith(checked.scope)
    this.#stopWord = checked.stopWord
    this.#checkpoint = { ...this.#checkpoint, version: outcome.version }
    this.#options.onProgress?.({ kind: 'landed', cycle: move.cycle, page: move.page, counts: { ...this.#tally.counts }, tidemark: this.#tidemark.shown, position: outcome.position, ...(checked.left !== null && { left: checked.left }) })
  }

  /** The sweep was refused: land what was read and forget the cycle, so that the next one lists everything anew. */
  async #giveUp({ cycle, page }: Inflight, read: ReadPage, refusal: SweepRefusal): Promise<never> {
    const error = this.#errorOf(read, refusal)
    const move: CycleMove = { kind: 'abandon', cycle, page: page + 1, reason: error.message }
    const outcome = await this.#commit(read, move)
    if (outcome.kind === 'landed') this.#noteLanded(read, outcome, move)
    throw error
  }

  #errorOf({ checked }: ReadPage, refusal: SweepRefusal): SyncError {
    const { sync } = this.#plan
    if (refusal.kind === 'incomplete') {
      const { key, absent } = refusal
      return new SyncError('LISTING_INCOMPLETE', `${sync}: the source did not list ${absent} rows that were there before, but still has ${JSON.stringify(key)}; none were deleted.`)
    }
    const { database, owned, doomed } = refusal
    return new SyncError(
      this.#isScopeChanged(this.#scopeWith(checked.scope)) ? 'SCOPE_CHANGED' : 'MASS_DELETE',
      `${sync}: the source no longer lists ${doomed} of the ${owned} rows of ${database}; none were deleted.`,
    )
  }

  async #orderBackfill(lost: SyncError): Promise<SyncError> {
    return orderBackfill(this.#plan, this.#options, this.#door, { lease: this.#lease, version: this.#checkpoint.version, lost }).catch((problem: unknown) => {
      // The state stays, so the next cycle comes here again.
      this.#log.warn('the backfill could not be ordered', { code: classify(problem).code })
      return lost
    })
  }

  async #finish(stopReason: StopReason, thrown: SyncError | null): Promise<CycleResult> {
    const { store, ports } = this.#options
    const endedAt = ports.clock.now()
    const failure = thrown === null || thrown.code === 'CANCELLED' ? null : thrown
    const error = failure === null ? null : { code: failure.code, message: failure.message }
    const isHeldBack = failure instanceof PauseError
    // The end of a pause is known; a backoff on top would only let the copy age.
    const delayMs = failure === null ? 0 : isHeldBack ? waitHintMs(failure) : cycleDelayMs(failure, this.#checkpoint.failures + 1, ports.random)
    const retryAt = failure === null ? null : endedAt + delayMs
    const totals = this.#tally.totals()
    // What matters has landed; a lease that cannot be given back runs out by itself.
    await store.release(this.#lease, { cycle: this.#inflight?.cycle ?? 0, stopReason, endedAt, ...totals, error, retryAt, isHeldBack }).catch((problem: unknown) => {
      this.#log.warn('the lease could not be released', { code: classify(problem).code })
    })
    const completeSince = this.#tidemark.completeSince ?? (stopReason === 'complete' ? this.#inflight!.startedAt : this.#checkpoint.lastSuccessAt)
    return this.#trace.ended({
      ...this.#lease.ref, cycle: this.#inflight?.cycle ?? null, stopReason, stopWord: stopReason === 'complete' ? this.#stopWord : null, resumed: this.#resumed, ...totals, startedAt: this.#startedAt, endedAt,
      version: this.#checkpoint.version, position: this.#position, tidemark: this.#tidemark.shown, drift: [...this.#drift.words],
      error: error === null ? null : { ...error, advice: failure!.advice },
      retryAt,
    }, completeSince)
  }
}

/** A move that carries a page. */
type CycleMove = Extract<Move, { readonly cycle: number }>

type SweepRefusal = Extract<CommitOutcome, { kind: 'braked' }> | { readonly kind: 'incomplete'; readonly key: string; readonly absent: number }
type PageOutcome = Extract<CommitOutcome, { kind: 'landed' | 'overlap' }> | SweepRefusal

/** The absences are confirmed: the sweep may delete. */
function withoutAsking(move: Move): Move {
  if (move.kind !== 'complete' || move.sweep === null) return move
  const { asks: _, ...sweep } = move.sweep
  return { ...move, sweep }
}

const OVERLAPS_MAX = 20

/** So often a page is asked for again that is dated before the pages before it. */
const OLD_PAGES_MAX = 3

/** How far back it is looked whether something was told before. */
const AUDIT_LOOKED_AT = 1_000

/** Triggers that no person is behind. */
const BY_ITSELF: readonly string[] = ['schedule', 'webhook']

async function takeLease(plan: SyncPlan, { ports, holder, isDead, trigger }: CycleOptions, door: StoreDoor): ReturnType<CycleOptions['store']['acquire']> {
  const ref: SyncRef = { worker: plan.worker, sync: plan.sync }
  const request = { holder, ttlMs: plan.limits.leaseTtlMs, at: ports.clock.now(), byItself: BY_ITSELF.includes(trigger) }
  const first = await door.call((store) => store.acquire(ref, request))
  // Our own name there means that an answer was lost: no two cycles bear the same.
  if (first.kind === 'held' && (first.by === holder || isDead?.(first.by) === true)) return door.call((store) => store.acquire(ref, { ...request, evict: first.by }))
  return first
}

function factsOf(inflight: Inflight, ahead: 1 | 2): CycleFacts {
  return { id: inflight.cycle, mode: inflight.mode, startedAt: inflight.startedAt, page: inflight.page + ahead }
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
    case 'LISTING_INCOMPLETE':
      return 'blocked'
    default:
      return 'error'
  }
}

function timesOf({ checked, prepared }: ReadPage): PageTimes {
  return { stated: checked.tidemark, newest: prepared.newest, lastCursor: prepared.lastCursor }
}

function notRun({ worker, sync }: SyncPlan, stopReason: 'held' | 'paused', startedAt: number, { ports }: CycleOptions, { code, message, advice }: SyncError): CycleResult {
  return {
    worker, sync, cycle: null, stopReason, stopWord: null, resumed: false, pages: 0, counts: noCounts(), retries: 0, waitedMs: 0, startedAt, endedAt: ports.clock.now(),
    version: 0, position: 0, tidemark: null, drift: [], error: { code, message, advice }, retryAt: null,
  }
}
