import type { Store } from '../contract/index.ts'
import { LABEL_VALUES_MAX, OTHER_LABEL } from '../platform/label-limiter.ts'
import { computeHealth, type Health } from '../runner/health.ts'
import { computeCompleteSince } from '../runner/complete-since.ts'
import { readKnownSyncs, type KnownSync } from '../runner/status.ts'
import type { ServerContext } from './route.ts'

/** Where one sync stands, or the worst of many. */
export interface SyncMetric {
  readonly worker: string
  readonly sync: string
  /** Null when there was no complete cycle yet, and of a backfill: what changes after it is told by its delta. */
  readonly lagSeconds: number | null
  readonly failures: number
  /** 1 while a backfill is ordered for the sync or its pair: the copy may lack changes. Of many, how many. */
  readonly backfillNeeded: number
  /** How many of them are being run, by whichever process. */
  readonly running: number
}

export interface SyncMetrics {
  readonly healthCounts: Readonly<Record<Health, number>>
  readonly syncs: readonly SyncMetric[]
}

/** Of the syncs of one tenant. The first so many by name, in the order they are declared; of the rest the worst. */
export async function readSyncMetrics(hall: ServerContext, store: Store): Promise<SyncMetrics> {
  const { now, syncs } = await readKnownSyncs(store, hall.syncs, hall.ports.clock.now())
  const healths: Record<Health, number> = { HEALTHY: 0, INITIALIZING: 0, WARNING: 0, ERROR: 0, PAUSED: 0 }
  for (const { checkpoint, backfill } of syncs) healths[computeHealth(checkpoint, backfill)]++
  const figures = syncs.map((sync) => computeSyncMetric(sync, now))
  const rest = figures.slice(LABEL_VALUES_MAX.syncs)
  return { healthCounts: healths, syncs: [...figures.slice(0, LABEL_VALUES_MAX.syncs), ...(rest.length === 0 ? [] : [rest.reduce(mergeWorst, { worker: OTHER_LABEL, sync: OTHER_LABEL, lagSeconds: null, failures: 0, backfillNeeded: 0, running: 0 })])] }
}

function computeSyncMetric({ worker, sync, declared, checkpoint, backfill, recent }: KnownSync, now: number): SyncMetric {
  const since = declared?.plan.pair?.role === 'backfill' ? null : computeCompleteSince(checkpoint, recent)
  return { worker, sync, lagSeconds: since === null ? null : Math.max(0, now - since) / 1_000, failures: checkpoint.failures, backfillNeeded: (backfill?.backfillNeeded ?? null) === null ? 0 : 1, running: (checkpoint.heldUntil ?? 0) > now ? 1 : 0 }
}

function mergeWorst(a: SyncMetric, b: SyncMetric): SyncMetric {
  const lags = [a.lagSeconds, b.lagSeconds].filter((lag) => lag !== null)
  return { ...a, lagSeconds: lags.length === 0 ? null : Math.max(...lags), failures: Math.max(a.failures, b.failures), backfillNeeded: a.backfillNeeded + b.backfillNeeded, running: a.running + b.running }
}
