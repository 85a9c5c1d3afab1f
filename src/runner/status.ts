import {
  EMPTY_CHECKPOINT,
  type BackfillRequest,
  type CycleRecord,
  type Inflight,
  type CheckpointSummary,
  type SyncStatusRow,
  type Store,
  type SyncRef,
} from '../contract/index.ts'
import { isRangeName } from '../engine/range-plan.ts'
import type { DeclaredSync } from './declared-sync.ts'
import { computeDueTime, RECENT_CYCLES, type ConnectionFacts, type DueTime, type SyncFacts } from './due.ts'
import { computeConnectedHealth, computeHealth, type Health } from './health.ts'
import { findPairBackfill, type PairBackfill } from './pair-backfill.ts'
import { readParents, type ParentFacts } from './parents.ts'

/** The status of one sync. Excludes its state, which may contain secrets (invariant 10). */
export interface SyncStatus extends SyncRef, Pick<DeclaredSync, 'mode' | 'schedule'>, StatusFields {
  readonly tenant: string
  readonly health: Health
  /** The next run and its reason; null before the first poll. */
  readonly due: DueTime | null
  readonly unfinished: Pick<Inflight, 'cycle' | 'page' | 'startedAt'> | null
  readonly lastCycle: CycleRecord | null
  /**
   * Changes were lost, so a backfill is needed: as requested in the store, or as predicted from the source's
   * retention.
   */
  readonly backfillNeeded: BackfillRequest | null
  /** The connection that it reads with; absent if it names none. */
  readonly connection?: ConnectionFacts
}

type StatusFields = Pick<
  CheckpointSummary,
  | 'version'
  | 'tidemark'
  | 'triggeredAt'
  | 'failures'
  | 'lastError'
  | 'retryAt'
  | 'lastSuccessAt'
  | 'heldBy'
  | 'heldSince'
  | 'heldUntil'
>

export interface StatusOptions {
  readonly store: Store
  readonly syncs: readonly DeclaredSync[]
  readonly now: number
  readonly pauseMs?: number
}

/** Reads the status from the store alone, in declaration order. */
export async function readStatus({
  store,
  syncs,
  now: at,
  pauseMs = CONTINUOUS_PAUSE_MS,
}: StatusOptions): Promise<SyncStatus[]> {
  const { now, syncs: known } = await readKnownSyncs(store, syncs, at)
  return known.flatMap(({ declared, ...status }) =>
    declared === null
      ? []
      : [
          buildSyncStatus(
            store.tenant,
            declared,
            status,
            computeDueTime(declared, status, { now, since: now, pauseMs }),
          ),
        ],
  )
}

export interface KnownSync extends SyncStatusRow {
  /** Null for a sync that only the store knows. */
  readonly declared: DeclaredSync | null
  /** See `findPairBackfill`. */
  readonly backfill: PairBackfill | null
  readonly parents: readonly ParentFacts[]
  readonly connection?: ConnectionFacts
}

/**
 * Returns the declared syncs in their order, then the others. A sync whose connection the tenant does not have is not
 * one of its syncs, but its rows and status stay in the store.
 */
export async function readKnownSyncs(
  store: Store,
  syncs: readonly DeclaredSync[],
  at: number,
): Promise<{ readonly now: number; readonly syncs: readonly KnownSync[] }> {
  const [{ now, syncs: rows }, connections] = await Promise.all([
    store.listSyncStatus({ at, recent: RECENT_CYCLES }),
    readConnections(store, syncs),
  ])
  const rowsByKey = new Map(rows.map((status) => [syncKey(status), status]))
  const known = (status: SyncStatusRow, declared: DeclaredSync | null): KnownSync => {
    const connection = connections.get(declared?.plan.connection ?? '')
    const findCheckpoint = (sync: string): CheckpointSummary | undefined =>
      rowsByKey.get(syncKey({ worker: status.worker, sync }))?.checkpoint
    return {
      ...status,
      declared,
      backfill: findPairBackfill(status, declared, { now, findCheckpoint }),
      parents: readParents(declared?.after, findCheckpoint),
      ...(connection !== undefined && { connection }),
    }
  }
  const own = syncs.filter(({ plan }) => plan.connection == null || connections.has(plan.connection))
  const declared = own.map((sync): KnownSync => {
    const ref = { worker: sync.plan.worker, sync: sync.plan.sync }
    return known(rowsByKey.get(syncKey(ref)) ?? { ...ref, checkpoint: EMPTY_CHECKPOINT, recent: [] }, sync)
  })
  const names = new Set(declared.map(syncKey))
  return {
    now,
    syncs: [
      ...declared,
      ...rows.filter((status) => !names.has(syncKey(status)) && isShown(status)).map((status) => known(status, null)),
    ],
  }
}

async function readConnections(store: Store, syncs: readonly DeclaredSync[]): Promise<Map<string, ConnectionFacts>> {
  if (syncs.every(({ plan }) => plan.connection == null)) return new Map()
  return new Map((await store.connections()).map((connection) => [connection.name, toConnectionFacts(connection)]))
}

export function toConnectionFacts({ name, status, statusReason, updatedAt }: ConnectionFacts): ConnectionFacts {
  return { name, status, statusReason, updatedAt }
}

/** A range read is shown until it is complete. */
export function isShown({ sync, checkpoint }: Pick<SyncStatusRow, 'sync' | 'checkpoint'>): boolean {
  return !isRangeName(sync) || checkpoint.inflight !== null || checkpoint.failures > 0
}

function syncKey({ worker, sync }: SyncRef): string {
  return `${worker}\n${sync}`
}

/** Minimum time between two cycles of a continuous sync. */
export const CONTINUOUS_PAUSE_MS = 1_000

export type StatusFacts = SyncFacts & Pick<KnownSync, 'backfill'>

export function buildSyncStatus(
  tenant: string,
  { plan, mode, schedule }: DeclaredSync,
  { checkpoint, recent, backfill, connection }: StatusFacts,
  due: DueTime | null,
): SyncStatus {
  const {
    version,
    tidemark,
    triggeredAt,
    failures,
    lastError,
    retryAt,
    lastSuccessAt,
    heldBy,
    heldSince,
    heldUntil,
    inflight,
  } = checkpoint
  return {
    tenant,
    worker: plan.worker,
    sync: plan.sync,
    mode,
    schedule,
    health: computeConnectedHealth(connection?.status, computeHealth(checkpoint, backfill)),
    due,
    version,
    tidemark,
    triggeredAt,
    failures,
    lastError,
    retryAt,
    lastSuccessAt,
    heldBy,
    heldSince,
    heldUntil,
    unfinished:
      inflight === null ? null : { cycle: inflight.cycle, page: inflight.page, startedAt: inflight.startedAt },
    lastCycle: recent[0] ?? null,
    backfillNeeded: backfill?.backfillNeeded ?? null,
    ...(connection !== undefined && { connection }),
  }
}
