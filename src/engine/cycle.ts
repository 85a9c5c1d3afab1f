import {
  SyncError, type Checkpoint, type Commit, type CommitOutcome, type CycleFacts, type Inflight, type Lease, type Log, type Move, type StateText, type StopReason, type SyncRef,
} from '../contract/index.ts'
import { orderBackfill, settleAnchor } from './anchor.ts'
import type { CheckedPage } from './check-page.ts'
import { childLog } from './child-log.ts'
import { classify } from './classify.ts'
import type { CycleOptions, CycleResult } from './cycle-options.ts'
import { CycleTrace } from './cycle-trace.ts'
import { Drift } from './drift.ts'
import { keepLease } from './keep-lease.ts'
import { LateRows } from './late-rows.ts'
import { LoopGuard, type Passed } from './loop-guard.ts'
import { Pacer } from './pacer.ts'
import { PageReader, type Reading, type ReadPage } from './page-reader.ts'
import type { PreparedPage } from './prepare-page.ts'
import { cycleDelayMs } from './retry.ts'
import { StoreDoor } from './store-door.ts'
import { ownersOf, type SyncPlan } from './sync-plan.ts'
import { noCounts, Tally } from './tally.ts'

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
  #guard!: LoopGuard
  #drift = new Drift({})
  #position = 0
  #resumed = false
  #restarted = false
  #late: LateRows | null = null
  #tidemark: string | null
  #scope: string | null
  #stopWord: string | null = null

  constructor(plan: SyncPlan, options: CycleOptions, door: StoreDoor, tally: Tally, trace: CycleTrace, lease: Lease, checkpoint: Checkpoint, startedAt: number) {
    this.#plan = plan
    this.#options = options
    this.#lease = lease
    this.#checkpoint = checkpoint
    this.#startedAt = startedAt
    this.#tidemark = checkpoint.tidemark
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
    let stopReason: StopReason
    let error: SyncError | null = null
    try {
      const { pacers, worker } = this.#plan
      const pacer = new Pacer(ports, this.#stopping.signal, pacers, (request) => this.#door.call(() => store.takeSlots({ worker, ...request })))
      this.#reader = new PageReader(this.#plan, this.#options, pacer, keeping, this.#stopping.signal, this.#tally, this.#trace)
      const inflight = await this.#begin(this.#options.fresh === true)
      if (inflight.page === 0) await settleAnchor(this.#plan, this.#options, this.#reader, this.#door, factsOf(inflight, 1))
      this.#late = await LateRows.of(this.#plan, this.#door)
      stopReason = await this.#readPages(inflight)
      if (stopReason === 'complete') this.#late?.tell(this.#log, ports.clock.now())
    } catch (thrown) {
      error = classify(thrown)
      stopReason = stopReasonOf(error)
      if (error.code === 'HISTORY_LOST') await this.#orderBackfill()
    } finally {
      keeping.stop()
      signal?.removeEventListener('abort', stop)
      this.#stopping.abort(new SyncError('CANCELLED', 'The cycle is over.'))
    }
    return this.#finish(stopReason, error)
  }

  /** The loop. It ends by the source's word, a budget, a pause, or an error. */
  async #readPages(inflight: Inflight): Promise<StopReason> {
    let reading = this.#read(inflight, inflight.state, 1)
    let overlaps = 0
    for (;;) {
      const read = await reading.page.catch((error: unknown) => this.#mayRestart(error, inflight))
      if (read === null) {
        inflight = await this.#begin(true)
        reading = this.#read(inflight, inflight.state, 1)
        continue
      }
      const { checked, prepared } = read
      const passed = checked.hasMore ? this.#guard.check(inflight, checked.state!, prepared) : null
      const budgetEnd = checked.hasMore ? this.#budgetEnd() : null
      const next = checked.hasMore && budgetEnd === null ? this.#read(inflight, checked.state, 2) : null

      const drift = checked.hasMore ? this.#drift.look(prepared.columns) : await this.#driftOfLast(prepared)
      // Should it fail, the end of the cycle also ends the page read ahead.
      const outcome = await this.#commit(read, this.#moveFor(inflight, read, passed), drift)
      if (outcome.kind !== 'landed') {
        next?.discard()
        if (outcome.kind === 'braked') return this.#giveUp(inflight, read, outcome)
        this.#trace.dropped(read.trace, 'overlap')
        if (++overlaps > OVERLAPS_MAX) throw new SyncError('OVERLAP_UNRESOLVED', `${this.#plan.sync}: another sync kept writing the same rows while page ${inflight.page + 1} was read.`)
        this.#position = await this.#door.call((store) => store.position())
        reading = this.#read(inflight, inflight.state, 1)
        continue
      }
      overlaps = 0
      if (passed !== null) this.#guard.advance(passed)
      this.#inflight = inflight = { ...inflight, page: inflight.page + 1, state: checked.state }
      const before = this.#position
      this.#noteLanded(read, outcome, inflight.page, drift)
      await this.#late?.look(outcome, before)
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
    this.#tidemark = laterTidemark(this.#checkpoint.tidemark, begun.inflight.tidemark)
    this.#drift = new Drift(begun.columns)
    this.#guard = new LoopGuard(sync, limits.emptyPagesMax, begun.inflight, this.#checkpoint.lastError)
    onProgress?.({ kind: 'begun', cycle: begun.inflight.cycle, resumed: begun.resumed, page: begun.inflight.page })
    return begun.inflight
  }

  /** `ahead` is 1 for the page after the last landed one. */
  #read(inflight: Inflight, state: StateText, ahead: 1 | 2): Reading {
    return this.#reader.read({
      state,
      readFrom: this.#position,
      cycle: factsOf(inflight, ahead),
    })
  }

  /** Null when a position that only this cycle used was rejected: the committed one is still there. Once, or it might never end. */
  #mayRestart(error: unknown, inflight: Inflight): null {
    if (classify(error).code !== 'CURSOR_REJECTED' || inflight.page === 0 || this.#restarted) throw error
    this.#restarted = true
    this.#log.warn('the source rejected the position inside the cycle; starting over from the committed one')
    return null
  }

  #budgetEnd(): 'max_pages' | 'timeout' | null {
    const { pagesMax, minutesMax } = this.#plan.limits
    if (this.#tally.pages + 1 >= pagesMax) return 'max_pages'
    if (minutesMax > 0 && this.#options.ports.clock.now() - this.#startedAt >= minutesMax * 60_000) return 'timeout'
    return null
  }

  #moveFor({ cycle, page, state: asked }: Inflight, { checked, prepared }: ReadPage, passed: Passed | null): Move {
    const scope = this.#scopeWith(checked.scope)
    const tidemark = laterTidemark(this.#tidemark, prepared.tidemark)
    if (passed !== null) return { kind: 'continue', cycle, page: page + 1, state: checked.state, tidemark, scope, guard: passed.text }
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

  #sweepFor(scope: string | null): { maxShare: number; allowEmpty: boolean } {
    if (this.#options.allowDeletes === true) return { maxShare: 1, allowEmpty: true }
    // Somebody else may be asking, or for something else: then what is missing is not known to be gone.
    return this.#isScopeChanged(scope) ? { maxShare: 0, allowEmpty: false } : this.#plan.sweep
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

  async #commit({ request, trace, checked, prepared }: ReadPage, move: Move, drift: readonly string[] = []): ReturnType<StoreDoor['commit']> {
    const ofPair = this.#isOrderedByPair(checked, prepared) ? await this.#ofPair(checked) : {}
    const text = this.#drift.textOf(drift)
    return this.#trace.commit(trace, () => this.#door.commit({
      lease: this.#lease,
      version: this.#checkpoint.version,
      at: this.#options.ports.clock.now(),
      move,
      owner: this.#plan.owner,
      owners: ownersOf(this.#plan),
      landings: prepared.landings,
      quarantined: prepared.quarantined,
      columns: prepared.columns,
      readFrom: request.readFrom,
      upstreamToleranceMs: this.#plan.upstreamToleranceMs,
      ...ofPair,
      ...(text !== null && { drift: text }),
    }))
  }

  /** Where the source tells times, they order the facts of a backfill and its delta. */
  #isOrderedByPair({ isLog }: CheckedPage, { landings }: PreparedPage): boolean {
    return isLog || (this.#plan.pair?.role === 'delta' && landings.some(({ upstreamAt }) => upstreamAt === null))
  }

  /**
   * A backfill's page may be older than what its delta tells meanwhile. Where that is nothing new, because something changed
   * and changed back, it is put on record all the same: the backfill, which saw it in between, must know that it is older.
   */
  async #ofPair({ isLog }: CheckedPage): Promise<Partial<Commit>> {
    const { mode, pair, worker } = this.#plan
    if (isLog && mode === 'replace') return { readFrom: this.#inflight!.startSequence, isHistory: true }
    if (pair?.role !== 'delta') return {}
    // Asked after the page was read: a backfill that ends before what the page tells had begun by then.
    const { inflight } = await this.#door.call((store) => store.read({ worker, sync: pair.backfill }))
    return inflight === null ? {} : { restateSince: inflight.startSequence }
  }

  #noteLanded(read: ReadPage, outcome: Extract<CommitOutcome, { kind: 'landed' }>, page: number, drift: readonly string[] = []): void {
    const { checked, prepared } = read
    const text = this.#drift.textOf(drift)
    if (text !== null) this.#log.warn('the records are not as they were before; they have landed', { drift: text })
    this.#drift.landed(prepared.columns, drift)
    this.#reader.landed(read)
    this.#tally.landed(outcome.counts)
    this.#trace.landed(read.trace, checked.changes.length, outcome.counts)
    this.#position = outcome.position
    this.#tidemark = laterTidemark(this.#tidemark, prepared.tidemark)
    this.#scope = this.#scopeWith(checked.scope)
    this.#stopWord = checked.stopWord
    this.#checkpoint = { ...this.#checkpoint, version: outcome.version }
    this.#options.onProgress?.({ kind: 'landed', cycle: this.#inflight!.cycle, page, counts: { ...this.#tally.counts }, tidemark: this.#tidemark, position: outcome.position, ...(checked.left !== null && { left: checked.left }) })
  }

  /** The sweep was refused: land what was read and forget the cycle, so that the next one lists everything anew. */
  async #giveUp({ cycle, page }: Inflight, read: ReadPage, { database, owned, doomed }: Extract<CommitOutcome, { kind: 'braked' }>): Promise<never> {
    const error = new SyncError(
      this.#isScopeChanged(this.#scopeWith(read.checked.scope)) ? 'SCOPE_CHANGED' : 'MASS_DELETE',
      `${this.#plan.sync}: the source no longer lists ${doomed} of the ${owned} rows of ${database}; none were deleted.`,
    )
    const outcome = await this.#commit(read, { kind: 'abandon', cycle, page: page + 1, reason: error.message })
    if (outcome.kind === 'landed') this.#noteLanded(read, outcome, page + 1)
    throw error
  }

  async #orderBackfill(): Promise<void> {
    await orderBackfill(this.#plan, this.#options, this.#door, this.#lease, this.#checkpoint.version).catch((problem: unknown) => {
      // The position stays, so the next cycle comes here again.
      this.#log.warn('the backfill could not be asked for', { code: classify(problem).code })
    })
  }

  async #finish(stopReason: StopReason, thrown: SyncError | null): Promise<CycleResult> {
    const { store, ports } = this.#options
    const endedAt = ports.clock.now()
    const failure = thrown === null || thrown.code === 'CANCELLED' ? null : thrown
    const error = failure === null ? null : { code: failure.code, message: failure.message }
    const retryAt = failure === null ? null : endedAt + cycleDelayMs(failure, this.#checkpoint.failures + 1, ports.random)
    const totals = this.#tally.totals()
    // What matters has landed; a lease that cannot be given back runs out by itself.
    await store.release(this.#lease, { cycle: this.#inflight?.cycle ?? 0, stopReason, endedAt, ...totals, error, retryAt }).catch((problem: unknown) => {
      this.#log.warn('the lease could not be released', { code: classify(problem).code })
    })
    const completeSince = stopReason === 'complete' ? this.#inflight!.startedAt : this.#checkpoint.lastSuccessAt
    return this.#trace.ended({
      ...this.#lease.ref, cycle: this.#inflight?.cycle ?? null, stopReason, stopWord: stopReason === 'complete' ? this.#stopWord : null, resumed: this.#resumed, ...totals, startedAt: this.#startedAt, endedAt,
      version: this.#checkpoint.version, position: this.#position, tidemark: this.#tidemark, drift: [...this.#drift.words],
      error: error === null ? null : { ...error, advice: failure!.advice },
      retryAt,
    }, completeSince)
  }
}

const OVERLAPS_MAX = 20

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
      return 'blocked'
    default:
      return 'error'
  }
}

/** Canonical instants compare as text; of cursors the latest counts. */
function laterTidemark(a: string | null, b: string | null): string | null {
  if (a === null || b === null) return b ?? a
  return a > b && isInstant(a) && isInstant(b) ? a : b
}

function isInstant(text: string): boolean {
  return text.length === 27 && text.endsWith('Z')
}

function notRun({ worker, sync }: SyncPlan, stopReason: 'held' | 'paused', startedAt: number, { ports }: CycleOptions, { code, message, advice }: SyncError): CycleResult {
  return {
    worker, sync, cycle: null, stopReason, stopWord: null, resumed: false, pages: 0, counts: noCounts(), retries: 0, waitedMs: 0, startedAt, endedAt: ports.clock.now(),
    version: 0, position: 0, tidemark: null, drift: [], error: { code, message, advice }, retryAt: null,
  }
}
