import type { StateTransition, Sweep } from '../contract/index.ts'
import type { CycleContext } from './cycle-context.ts'
import { isCoveredByBackfill } from './cycle-tidemark.ts'
import type { LoopGuardStep } from './loop-guard.ts'
import { toPageTimes, type OpenCycle } from './open-cycle.ts'
import type { FetchedPage } from './page-reader.ts'
import { buildPartitionSweep } from './partition-sweep.ts'
import { buildSweep } from './sweep.ts'
import { readsPart } from './sync-plan.ts'

/** A transition that commits a page. */
export type PageTransition = Extract<StateTransition, { readonly cycle: number }>

/** For a page with more to come. */
export function buildContinueTransition(open: OpenCycle, read: FetchedPage, step: LoopGuardStep): PageTransition {
  const { cycle, page, mode } = open.inflight
  const { state, scope } = read.checked
  const tidemark = open.applyAnswers(read).withPage(mode, toPageTimes(read))
  return {
    kind: 'continue',
    cycle,
    page: page + 1,
    state,
    tidemark: tidemark.candidate,
    scope: open.mergeScope(scope),
    guardState: tidemark.serializeWith(step.guardState),
  }
}

/** For the last page. */
export function buildCompleteTransition(
  context: CycleContext,
  open: OpenCycle,
  read: FetchedPage,
  tidemark: string | null,
): PageTransition {
  const { checked } = read
  const { cycle, page, state: requestState } = open.inflight
  const scope = open.mergeScope(checked.scope)
  const replace = context.plan.mode === 'replace'
  const isSweepable = !open.applyAnswers(read).isIncomplete || context.options.allowDeletes === true
  return {
    kind: 'complete',
    cycle,
    page: page + 1,
    // Replace: state is only for paging. Incremental without a new state: the state of this request is still valid.
    state: replace ? null : (checked.state ?? requestState),
    tidemark,
    scope,
    // Invariant 5: a cycle whose source hid a part is not complete.
    sweep: replace && isSweepable ? chooseSweep(context, open, checked, scope) : null,
    endReason: open.toEndReason(checked),
  }
}

/** Invariant 5: a read of some records is not a complete cycle of their owner. */
function chooseSweep(
  context: CycleContext,
  open: OpenCycle,
  { rows }: FetchedPage['checked'],
  scope: string | null,
): Sweep | null {
  const { range, partitions } = context.plan
  if (range !== undefined) return null
  return partitions === undefined ? buildSweep(context, open, scope) : buildPartitionSweep(context, open, rows)
}

/** For the page whose sweep was refused. */
export function buildAbandonTransition({ inflight: { cycle, page } }: OpenCycle, reason: string): PageTransition {
  return { kind: 'abandon', cycle, page: page + 1, reason }
}

export async function computeFinalTidemark(
  { plan, retryingStore }: CycleContext,
  open: OpenCycle,
  read: FetchedPage,
): Promise<string | null> {
  const { worker, pair } = plan
  if (readsPart(plan)) return null
  if (pair?.role === 'delta') {
    const backfill = await retryingStore.call((store) => store.readCheckpoint({ worker, sync: pair.backfill }))
    if (!isCoveredByBackfill(open.checkpoint, backfill)) return null
  }
  const { mode, startedAt } = open.inflight
  return open.applyAnswers(read).computeFinal({ mode, startedAtMs: startedAt }, toPageTimes(read))
}

/** Invariant 12: the copy keeps versions that the listing contradicts, so the cycle does not advance the tidemark. */
export function holdTidemark(open: OpenCycle, transition: StateTransition): StateTransition {
  const tidemark = (open.tidemark = open.tidemark.hold())
  if (transition.kind === 'complete') return { ...transition, tidemark: tidemark.applyHold(transition.tidemark) }
  if (transition.kind !== 'continue' || transition.guardState === null) return transition
  return { ...transition, guardState: tidemark.serializeWith(JSON.parse(transition.guardState) as object) }
}
