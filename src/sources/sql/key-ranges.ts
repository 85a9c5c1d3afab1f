import type { JsonValue } from '../../contract/index.ts'
import type { PartitionList } from '../../strategies/partitioned.ts'
import { required } from '../../values/required.ts'
import type { SqlDatabase } from './database.ts'
import { readOrderValues, type TablePlan } from './table-plan.ts'

/** The rows between two keys. The first range is open below and the last one above, so that every row is in one. */
export type KeyRange = {
  /** Exclusive; null for no bound. */
  readonly above: string[] | null
  /** Inclusive; null for no bound. */
  readonly upTo: string[] | null
}

export const WHOLE_TABLE: KeyRange = { above: null, upTo: null }

/** Where the next range begins, and how many rows it has. */
type RangeCursor = { readonly index: number; readonly rows: number; readonly above: string[] }

/**
 * One range per call: the database finds its last key by skipping over its rows in the index of the key, so that all calls
 * together read the index once.
 */
export async function listKeyRanges(
  database: SqlDatabase,
  plan: TablePlan,
  partitions: number,
  cursor: JsonValue | undefined,
): Promise<PartitionList<KeyRange>> {
  const from = cursor === undefined ? undefined : (cursor as RangeCursor)
  const index = from?.index ?? 0
  const above = from?.above ?? null
  const rows = from?.rows ?? Math.max(1, Math.ceil((await database.readRowCount(plan.table)) / partitions))
  const upTo = index + 1 < partitions ? await readBoundary(database, plan, above, rows) : null
  // Keys of equal length keep the ranges in order.
  const key = `range-${String(index + 1).padStart(String(partitions).length, '0')}`
  return {
    partitions: [{ key, value: { above, upTo } }],
    ...(upTo !== null && { next: { index: index + 1, rows, above: upTo } satisfies RangeCursor }),
  }
}

/** The key of the row that many rows on; null if the table ends before it. */
async function readBoundary(
  database: SqlDatabase,
  { table, key }: TablePlan,
  above: string[] | null,
  rows: number,
): Promise<string[] | null> {
  const names = key.map(({ name }) => name)
  const selection = {
    table,
    columns: names,
    lower: above === null ? null : { columns: key, values: above, bound: '>' as const },
    upper: null,
    order: key,
    limit: 1,
    offset: rows - 1,
  }
  for await (const found of database.readRows(selection, names)) {
    const row = found.length === 0 ? undefined : required(found[0], 'row of the boundary')
    if (row !== undefined) return readOrderValues(row.record, key, table)
  }
  return null
}
