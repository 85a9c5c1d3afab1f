import { SyncError, type Checkpoint, type StateText } from '../contract/index.ts'
import { required } from '../values/required.ts'
import { ensureAnchor, requestBackfill } from './anchor.ts'
import { classifyError } from './classify-error.ts'
import { assertSameAccount, readDeclaredScope } from './connection-scope.ts'
import { CommitBuilder } from './commit-builder.ts'
import type { CycleContext } from './cycle-context.ts'
import type { ActiveCycleAction, CycleEvent } from './cycle-machine.ts'
import type { CycleResources } from './cycle-resources.ts'
import { toStopReason, type CycleEnd } from './end-cycle.ts'
import { describeFinalDrift } from './final-drift.ts'
import { LateRowMonitor } from './late-row-monitor.ts'
import type { LoopGuardStep } from './loop-guard.ts'
import { OpenCycle } from './open-cycle.ts'
import { PageCommit } from './page-commit.ts'
import type { FetchedPage, PageRequest, PendingPage } from './page-reader.ts'
import { continuesRange } from './range-plan.ts'
import {
  buildAbandonTransition,
  buildCompleteTransition,
  buildContinueTransition,
  computeFinalTidemark,
  type PageTransition,
} from './page-transition.ts'
import { recordLanding } from './record-landing.ts'
import { findExceededBudget, type ExceededBudget } from './run-budget.ts'
import { assertHistoryRetained } from './source-retention.ts'
import { toRefusalError } from './sweep.ts'
import { assertDeletesSupported, readsPart } from './sync-plan.ts'

/**
 * The actions of the machine in cycle-machine.ts, one method each. A method returns the event that follows from it, or
 * throws. The machine alone decides the order of the calls.
 */
export class CycleActions implements Readonly<Record<ActiveCycleAction, () => Promise<CycleEvent>>> {
  readonly #context: CycleContext
  readonly #resources: CycleResources
  readonly #commitBuilder: CommitBuilder
  #open: OpenCycle | null = null
  #scope: string | null = null
  /** Undefined until the first page is requested; null if the sync needs none. */
  #lateRows: LateRowMonitor | null | undefined
  /** The page to commit. */
  #read: FetchedPage | null = null
  #page: PageInCommit | null = null
  /** Consecutive attempts for the same page. */
  #overlaps = 0
  #olderPages = 0
  /** Keys of the overlaps; see SyncContext.unordered. */
  #unordered: readonly string[] = []
  #restarted = false
  #end: CycleEnd | null = null

  constructor(context: CycleContext, resources: CycleResources) {
    this.#context = context
    this.#resources = resources
    this.#commitBuilder = new CommitBuilder(context)
  }

