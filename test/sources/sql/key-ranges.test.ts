import { expect, test } from 'vitest'
import type { JsonValue } from '../../../src/contract/index.ts'
import type { SqlDatabase } from '../../../src/sources/sql/database.ts'
import { listKeyRanges, type KeyRange } from '../../../src/sources/sql/key-ranges.ts'
import type { TablePlan } from '../../../src/sources/sql/table-plan.ts'

const COLUMN = { name: 'id', type: 'integer' }
const PLAN = { table: { name: 'orders' }, key: [COLUMN] } as unknown as TablePlan

/** A table with the keys 1 to `count()`, when its rows are read. */
function tableOf(count: () => number): SqlDatabase {
  return {
    readRowCount: async () => count(),
    async *readRows({
      lower,
      offset,
      limit,
    }: {
      lower: { values: string[]; bound: string } | null
      offset: number
      limit: number
    }) {
      const from = lower === null ? 1 : Number(lower.values[0]) + (lower.bound === '>' ? 1 : 0)
      const ids = Array.from({ length: Math.max(0, count() - from + 1) }, (_, n) => from + n)
      yield ids.slice(offset, offset + limit).map((id) => ({ record: { id } }))
    },
  } as unknown as SqlDatabase
}

async function list(database: SqlDatabase, partitions: number): Promise<KeyRange[]> {
  const ranges: KeyRange[] = []
  for (let cursor: JsonValue | undefined; ;) {
    const page = await listKeyRanges(database, PLAN, partitions, cursor)
    ranges.push(...page.partitions.map(({ value }) => value))
    if (page.next === undefined) return ranges
    cursor = page.next
  }
}

test('every range but the last ends with the row that is its share on', async () => {
  expect(
    await list(
      tableOf(() => 10),
      3,
    ),
  ).toEqual([
    { above: null, upTo: ['4'] },
    { above: ['4'], upTo: ['8'] },
    { above: ['8'], upTo: null },
  ])
})

test('a table that grows while it is divided has as many ranges, and the last one is open', async () => {
  let count = 2
  expect(
    await list(
      tableOf(() => (count += 4)),
      2,
    ),
  ).toEqual([
    { above: null, upTo: ['3'] },
    { above: ['3'], upTo: null },
  ])
})
