import type { Store } from '../contract/index.ts'
import { LABEL_VALUES_MAX, OTHER_LABEL } from '../platform/label-limiter.ts'
import { computeHealth, type Health } from '../runner/health.ts'
import { computeCompleteSince } from '../runner/complete-since.ts'
import { readKnownSyncs, type KnownSync } from '../runner/status.ts'
import type { ServerContext } from './route.ts'

/** Metrics of one sync, or the worst values of several. */
export interface SyncMetric {
  readonly worker: string
  readonly sync: string
  /** Null before the first complete cycle, and for a backfill, whose delta carries the lag. */
  readonly lagSeconds: number | null
  readonly failures: number
  /**
   * 1 while a backfill is requested for the sync or its pair, so the copy may lack changes. For several syncs, their
   * number.
   */
  readonly backfillNeeded: number
  /** Number of running cycles in the fleet. */
  readonly running: number
}

export interface SyncMetrics {
  readonly healthCounts: Readonly<Record<Health, number>>
  readonly syncs: readonly SyncMetric[]
}

/**
 * Metrics of one tenant's syncs. Syncs beyond the label limit, in declaration order, are merged into their worst
 * values.
 */
export async function readSyncMetrics(context: ServerContext, store: Store): Promise<SyncMetrics> {
  const { now, syncs } = await readKnownSyncs(store, context.syncs, context.ports.clock.now())
  const healthCounts: Record<Health, number> = { HEALTHY: 0, INITIALIZING: 0, WARNING: 0, ERROR: 0, PAUSED: 0 }
  for (const { checkpoint, backfill } of syncs) healthCounts[computeHealth(checkpoint, backfill)]++
  const metrics = syncs.map((sync) => computeSyncMetric(sync, now))
  const rest = metrics.slice(LABEL_VALUES_MAX.syncs)
  return {
    healthCounts,
    syncs: [
      ...metrics.slice(0, LABEL_VALUES_MAX.syncs),
      ...(rest.length === 0
        ? []
        : [
            rest.reduce(mergeWorst, {
              worker: OTHER_LABEL,
              sync: OTHER_LABEL,
              lagSeconds: null,
              failures: 0,
              backfillNeeded: 0,
              running: 0,
            }),
          ]),
    ],
  }
}

function computeSyncMetric(
  { worker, sync, declared, checkpoint, backfill, recent }: KnownSync,
  now: number,
): SyncMetric {
  const since = declared?.plan.pair?.role === 'backfill' ? null : computeCompleteSince(checkpoint, recent)
  return {
    worker,
    sync,
    lagSeconds: since === null ? null : Math.max(0, now - since) / 1_000,
    failures: checkpoint.failures,
    backfillNeeded: (backfill?.backfillNeeded ?? null) === null ? 0 : 1,
    running: (checkpoint.heldUntil ?? 0) > now ? 1 : 0,
  }
}

function mergeWorst(a: SyncMetric, b: SyncMetric): SyncMetric {
  const lags = [a.lagSeconds, b.lagSeconds].filter((lag) => lag !== null)
  return {
    ...a,
    lagSeconds: lags.length === 0 ? null : Math.max(...lags),
    failures: Math.max(a.failures, b.failures),
    backfillNeeded: a.backfillNeeded + b.backfillNeeded,
    running: a.running + b.running,
  }
}
