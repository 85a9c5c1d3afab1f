import type { SyncDeclaration } from './sync-options.ts'

type SyncOwnership = Pick<SyncDeclaration, 'name' | 'mode' | 'databases' | 'owner' | 'pair'>

/**
 * Under which name a sync owns the rows it writes (invariant 5: only an owner's sweep deletes them).
 *
 * A backfill and its delta maintain one table together: what the delta created and the source then dropped must fall to
 * the backfill's sweep. So an incremental sync writes in the name of the replace sync of its database, when there is
 * exactly one. With two or more, each owns only what it returned, and nobody can say whose the delta's rows are.
 *
 * A sync of several databases joins only an owner that reads all of them in full: the sweep of one that does not would
 * find the rows it never reads unseen, and delete what lives.
 */
export function resolveOwner(worker: string, sync: SyncOwnership, all: readonly SyncOwnership[]): string {
  if (sync.owner !== null) return sync.owner
  // Declared as a pair: one owner, whoever else writes there.
  if (sync.pair !== null) return `${worker}/${sync.pair.role === 'backfill' ? sync.pair.delta : sync.name}`
  if (sync.mode === 'incremental') {
    const keepers = all.filter((other) => other.mode === 'replace' && other.databases.some((name) => sync.databases.includes(name)))
    const [keeper] = keepers
    if (keeper !== undefined && keepers.length === 1 && sync.databases.every((name) => keeper.databases.includes(name))) {
      return resolveOwner(worker, keeper, all)
    }
  }
  return `${worker}/${sync.name}`
}
