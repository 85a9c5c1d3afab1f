import { SyncError, type Column, type Landing, type LandingCounts, type Lease, type Store } from '../contract/index.ts'
import { CycleCounters } from './cycle-counters.ts'
import { RetryingStore } from './retrying-store.ts'
import { buildCommitColumnRules, buildCommitOwners, buildCommitSchemaModes, type SyncPlan } from './sync-plan.ts'
import { waitForLease, type LeaseWait } from './wait-for-lease.ts'

/** Landings with the fields of their records, for a commit. */
export interface RepairLandings {
  readonly landings: readonly Landing[]
  readonly columns: Readonly<Record<string, readonly Column[]>>
}

export interface RepairOptions extends LeaseWait {
  readonly store: Store
  readonly actor: string
  readonly database: string
  readonly verification: number
  /**
   * The current landings of these keys, read from the source now: a deletion for a key that the source does not have,
   * nothing for a key that needs no repair any more.
   */
  readonly readLandings: (keys: readonly string[]) => Promise<RepairLandings>
}

const KEYS_PER_COMMIT = 200
const OVERLAPS_MAX = 5

/**
 * Lands the source's versions of these keys through the ordinary commit. No state moves: the cursor of the sync stays
 * where it is. Invariant 6: under the lease the sync itself writes nothing, and a row that another sync writes while the
 * source is read is read again. Returns the number of changed rows.
 */
export async function repairRows(plan: SyncPlan, keys: readonly string[], options: RepairOptions): Promise<number> {
  const { store, ports } = options
  const retryingStore = new RetryingStore(store, ports, new CycleCounters())
  const { lease, version } = await waitForLease(plan, retryingStore, options)
  let repaired = 0
  try {
    for (let start = 0; start < keys.length; start += KEYS_PER_COMMIT) {
      options.signal.throwIfAborted()
      if (!(await store.renew(lease, { ttlMs: plan.limits.leaseTtlMs, at: ports.clock.now() })))
        throw new SyncError('LEASE_LOST', `${plan.sync}: another runner took over.`)
      const chunk = keys.slice(start, start + KEYS_PER_COMMIT)
      const counts = await repairChunk(plan, chunk, { lease, version, retryingStore, options })
      repaired += counts.created + counts.updated + counts.deleted
    }
    return repaired
  } finally {
    await store.release(lease).catch(() => {})
  }
}

interface RepairContext {
  readonly lease: Lease
  readonly version: number
  readonly retryingStore: RetryingStore
  readonly options: RepairOptions
}

async function repairChunk(
  plan: SyncPlan,
  keys: readonly string[],
  { lease, version, retryingStore, options }: RepairContext,
): Promise<Pick<LandingCounts, 'created' | 'updated' | 'deleted'>> {
  const { ports, actor, database, verification } = options
  for (let attempt = 1; ; attempt++) {
    const readAtSequence = await retryingStore.call((store) => store.headSequence())
    const { landings, columns } = await options.readLandings(keys)
    if (landings.length === 0) return { created: 0, updated: 0, deleted: 0 }
    const outcome = await retryingStore.commit({
      lease,
      version,
      at: ports.clock.now(),
      owner: plan.owner,
      landings,
      quarantined: [],
      columns,
      readAtSequence,
      upstreamToleranceMs: plan.upstreamToleranceMs,
      owners: buildCommitOwners(plan),
      ...buildCommitSchemaModes(plan),
      ...buildCommitColumnRules(plan),
      listing: {
        settledSequence: readAtSequence,
        lookupAnswers: { database, confirmed: landings.map(({ key }) => key), refuted: [] },
      },
      transition: { kind: 'repair', actor, verification, reason: `repaired by verification ${verification}` },
    })
    if (outcome.kind === 'landed') return outcome.counts
    if (outcome.kind !== 'overlap')
      throw new SyncError('INTERNAL', `A repair had the unexpected outcome ${outcome.kind}.`)
    if (attempt === OVERLAPS_MAX)
      throw new SyncError(
        'OVERLAP_UNRESOLVED',
        `${plan.sync}: another sync kept writing the rows that are repaired. Repair them again.`,
      )
  }
}
