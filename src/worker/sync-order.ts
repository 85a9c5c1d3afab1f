import { SyncError } from '../contract/index.ts'
import { describeValue } from '../config/names.ts'
import { didYouMean } from '../values/did-you-mean.ts'
import type { SyncDeclaration } from './sync-options.ts'

type OrderedSync = Pick<SyncDeclaration, 'name' | 'after' | 'pair'>

/** Throws if the new declaration closes a cycle: none of its syncs could ever start. */
export function checkNoCycle(syncs: readonly OrderedSync[], name: string): void {
  const cycle = findCycle(syncs, toUnit(syncs, name))
  if (cycle === null) return
  throw new SyncError(
    'SYNC_INVALID',
    `Sync "${name}": \`after\` makes a cycle, so none of its syncs could ever start: ${cycle.join(' → ')}. Remove one of them.`,
  )
}

/** Throws if a sync names a parent that the worker does not declare. */
export function checkParents(syncs: readonly OrderedSync[]): void {
  const names = syncs.map(({ name }) => name)
  for (const { name, after } of syncs) {
    const unknown = after.find((parent) => !names.includes(parent))
    if (unknown === undefined) continue
    const hint = didYouMean(unknown, names) || ` The syncs are ${names.join(', ')}.`
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
  const sorted: Sync[] = []
  const add = (sync: Sync): void => {
    if (sorted.includes(sync)) return
    for (const parent of sync.after ?? []) for (const found of syncs) if (found.name === parent) add(found)
    sorted.push(sync)
  }
  for (const sync of syncs) add(sync)
  return sorted
}

/** The shortest path from a sync to itself. Both halves of a pair are one unit: each needs the other. */
function findCycle(syncs: readonly OrderedSync[], start: string): string[] | null {
  const paths = new Map([[start, [start]]])
  for (const [unit, path] of paths) {
    const parents = syncs.filter(({ name }) => toUnit(syncs, name) === unit).flatMap(({ after }) => after)
    for (const parent of parents.map((name) => toUnit(syncs, name))) {
      if (parent === start) return [...path, parent]
      if (!paths.has(parent)) paths.set(parent, [...path, parent])
    }
  }
  return null
}

function toUnit(syncs: readonly OrderedSync[], name: string): string {
  const pair = syncs.find((sync) => sync.name === name)?.pair
  return pair?.role === 'backfill' ? pair.delta : name
}
