import type { SyncDocument } from '../../src/server/console/documents.ts'
import { CONDITIONS, findCauseKey, findCondition, listSearchTexts, type Condition } from './sync-condition.ts'

/** The columns by which the overview is sorted. */
export const SORT_COLUMNS = ['status', 'sync', 'coverage', 'lag', 'rows', 'last', 'error', 'next'] as const
export type SortColumn = (typeof SORT_COLUMNS)[number]

export const GROUPINGS = ['worker', 'tenant', 'connection', 'status'] as const
export type Grouping = (typeof GROUPINGS)[number]

export interface SyncListView {
  readonly search: string
  readonly status: Condition | null
  readonly worker: string
  readonly tenant: string
  readonly connection: string
  /** The key of a cause. */
  readonly cause: string
  readonly sort: SortColumn
  readonly isDescending: boolean
  readonly group: Grouping | null
}

/** A sync as the list shows it. */
export interface SyncItem {
  readonly kind: 'sync'
  readonly sync: SyncDocument
  readonly condition: Condition
  readonly rows: number | null
  /** Right below its delta. */
  readonly isBelowDelta: boolean
}

export interface GroupItem {
  readonly kind: 'group'
  readonly name: string
  readonly syncs: number
  readonly failing: number
  readonly late: number
}

export type ListItem = SyncItem | GroupItem

export function buildSyncList(
  syncs: readonly SyncDocument[],
  view: SyncListView,
  rowsOf: (sync: SyncDocument) => number | null,
  now: number,
): ListItem[] {
  const wanted = view.search.trim().toLowerCase()
  const matches = syncs
    .filter(
      (sync) =>
        (view.status === null || findCondition(sync, now) === view.status) &&
        (view.worker === '' || sync.worker === view.worker) &&
        (view.tenant === '' || sync.tenant === view.tenant) &&
        (view.connection === '' || sync.connection?.name === view.connection) &&
        (view.cause === '' || findCauseKey(sync, now) === view.cause) &&
        (wanted === '' || listSearchTexts(sync).some((text) => text.toLowerCase().includes(wanted))),
    )
    .map((sync): SyncItem => ({
      kind: 'sync',
      sync,
      condition: findCondition(sync, now),
      rows: rowsOf(sync),
      isBelowDelta: false,
    }))
  const sorted = sortItems(matches, view)
  if (view.group === null) return sorted
  const groups = new Map<string, SyncItem[]>()
  for (const item of sorted) {
    const name = groupOf(item, view.group)
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [item])
    else group.push(item)
  }
  return [...groups].flatMap(([name, items]): ListItem[] => [
    {
      kind: 'group',
      name,
      syncs: items.length,
      failing: items.filter(({ condition }) => condition === 'error').length,
      late: items.filter(({ condition }) => condition === 'late').length,
    },
    ...items,
  ])
}

function groupOf({ sync, condition }: SyncItem, group: Grouping): string {
  if (group === 'status') return condition
  return group === 'connection' ? (sync.connection?.name ?? '') : sync[group]
}

/** By status, a backfill stays right below its delta, at the place of the more urgent of the two. */
function sortItems(items: readonly SyncItem[], { sort, isDescending }: SyncListView): SyncItem[] {
  const sign = isDescending ? -1 : 1
  if (sort !== 'status') {
    const values = new Map(items.map((item) => [item, sortValue(item, sort)]))
    return items.toSorted((a, b) => compareValues(values.get(a) ?? null, values.get(b) ?? null, sign))
  }
  const nameOf = ({ tenant, worker }: SyncDocument, sync: string): string => JSON.stringify([tenant, worker, sync])
  const backfills = new Map(
    items.filter(({ sync }) => sync.pair?.role === 'backfill').map((item) => [nameOf(item.sync, item.sync.sync), item]),
  )
  const pairs = items.map((item) => ({
    item,
    backfill: item.sync.pair?.role === 'delta' ? backfills.get(nameOf(item.sync, item.sync.pair.with)) : undefined,
  }))
  const below = new Set(pairs.flatMap(({ backfill }) => (backfill === undefined ? [] : [backfill])))
  return pairs
    .filter(({ item }) => !below.has(item))
    .map(({ item, backfill }) => ({
      rank: Math.min(rank(item), backfill === undefined ? Infinity : rank(backfill)),
      items: backfill === undefined ? [item] : [item, { ...backfill, isBelowDelta: true }],
    }))
    .toSorted((a, b) => sign * (a.rank - b.rank))
    .flatMap(({ items: pair }) => pair)
}

function rank({ condition }: SyncItem): number {
  return CONDITIONS.indexOf(condition)
}

type SortValue = string | number | null

function sortValue({ sync, rows }: SyncItem, column: Exclude<SortColumn, 'status'>): SortValue {
  switch (column) {
    case 'sync':
      return sync.sync
    case 'coverage':
      return sync.coverage.progress ?? sync.coverage.parts.reduce((sum, part) => sum + coveredShare(part), 0)
    case 'lag':
      // The longest lag has the earliest time.
      return sync.completeSince === null || sync.pair?.role === 'backfill' ? null : -Date.parse(sync.completeSince)
    case 'rows':
      return rows
    case 'last':
      return sync.lastCycle === null ? null : Date.parse(sync.lastCycle.endedAt ?? sync.lastCycle.startedAt)
    case 'error':
      return sync.failures > 0 ? (sync.lastError?.code ?? null) : null
    case 'next':
      return sync.next?.at == null ? null : Date.parse(sync.next.at)
    default:
      return column satisfies never
  }
}

function coveredShare({ state, share }: SyncDocument['coverage']['parts'][number]): number {
  return state === 'proven' ? share : 0
}

const COLLATOR = new Intl.Collator('en', { numeric: true })

/** Syncs without a value come last in both directions. */
function compareValues(a: SortValue, b: SortValue, sign: number): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1
  return sign * (typeof a === 'string' && typeof b === 'string' ? COLLATOR.compare(a, b) : Number(a) - Number(b))
}
