import type { SyncDeclaration } from './sync-options.ts'

type SyncOwnership = Pick<SyncDeclaration, 'name' | 'mode' | 'databases' | 'owner' | 'pair'>

/**
 * The owner of the rows that a sync writes. Invariant 5: only a sweep of the owner deletes them.
 *
 * A backfill and its delta maintain one table together: the backfill's sweep must delete rows that the delta created and
 * the source then deleted. So an incremental sync uses the owner of the replace sync of its database, if there is
 * exactly one. With two or more, each owns only the rows it returned, and the owner of the delta's rows is ambiguous.
 *
 * A sync of several databases joins only an owner that reads all of them in full. Otherwise the owner's sweep would
 * delete live rows that it never reads.
 */
export function resolveOwner(worker: string, sync: SyncOwnership, all: readonly SyncOwnership[]): string {
  if (sync.owner !== null) return sync.owner
  // A declared pair has one owner, regardless of other writers.
  if (sync.pair !== null) return `${worker}/${sync.pair.role === 'backfill' ? sync.pair.delta : sync.name}`
  if (sync.mode === 'incremental') {
    const keepers = all.filter(
      (other) => other.mode === 'replace' && other.databases.some((name) => sync.databases.includes(name)),
    )
    const [keeper] = keepers
    if (
      keeper !== undefined &&
      keepers.length === 1 &&
      sync.databases.every((name) => keeper.databases.includes(name))
    ) {
      return resolveOwner(worker, keeper, all)
    }
  }
  return `${worker}/${sync.name}`
}
