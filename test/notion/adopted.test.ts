import { describe, expect, test } from 'vitest'
import type { NotionWorker } from '../../src/worker/notion/manifest.ts'
import { NotionWorkerAdapter } from '../../src/worker/notion/worker-adapter.ts'
import type { Page } from '../../src/contract/index.ts'
import { contextOf } from '../sources/kit/loopback.ts'

/** The page that results from this return value of `run`. */
async function pageOf(
  result: { changes?: unknown[]; nextUserContext?: unknown },
  properties: Record<string, { type: string }> = {},
): Promise<Page> {
  const notion: NotionWorker = {
    manifest: {
      sdkVersion: '0.9.2',
      pacers: [],
      databases: [{ key: 'rows', config: { schema: { properties } } }],
      capabilities: [{ _tag: 'sync', key: 'all', config: { databaseKey: 'rows' } }],
    },
    run: async () => ({ changes: [], hasMore: false, ...result }),
  }
  return new NotionWorkerAdapter(notion).plan('all').execute(undefined, contextOf())
}

async function columnOf(type: string, value: unknown): Promise<unknown> {
  const {
    changes: [change],
  } = await pageOf(
    { changes: [{ type: 'upsert', key: 'k', targetDatabaseKey: 'rows', properties: { P: value } }] },
    { P: { type } },
  )
  return (change as { record: Record<string, unknown> }).record['P']
}

describe('a property', () => {
  const link = ['shown', [['a', 'https://example.com']]]
  test.each([
    ['title', [['two '], ['tokens', [['b']]]], 'two tokens'],
    ['text', [link], '[shown](https://example.com)'],
    ['text', [['https://example.com', [['a', 'https://example.com']]]], 'https://example.com'],
    ['url', [link], 'https://example.com'],
    ['select', [[' padded ']], 'padded'],
    ['number', [['-1.5e3']], -1500],
    ['number', [['']], null],
    ['number', [['12%']], [['12%']]],
    ['number', 7, 7],
    ['checkbox', [['Yes']], true],
    ['checkbox', [[]], [[]]],
    ['multi_select', [['a, b,,c']], ['a', 'b', 'c']],
    ['date', [['2026-01-31']], '2026-01-31'],
    [
      'date',
      [
        [
          '‣',
          [
            [
              'd',
              {
                type: 'datetimerange',
                start_date: '2026-01-31',
                start_time: '09:30',
                end_date: '2026-02-01',
                end_time: '10:00',
              },
            ],
          ],
        ],
      ],
      '2026-01-31T09:30/2026-02-01T10:00',
    ],
    ['people', [{ email: 'a@b.c' }, 'nobody'], ['a@b.c', 'nobody']],
    [
      'file',
      [['a', [['a', 'u1']]], [','], ['u2']],
      [
        { name: 'a', url: 'u1' },
        { name: 'u2', url: 'u2' },
      ],
    ],
    ['place', { lat: 1, lon: 2 }, { lat: 1, lon: 2 }],
    ['of another release', [['some text']], 'some text'],
    ['of another release', { a: 1 }, { a: 1 }],
    ['toString', [['no kind']], 'no kind'],
  ])('of kind %s: %j lands as %j', async (type, value, column) => {
    expect(await columnOf(type, value)).toEqual(column)
  })
})

describe('a page', () => {
  test.each([
    ['2026-03-19T12:00:00Z', '2026-03-19T12:00:00Z'],
    ['2026-03-19T12:00:00.123456+02:00', '2026-03-19T12:00:00.123456+02:00'],
    ['2026-03-19', '2026-03-19T00:00:00Z'],
    ['2026-03-19T12:00', '2026-03-19T12:00:00Z'],
    ['2026-03-19T12:00:30.5', '2026-03-19T12:00:30.5Z'],
    ['2026-03-19T12:00+02:00', '2026-03-19T12:00:00+02:00'],
    ['19 March', '19 March'],
  ])('upstreamUpdatedAt %s is the instant %s', async (given, instant) => {
    const { changes } = await pageOf({
      changes: [{ type: 'delete', key: 'k', targetDatabaseKey: 'rows', upstreamUpdatedAt: given }],
    })
    expect(changes).toEqual([{ type: 'delete', key: 'k', database: 'rows', upstreamUpdatedAt: instant }])
  })

  test('N19 serializes its state as JSON: no undefined fields, a Date as text, the rest unchanged', async () => {
    const day = new Date('2026-01-31T00:00:00Z')
    const map = new Map()
    const { nextState } = await pageOf({
      nextUserContext: { phase: 'delta', after: undefined, day, list: [{ gone: undefined }, null], map },
    })
    expect(nextState).toStrictEqual({ phase: 'delta', day: '2026-01-31T00:00:00.000Z', list: [{}, null], map })
    expect((await pageOf({ nextUserContext: 'cursor' })).nextState).toBe('cursor')
    expect((await pageOf({})).nextState).toBe(undefined)
  })
})
