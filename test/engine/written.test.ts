import { describe, expect, test } from 'vitest'
import type { Change, Column, JsonObject } from '../../src/contract/index.ts'
import { PagePreparer } from '../../src/engine/page-preparer.ts'
import { DEFAULT_LIMITS, type SyncLimits } from '../../src/engine/sync-plan.ts'
import { SerializedUpsert } from '../../src/values/serialized-upsert.ts'

const COLUMNS: readonly Column[] = [
  { name: 'id', kinds: ['string'] },
  { name: 'n', kinds: ['integer'] },
  { name: 'gone', kinds: [] },
]

function written(key: string, n: number, columns = COLUMNS, database?: string): Change {
  return Object.assign(
    new SerializedUpsert(key, {
      text: JSON.stringify({ id: key, n, gone: null }),
      shape: { columns, parse: (text) => JSON.parse(text) as JsonObject },
    }),
    database === undefined ? {} : { database },
  )
}

function plain(change: Change): Change {
  return { ...change }
}

function preparer(limits: Partial<SyncLimits> = {}, validate?: (record: JsonObject) => string | null): PagePreparer {
  return new PagePreparer('s', [{ name: 'a', ...(validate !== undefined && { validate }) }, { name: 'b' }] as never, {
    ...DEFAULT_LIMITS,
    ...limits,
  })
}

describe('records that arrive serialized', () => {
  test('are prepared like ordinary records, in every database they go to', async () => {
    const changes = [
      written('1', 1),
      written('2', 2),
      written('1', 3, COLUMNS, 'b'),
      written('', 4),
      written('3', 5, [
        { name: 'id', kinds: ['string'] },
        { name: 'n', kinds: ['number'] },
        { name: 'gone', kinds: [] },
      ]),
    ]
    const prepared = await preparer().prepare(changes)
    // The last one declares another kind of number than its record has: the declared list counts.
    expect(prepared.columns).toEqual({
      a: [
        { name: 'id', kinds: ['string'] },
        { name: 'n', kinds: ['integer', 'number'] },
        { name: 'gone', kinds: [] },
      ],
      b: COLUMNS,
    })
    expect(changes.slice(0, 3).every((change) => SerializedUpsert.getSerialized(change) !== null)).toBe(true)
    expect({ ...prepared, columns: {} }).toEqual({ ...(await preparer().prepare(changes.map(plain))), columns: {} })
    expect(prepared.quarantined).toMatchObject([{ code: 'KEY_INVALID' }])
  })

  test('a page reports the kinds that are not committed yet', async () => {
    const pages = preparer()
    const first = await pages.prepare([written('1', 1)])
    expect((await pages.prepare([written('2', 1)])).columns).toEqual(first.columns)
    pages.recordLanded(first)
    expect((await pages.prepare([written('2', 1)])).columns).toEqual({})
  })

  test.each<[string, Partial<SyncLimits>, ((record: JsonObject) => string | null)?]>([
    ['RECORD_TOO_WIDE', { recordMembersMax: 2 }],
    ['RECORD_TOO_LARGE', { recordBytesMax: 10 }],
    ['SCHEMA_MISMATCH', {}, ({ n }) => (n === 1 ? 'n is 1' : null)],
  ])('%s is found in them too', async (code, limits, validate) => {
    const prepared = await preparer(limits, validate).prepare([written('1', 1)])
    expect(prepared.quarantined).toMatchObject([{ code, key: '1' }])
    expect(prepared).toEqual(await preparer(limits, validate).prepare([plain(written('1', 1))]))
  })
})
