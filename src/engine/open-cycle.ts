import {
  SyncError,
  type BeginResult,
  type Checkpoint,
  type CycleFacts,
  type Inflight,
  type Log,
} from '../contract/index.ts'
import { createChildLog } from '../telemetry/child-log.ts'
import type { CheckedPage } from './check-page.ts'
import type { CycleContext } from './cycle-context.ts'
import { CycleTidemark, type PageTimes } from './cycle-tidemark.ts'
import { DriftDetector } from './drift-detector.ts'
import { LoopGuard } from './loop-guard.ts'
import type { FetchedPage } from './page-reader.ts'
import { findHistoryStart, getRetentionMs } from './source-retention.ts'
import { buildRulesInForce, type SyncPlan } from './sync-plan.ts'

/** A cycle that has begun, with everything that its pages have changed in this run. */
export class OpenCycle {
  readonly #context: CycleContext
  /** Names the sync and the cycle. */
  readonly log: Log
  readonly resumed: boolean
  readonly guard: LoopGuard
  readonly driftDetector: DriftDetector
  checkpoint: Checkpoint
  inflight: Inflight
  headSequence: number
  /** The last sequence that was committed at least the source's lag before the cycle began. */
  settledSequence: number
  /** The source must still have every change since this time; see assertHistoryRetained. */
  historySince = Infinity
  tidemark: CycleTidemark
  /** The scope of the plan and its connection; joined with Page.scope. */
  readonly #declaredScope: string | null
  scope: string | null
  endReason: string | null = null

  private constructor(
    context: CycleContext,
    checkpoint: Checkpoint,
    started: BeginResult,
    declaredScope: string | null,
  ) {
    const { plan, options } = context
    const { inflight, resumed, headSequence, columns } = started
    this.#context = context
    this.log = createChildLog(options.ports.log, { cycle: inflight.cycle })
    this.resumed = resumed
    this.checkpoint = checkpoint
    this.inflight = inflight
    this.headSequence = headSequence
    this.settledSequence = inflight.startSequence
    // A resumed cycle keeps the scope and tidemark of the pages before the interruption.
    this.#declaredScope = declaredScope
    this.scope = inflight.scope ?? declaredScope
    this.tidemark = CycleTidemark.create(checkpoint.tidemark, inflight)
    this.driftDetector = new DriftDetector(columns)
    this.guard = new LoopGuard({
      sync: plan.sync,
      emptyPagesMax: plan.limits.emptyPagesMax,
      inflight,
      lastError: checkpoint.lastError,
    })
  }

  static async begin(
    context: CycleContext,
    checkpoint: Checkpoint,
    { fresh, scope }: { fresh: boolean; scope: string | null },
  ): Promise<OpenCycle> {
    const { plan, options, retryingStore, lease } = context
    const started = await retryingStore.call((store) =>
      store.beginCycle(lease, {
        at: options.ports.clock.now(),
        mode: plan.mode,
        trigger: options.trigger,
        fresh,
        databases: plan.databases.map((database) => database.name),
        rules: buildRulesInForce(plan),
      }),
    )
    if (started === null) throw new SyncError('LEASE_LOST', `${plan.sync}: another runner took over.`)
    const open = new OpenCycle(context, checkpoint, started, scope)
    open.#warnOfChangedRules(started)
    return open
  }

  #warnOfChangedRules({ changedRules = [], inflight, resumed }: BeginResult): void {
    const isRewriting = !resumed && inflight.state === null
    for (const database of changedRules)
      this.log.warn('the column rules have changed', {
        database,
        next: isRewriting ? 'this cycle reads every record again' : describeNextRead(this.#context.plan),
      })
  }

  /** Invariants 5 and 6: changes more recent than the source's lag may not be visible in its listing yet. */
  async loadSettledSequence(): Promise<void> {
    const { plan, retryingStore } = this.#context
    const { startedAt, startSequence } = this.inflight
    const { mode, lagMs } = plan
    if (mode !== 'replace' || !lagMs) return
    const sequence = await retryingStore.call((store) => store.sequenceBefore(startedAt - lagMs))
    this.settledSequence = Math.min(startSequence, sequence)
  }

  /** Infinity if nothing can be lost: the source has no limit, or the cycle has no state to continue from. */
  async loadHistoryStart(): Promise<void> {
    const { plan, retryingStore } = this.#context
    const { worker, pair } = plan
    if (getRetentionMs(plan) === null || this.inflight.state === null) return
    const backfill =
      pair?.role === 'delta'
        ? await retryingStore.call((store) => store.readCheckpoint({ worker, sync: pair.backfill }))
        : null
    this.historySince = findHistoryStart(this.checkpoint, this.inflight, backfill)
  }

  /** `ahead` is 1 for the page after the last committed one. */
  toFacts(ahead: 1 | 2): CycleFacts {
    const { cycle, mode, startedAt, page } = this.inflight
    return { id: cycle, mode, startedAt, page: page + ahead }
  }

  mergeScope(seen: string | null): string | null {
    const declared = this.#declaredScope
    if (seen === null) return this.scope
    return declared === null ? seen : `${declared} ${seen}`
  }

  /** Also if a sync that completed without a scope has one now, such as a start date. */
  isScopeChanged(scope: string | null): boolean {
    const { scope: known, lastSuccessAt } = this.checkpoint
    return known !== scope && (known !== null || lastSuccessAt !== null)
  }

  /** Applies what the answers of a page say about the whole cycle. */
  applyAnswers({ times, checked }: FetchedPage): CycleTidemark {
    const read = this.tidemark.withReadTime(times?.readSinceMs ?? null)
    return (this.tidemark = checked.isIncomplete ? read.markIncomplete() : read)
  }

  toEndReason({ hasMore, endReason }: CheckedPage): string | null {
    return hasMore || !this.tidemark.isIncomplete ? endReason : 'incomplete'
  }

  /** Invariant 6: a listing page older than the pages before it comes from a cache, or a clock is wrong. */
  isOlderThanPreviousPages({ times }: FetchedPage): boolean {
    return this.#context.plan.mode === 'replace' && times !== null && this.tidemark.isReadAfter(times.dateHeaderMs)
  }
}

export function toPageTimes({ checked, prepared }: FetchedPage): PageTimes {
  return { stated: checked.tidemark, newest: prepared.newestUpstreamAt, lastCursor: prepared.lastCursor }
}

function describeNextRead({ sync, mode, pair }: SyncPlan): string {
  if (pair?.role === 'delta') return `run tidemark trigger ${pair.backfill} to read every record again`
  return mode === 'replace'
    ? 'the next cycle reads every record again'
    : `run tidemark state reset ${sync} to read every record again`
}
