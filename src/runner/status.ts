import { NEVER_RUN, type BackfillNeed, type CycleRecord, type Inflight, type Outline, type Standing, type Store, type SyncRef } from '../contract/index.ts'
import type { DeclaredSync } from './declared-sync.ts'
import { dueOf, RECENT_CYCLES, type Due, type Facts } from './due.ts'
import { healthOf, type Health } from './health.ts'
import { backfillOf, type PairBackfill } from './pair-backfill.ts'

/** Where one sync stands, for people. Without its state, which may hold what is not for every eye (invariant 10). */
export interface SyncStatus extends SyncRef, Pick<DeclaredSync, 'mode' | 'schedule'>, Shown {
  readonly tenant: string
  readonly health: Health
  /** When it runs next and why; null before it was first looked at. */
  readonly due: Due | null
  readonly unfinished: Pick<Inflight, 'cycle' | 'page' | 'startedAt'> | null
  readonly lastCycle: CycleRecord | null
  /** Changes were lost, so everything has to be read again: as ordered, or as the source's retention says. */
  readonly backfillNeeded: BackfillNeed | null
}

type Shown = Pick<Outline, 'version' | 'tidemark' | 'triggeredAt' | 'failures' | 'lastError' | 'retryAt' | 'lastSuccessAt' | 'heldBy' | 'heldSince' | 'heldUntil'>

export interface StatusOptions {
  readonly store: Store
  readonly syncs: readonly DeclaredSync[]
  readonly now: number
  readonly pauseMs?: number
}

/** From the store alone, whoever runs the syncs. In the order they were declared. */
export async function readStatus({ store, syncs, now: at, pauseMs = PAUSE_MS }: StatusOptions): Promise<SyncStatus[]> {
  const { now, syncs: known } = await readStandings(store, syncs, at)
  return known.flatMap(({ declared, ...standing }) => declared === null ? [] : [statusOf(store.tenant, declared, standing, dueOf(declared, standing, { now, since: now, pauseMs }))])
}

export interface KnownSync extends Standing {
  /** Null for one that only the store still knows. */
  readonly declared: DeclaredSync | null
  /** See backfillOf. */
  readonly backfill: PairBackfill | null
}

/** Those that are declared, in their order, then the others: one question, however many they are. */
export async function readStandings(store: Store, syncs: readonly DeclaredSync[], at: number): Promise<{ readonly now: number; readonly syncs: readonly KnownSync[] }> {
  const { now, syncs: standings } = await store.standings({ at, recent: RECENT_CYCLES })
  const kept = new Map(standings.map((standing) => [nameOf(standing), standing]))
  const known = (standing: Standing, declared: DeclaredSync | null): KnownSync => ({
    ...standing, declared,
    backfill: backfillOf(standing, declared, { now, find: (sync) => kept.get(nameOf({ worker: standing.worker, sync }))?.checkpoint }),
  })
  const declared = syncs.map((sync): KnownSync => {
    const ref = { worker: sync.plan.worker, sync: sync.plan.sync }
    return known(kept.get(nameOf(ref)) ?? { ...ref, checkpoint: NEVER_RUN, recent: [] }, sync)
  })
  const names = new Set(declared.map(nameOf))
  return { now, syncs: [...declared, ...standings.filter((standing) => !names.has(nameOf(standing))).map((standing) => known(standing, null))] }
}

function nameOf({ worker, sync }: SyncRef): string {
  return `${worker}\n${sync}`
}

/** Between two cycles of a continuous sync, at the least. */
export const PAUSE_MS = 1_000

export type StatusFacts = Facts & Pick<KnownSync, 'backfill'>

export function statusOf(tenant: string, { plan, mode, schedule }: DeclaredSync, { checkpoint, recent, backfill }: StatusFacts, due: Due | null): SyncStatus {
  const { version, tidemark, triggeredAt, failures, lastError, retryAt, lastSuccessAt, heldBy, heldSince, heldUntil, inflight } = checkpoint
  return {
    tenant, worker: plan.worker, sync: plan.sync, mode, schedule, health: healthOf(checkpoint, backfill), due,
    version, tidemark, triggeredAt, failures, lastError, retryAt, lastSuccessAt, heldBy, heldSince, heldUntil,
    unfinished: inflight === null ? null : { cycle: inflight.cycle, page: inflight.page, startedAt: inflight.startedAt },
    lastCycle: recent[0] ?? null,
    backfillNeeded: backfill?.backfillNeeded ?? null,
  }
}
