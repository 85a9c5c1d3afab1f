import { SyncError } from '../contract/index.ts'
import { describeValue } from '../config/names.ts'
import { didYouMean } from '../values/did-you-mean.ts'
import type { SyncDeclaration } from './sync-options.ts'

type OrderedSync = Pick<SyncDeclaration, 'name' | 'after' | 'pair'>

/** Throws if the new declaration closes a cycle: none of its syncs could ever start. */
export function checkNoCycle(syncs: readonly OrderedSync[], name: string): void {
  const cycle = findCycle(syncs, name)
  if (cycle === null) return
  throw new SyncError(
    'SYNC_INVALID',
    `Sync "${name}": \`after\` makes a cycle, so none of its syncs could ever start: ${cycle.join(' → ')}. Remove one of them.`,
  )
}

/** Throws if a sync names a parent that the worker does not declare. */
export function checkParents(syncs: readonly OrderedSync[]): void {
  const names = new Set(syncs.map(({ name }) => name))
  for (const { name, after } of syncs) {
    const unknown = after.find((parent) => !names.has(parent))
    if (unknown === undefined) continue
    const hint = didYouMean(unknown, names) || ` The syncs are ${[...names].join(', ')}.`
    throw new SyncError(
      'SYNC_UNKNOWN',
      `Sync "${name}": \`after\` names ${describeValue(unknown)}, which is not declared.${hint}`,
    )
  }
}

/** Parents before children; otherwise the given order. */
export function sortByParents<Sync extends { readonly name: string; readonly after?: readonly string[] }>(
  syncs: readonly Sync[],
): Sync[] {
  const byName = new Map(syncs.map((sync) => [sync.name, sync]))
  const sorted = new Set<Sync>()
  const add = (sync: Sync): void => {
    if (sorted.has(sync)) return
    for (const parent of sync.after ?? []) {
      const found = byName.get(parent)
      if (found !== undefined) add(found)
    }
    sorted.add(sync)
  }
  for (const sync of syncs) add(sync)
  return [...sorted]
}

/** The shortest path from a sync to itself. Both halves of a pair are one unit: each needs the other. */
function findCycle(syncs: readonly OrderedSync[], name: string): string[] | null {
  // A cycle through the new sync needs its parents, or those of its other half, which was declared before.
  const added = syncs.find((sync) => sync.name === name)
  if (added === undefined || (added.after.length === 0 && added.pair === null)) return null
  const units = new Map(syncs.map((sync) => [sync.name, unitOf(sync)]))
  const parentsOf = new Map<string, string[]>()
  for (const sync of syncs) {
    if (sync.after.length === 0) continue
    const unit = unitOf(sync)
    parentsOf.set(unit, [...(parentsOf.get(unit) ?? []), ...sync.after.map((parent) => units.get(parent) ?? parent)])
  }
  const start = unitOf(added)
  const paths = new Map([[start, [start]]])
  for (const [unit, path] of paths) {
    for (const parent of parentsOf.get(unit) ?? []) {
      if (parent === start) return [...path, parent]
      if (!paths.has(parent)) paths.set(parent, [...path, parent])
    }
  }
  return null
}

function unitOf({ name, pair }: OrderedSync): string {
  return pair?.role === 'backfill' ? pair.delta : name
}