  async beginCycle(): Promise<CycleEvent> {
    const { plan, options, checkpoint } = this.#context
    const { inflight, backfillNeeded } = checkpoint
    assertDeletesSupported(plan, options.store)
    this.#scope = await readDeclaredScope(plan, options)
    assertSameAccount(plan, this.#scope, checkpoint, options)
    // The unfinished cycle of a backfill that was requested again since began before the new anchor.
    const isOutdated = inflight !== null && backfillNeeded?.cycle === inflight.cycle
    const isOfOtherRange = inflight !== null && readsPart(plan) && !continuesRange(plan, inflight)
    return this.#openCycle(options.fresh === true || isOutdated || isOfOtherRange)
  }

  restartCycle(): Promise<CycleEvent> {
    return this.#openCycle(true)
  }

  async #openCycle(fresh: boolean): Promise<CycleEvent> {
    const open = (this.#open = await OpenCycle.begin(this.#context, this.#checkpoint, {
      fresh,
      scope: this.#scope,
    }))
    await open.loadSettledSequence()
    const { cycle, page } = open.inflight
    this.#context.options.onProgress?.({ kind: 'begun', cycle, resumed: open.resumed, page })
    return page === 0 ? 'begun' : 'resumed'
  }

  async takeAnchor(): Promise<CycleEvent> {
    await ensureAnchor(this.#context, this.#resources.reader, this.#requireOpen().toFacts(1))
    return 'anchored'
  }

  async startReading(): Promise<CycleEvent> {
    const { plan, retryingStore } = this.#context
    await this.#requireOpen().loadHistoryStart()
    this.#assertHistoryRetained()
    if (this.#lateRows === undefined) this.#lateRows = await LateRowMonitor.create(plan, retryingStore)
    return this.readPage()
  }

  readPage(): Promise<CycleEvent> {
    return this.#requestPage([])
  }

  readPageAgain(): Promise<CycleEvent> {
    return this.#requestPage(this.#unordered)
  }

  awaitNextPage(): Promise<CycleEvent> {
    return this.#awaitPage(required(this.#requirePage().next, 'page read ahead'))
  }

  #requestPage(unordered: readonly string[]): Promise<CycleEvent> {
    return this.#awaitPage(this.#startRead(this.#requireOpen().inflight.state, 1, { unordered }))
  }

  /** `ahead` is 1 for the page after the last committed one. */
  #startRead(
    state: StateText,
    ahead: 1 | 2,
    { unordered = [], partitions = [] }: Partial<Pick<PageRequest, 'unordered' | 'partitions'>>,
  ): PendingPage {
    const open = this.#requireOpen()
    const cycle = open.toFacts(ahead)
    return this.#resources.reader.read({ state, unordered, partitions, readAtSequence: open.headSequence, cycle })
  }

  async #awaitPage(pending: PendingPage): Promise<CycleEvent> {
    const open = this.#requireOpen()
    const read = await pending.page.catch((error: unknown) => this.#restartOrThrow(error, open))
    this.#assertHistoryRetained()
    // The first page uses the committed state, so the same request is repeated.
    if (read === null) return open.inflight.page > 0 ? 'stateRejected' : 'firstStateRejected'
    // After OLDER_PAGES_MAX attempts the page is accepted: the clock is probably wrong.
    if (open.isOlderThanPreviousPages(read) && this.#olderPages++ < OLDER_PAGES_MAX) {
      this.#context.trace.endDroppedPage(read.trace, 'discarded')
      return 'pageOlder'
    }
    this.#olderPages = 0
    this.#read = read
    return 'pageRead'
  }

  /**
   * Returns null if the source rejected a state: the committed one is used instead. Only once, or it might never end.
   */
  #restartOrThrow(error: unknown, { inflight, log }: OpenCycle): null {
    if (classifyError(error).code !== 'CURSOR_REJECTED' || inflight.state === null || this.#restarted) throw error
    this.#restarted = true
    log.warn('the source rejected the state; restarting from the committed state')
    return null
  }

  async commitPage(): Promise<CycleEvent> {
    const open = this.#requireOpen()
    const read = required(this.#read, 'page that was read')
    const { hasMore, state, partitions } = read.checked
    const guardStep = hasMore
      ? open.guard.check(open.inflight, required(state, 'state of a page with more to come'), {
          ...read.prepared,
          partitions,
        })
      : null
    const exceededBudget = hasMore ? findExceededBudget(this.#context) : null
    const next = hasMore && exceededBudget === null ? this.#startRead(state, 2, { partitions }) : null
    const drift = hasMore
      ? open.driftDetector.detect(read.prepared.columns)
      : await describeFinalDrift(this.#context, open, read)
    // If this fails, the end of the cycle also aborts the prefetched page.
    const transition =
      guardStep === null
        ? buildCompleteTransition(this.#context, open, read, await computeFinalTidemark(this.#context, open, read))
        : buildContinueTransition(open, read, guardStep)
    const commit = this.#buildCommit(read, transition, drift)
    this.#page = { commit, guardStep, exceededBudget, next }
    return await commit.orderAndSend()
  }

  lookUpRows(): Promise<CycleEvent> {
    return this.#requirePage().commit.lookUpRows()
  }

  commitAgain(): Promise<CycleEvent> {
    return this.#requirePage().commit.send()
  }

  #buildCommit(read: FetchedPage, transition: PageTransition, drift: readonly string[]): PageCommit {
    const context = this.#context
    const commitBuilder = this.#commitBuilder
    const { lookups } = this.#resources
    return new PageCommit({ context, open: this.#requireOpen(), lookups, commitBuilder, read, transition, drift })
  }

  async readAfterOverlap(): Promise<CycleEvent> {
    const { plan, trace, retryingStore } = this.#context
    const open = this.#requireOpen()
    const { commit, next } = this.#requirePage()
    next?.discard()
    trace.endDroppedPage(commit.read.trace, 'overlap')
    if (++this.#overlaps > OVERLAPS_MAX)
      throw new SyncError(
        'OVERLAP_UNRESOLVED',
        `${plan.sync}: another sync kept writing the same rows while page ${open.inflight.page + 1} was read.`,
      )
    this.#unordered = [...new Set([...this.#unordered, ...commit.overlapKeys])]
    open.headSequence = await retryingStore.call((store) => store.headSequence())
    return this.readPageAgain()
  }

  /** Commits the rows of the page and discards the cycle, so that the next one lists everything again. */
  async abandonCycle(): Promise<CycleEvent> {
    const { read, refusal } = this.#requirePage().commit
    const open = this.#requireOpen()
    const error = toRefusalError(this.#context, open, read, refusal)
    this.#end = { stopReason: toStopReason(error), error }
    const commit = this.#buildCommit(read, buildAbandonTransition(open, error.message), [])
    this.#page = { commit, guardStep: null, exceededBudget: null, next: null }
    return await commit.orderAndSend()
  }

  async recordPage(): Promise<CycleEvent> {
    const { options } = this.#context
    const { commit, guardStep, exceededBudget } = this.#requirePage()
    const { read, transition, landed } = commit
    const open = this.#requireOpen()
    const before = open.headSequence
    if (guardStep !== null) open.guard.advance(guardStep)
    recordLanding(this.#context, open, this.#resources.reader, commit)
    if (transition.kind === 'abandon') return 'stopped'
    this.#overlaps = 0
    this.#unordered = []
    open.inflight = { ...open.inflight, page: transition.page, state: read.checked.state }
    await this.#lateRows?.inspectPage(landed, before, read.prepared.landings)
    if (!read.checked.hasMore) {
      this.#end = { stopReason: 'complete', error: null }
      this.#lateRows?.report(open.log, options.ports.clock.now())
      return 'completed'
    }
    const stopReason = exceededBudget ?? (landed.paused ? 'paused' : null)
    if (stopReason === null) return 'more'
    this.#end = { stopReason, error: null }
    return 'stopped'
  }

  /** For an action that threw. */
  recordFailure(thrown: unknown): CycleEvent {
    const error = classifyError(thrown)
    this.#end = { stopReason: toStopReason(error), error }
    return this.#isHistoryLost(error) ? 'historyLost' : 'failed'
  }

  /**
   * True also if the source rejects a state again after the cycle restarted from the committed one: the changes since
   * then can no longer be read, at the first page or at the first page of a later stream.
   */
  #isHistoryLost({ code }: SyncError): boolean {
    if (this.#context.plan.mode !== 'incremental') return false
    return (
      code === 'HISTORY_LOST' || (code === 'CURSOR_REJECTED' && this.#restarted && this.#checkpoint.committed !== null)
    )
  }

  async handleHistoryLoss(): Promise<CycleEvent> {
    const { stopReason, error } = this.end
    const lost = required(error, 'loss of history')
    const { version } = this.#checkpoint
    try {
      this.#end = { stopReason, error: await requestBackfill(this.#context, version, lost) }
    } catch (problem) {
      // The state stays, so the next cycle detects the loss again.
      this.#requireOpen().log.warn('could not request the backfill', { code: classifyError(problem).code })
    }
    return 'lossHandled'
  }

  /** Called before the first page, and before a page that has been read is committed. */
  #assertHistoryRetained(): void {
    const { plan, options } = this.#context
    assertHistoryRetained(plan, this.#requireOpen().historySince, options.ports.clock.now())
  }

  /** Null if the cycle has not begun. */
  get open(): OpenCycle | null {
    return this.#open
  }

  /** Legal once an action ended the cycle. */
  get end(): CycleEnd {
    return required(this.#end, 'end of the cycle')
  }

  get #checkpoint(): Checkpoint {
    return this.#open?.checkpoint ?? this.#context.checkpoint
  }

  #requireOpen(): OpenCycle {
    return required(this.#open, 'unfinished cycle')
  }

  #requirePage(): PageInCommit {
    return required(this.#page, 'page in commit')
  }
}

interface PageInCommit {
  readonly commit: PageCommit
  /** Null for the last page. */
  readonly guardStep: LoopGuardStep | null
  /** The limit that ends the run after this page. */
  readonly exceededBudget: ExceededBudget | null
  /** The page that is being read while this one commits. */
  readonly next: PendingPage | null
}

const OVERLAPS_MAX = 20

/** Attempts for a page that is dated before the pages before it. */
const OLDER_PAGES_MAX = 3
