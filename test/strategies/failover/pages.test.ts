import { describe, expect, test } from 'vitest'
import { SyncError } from '../../../src/contract/index.ts'
import type { ProviderBatch, CursorState, Provider, FailoverResult } from '../../../src/strategies/index.ts'
import {
  block,
  contextOf,
  createUnavailableError,
  HOUR_MS,
  createListProvider,
  OPERATION,
  createScriptedProvider,
  stateAt,
  time,
  tokenOf,
  tx,
  txs,
  type Tx,
} from './provider-fixture.ts'

/** All that a provider's stream yields from a state of its own on. */
async function read(
  provider: Provider<Tx>,
  from?: CursorState,
  isOwn = true,
): Promise<Array<FailoverResult<ProviderBatch<Tx>>>> {
  const results: Array<FailoverResult<ProviderBatch<Tx>>> = []
  for await (const result of provider.stream(
    { operationName: 'token', operation: OPERATION, cursor: from?.primary, cursorState: from, isSameProvider: isOwn },
    contextOf(),
  )) {
    results.push(result)
    if (results.length > 50) throw new Error('it does not end')
  }
  return results
}

const batches = (results: Array<FailoverResult<ProviderBatch<Tx>>>): Array<ProviderBatch<Tx>> =>
  results.flatMap((result) => (result.ok ? [result.value] : []))
const errors = (results: Array<FailoverResult<ProviderBatch<Tx>>>): SyncError[] =>
  results.flatMap((result) => (result.ok ? [] : [result.error]))
const ids = (results: Array<FailoverResult<ProviderBatch<Tx>>>): string[] =>
  batches(results).flatMap(({ items }) => items.map(({ id }) => id))

describe('the pages of a provider', () => {
  test('E13 E36 a failure is yielded, not thrown, whatever was thrown', async () => {
    expect(await read(createScriptedProvider('north', [createUnavailableError()]))).toEqual([
      { ok: false, error: expect.objectContaining({ code: 'SOURCE_UNAVAILABLE' }) },
    ])
    const odd = await read(
      createScriptedProvider('north', [
        async () => {
          throw 'a text'
        },
      ]),
    )
    expect(errors(odd)[0]).toMatchObject({ code: 'CONNECTOR_FAILED', message: expect.stringContaining('a text') })
    const foreign = await read(
      createScriptedProvider('north', [Object.assign(new Error('slow'), { code: 'RATE_LIMITED', retryAfterMs: 7 })]),
    )
    expect(errors(foreign)[0]).toMatchObject({ code: 'RATE_LIMITED', retryAfterMs: 7 })
    expect(errors(await read(createScriptedProvider('north', [{ items: null } as never])))[0]).toMatchObject({
      code: 'SOURCE_INVALID',
    })
  })

  test('E14 E45 EX6 a batch has its operation, its items, its cursor, whether it is the last, and its figures', async () => {
    const [batch] = batches(await read(createScriptedProvider('north', [{ items: txs(1, 2), end: true }])))
    expect(batch).toMatchObject({
      operationType: 'token',
      items: txs(1, 2),
      isComplete: true,
      stats: { fetched: 2, deduplicated: 0, yielded: 2 },
    })
    expect(batch!.cursor).toMatchObject({
      primary: block(2),
      lastTransactionId: 't2',
      totalFetched: 2,
      metadata: { providerName: 'north', isComplete: true },
    })
  })

  test('E15 a batch is the last exactly when its cursor says so', async () => {
    for (const batch of batches(await read(createListProvider('north', () => txs(1, 8)))))
      expect(batch.isComplete).toBe(batch.cursor.metadata?.isComplete ?? false)
  })

  test('E16 each batch can be landed alone: its cursor leads to exactly what follows', async () => {
    const all = batches(await read(createListProvider('north', () => txs(1, 8))))
    expect(all.map(({ items }) => items.length)).toEqual([3, 3, 2])
    for (const [at, { cursor }] of all.entries()) {
      const rest = ids(
        await read(
          createListProvider('north', () => txs(1, 8)),
          cursor,
        ),
      )
      const expected = all.slice(at + 1).flatMap(({ items }) => items.map(({ id }) => id))
      expect(rest.filter((id) => expected.includes(id))).toEqual(expected)
    }
  })

  test('E5 the alternatives are every form of the cursor of the last transaction', async () => {
    const [batch] = batches(await read(createScriptedProvider('north', [{ items: txs(1, 2), end: true }])))
    expect(batch!.cursor.alternatives).toEqual([block(2), time(2 * HOUR_MS), { type: 'txHash', value: 't2' }])
  })

  test('E7 F19 the total goes on over a resumption, and counts items', async () => {
    const [batch] = batches(
      await read(createScriptedProvider('north', [{ items: txs(10, 12), end: true }]), stateAt(block(9))),
    )
    expect(batch!.cursor.totalFetched).toBe(13)
  })

  test('E23 E25 E47 the stream owns the loop and holds one page at a time', async () => {
    const provider = createListProvider('north', () => txs(1, 8))
    const stream = provider.stream(
      {
        operationName: 'token',
        operation: OPERATION,
        cursor: undefined,
        cursorState: undefined,
        isSameProvider: false,
      },
      contextOf(),
    )
    await stream.next()
    expect(provider.asked).toHaveLength(1)
    await stream.next()
    expect(provider.asked).toHaveLength(2)
    await stream.return()
  })

  test('E6 E26 of the last five hundred items none is yielded twice, and the last one before the resumption is known', async () => {
    const repeated = [...txs(1, 3), ...txs(3, 3)]
    expect(ids(await read(createScriptedProvider('north', [{ items: repeated, end: true }])))).toEqual([
      't1',
      't2',
      't3',
    ])
    expect(
      ids(await read(createScriptedProvider('north', [{ items: txs(8, 10), end: true }]), stateAt(block(9)))),
    ).toEqual(['t8', 't10'])
    const far = Array.from({ length: 501 }, (_, at) => tx(1, `x${at}`))
    const answers = [
      { items: far, through: { type: 'blockNumber', value: 2 } },
      { items: [tx(2, 'x0'), tx(2, 'x1')], end: true },
    ] as const
    expect(ids(await read(createScriptedProvider('north', answers))).slice(501)).toEqual(['x0'])
  })

  test('E19 E27 E37 the end is reported also when the last page has nothing new, or nothing', async () => {
    const known = await read(createScriptedProvider('north', [{ items: [tx(9)], end: true }]), stateAt(block(9)))
    expect(batches(known)).toMatchObject([
      { items: [], isComplete: true, stats: { fetched: 1, deduplicated: 1, yielded: 0 } },
    ])
    expect(batches(await read(createScriptedProvider('north', [{ items: [], end: true }])))).toMatchObject([
      { items: [], isComplete: true },
    ])
  })

  test('E28 a token of the API becomes the primary cursor, with the name of whose it is', async () => {
    const [first] = batches(
      await read(
        createScriptedProvider(
          'north',
          [
            { items: txs(1, 2), next: 'n/2' },
            { items: [], end: true },
          ],
          { supports: ['pageToken', 'blockNumber'] },
        ),
      ),
    )
    expect(first!.cursor.primary).toEqual(tokenOf('north', 'n/2'))
    expect(first!.cursor.alternatives).toContainEqual(block(2))
  })

  test('E29 else the kind it prefers, else a block, and zero only where there was never anything', async () => {
    const last = async (options: object): Promise<unknown> =>
      batches(await read(createScriptedProvider('north', [{ items: txs(1, 2), end: true }], options))).at(-1)!.cursor
        .primary
    expect(await last({ supports: ['blockNumber', 'timestamp'], prefers: 'timestamp' })).toEqual(time(2 * HOUR_MS))
    expect(await last({ supports: ['signature', 'blockNumber'], prefers: 'signature' })).toEqual(block(2))
    expect(await last({ supports: ['txHash'], prefers: 'txHash' })).toEqual({ type: 'txHash', value: 't2' })
    expect(batches(await read(createScriptedProvider('north', [{ items: [], end: true }])))[0]!.cursor).toMatchObject({
      primary: block(0),
      totalFetched: 0,
      lastTransactionId: '',
    })
  })

  test("E30 what is the provider's own is kept apart, and given back to it alone", async () => {
    const provider = createScriptedProvider('north', [
      { items: txs(1, 1), custom: { page: 2 } },
      { items: txs(2, 2), end: true },
    ])
    const [first] = batches(await read(provider))
    expect(first!.cursor.metadata!.custom).toEqual({ page: 2 })
    expect(provider.asked.map(({ own }) => own?.metadata?.custom)).toEqual([undefined, { page: 2 }])
    const other = createScriptedProvider('south', [{ items: txs(2, 2), end: true }])
    const [taken] = batches(await read(other, first!.cursor, false))
    expect(other.asked[0]!.own).toBeUndefined()
    expect(taken!.cursor.metadata!.custom).toBeUndefined()
  })

  test('ED2 a page that says neither that it is the last nor a way on is a failure, not a loop', async () => {
    for (const page of [
      { items: [] },
      { items: [], next: null },
      { items: [], through: { type: 'blockNumber', value: 0 } },
    ] as const) {
      const provider = createScriptedProvider('north', [page, page, page])
      expect(
        errors(await read(provider)).map(({ code }) => code),
        JSON.stringify(page),
      ).toEqual(['CURSOR_STALLED'])
      expect(provider.asked).toHaveLength(1)
    }
    const again = createScriptedProvider('north', [{ items: txs(1, 2) }, { items: txs(2, 2) }, { items: txs(2, 2) }])
    expect(errors(await read(again)).map(({ code }) => code)).toEqual(['CURSOR_STALLED'])
    expect(again.asked).toHaveLength(2)
    const token = createScriptedProvider(
      'north',
      [
        { items: txs(1, 1), next: 'n' },
        { items: txs(2, 2), next: 'n' },
      ],
      { supports: ['pageToken'], prefers: 'pageToken' },
    )
    expect(errors(await read(token)).map(({ code }) => code)).toEqual(['CURSOR_STALLED'])
  })

  test('ED2 F9 without a token it is the last page only where that was declared', async () => {
    const ends = await read(createScriptedProvider('north', [{ items: txs(1, 2) }], { endsWithoutToken: true }))
    expect(batches(ends)).toMatchObject([{ isComplete: true }])
    expect(errors(ends)).toEqual([])
    expect(
      batches(await read(createScriptedProvider('north', [{ items: txs(1, 2) }, { items: txs(2, 2), end: true }])))[0]!
        .isComplete,
    ).toBe(false)
  })

  test('ED2 a circle of tokens that brings nothing comes to an end', async () => {
    let turn = 0
    const circle = createScriptedProvider(
      'north',
      Array.from({ length: 300 }, () => ({ items: txs(1, 2), next: `n${turn++ % 2}` })),
      { supports: ['pageToken'], prefers: 'pageToken' },
    )
    const results: Array<FailoverResult<ProviderBatch<Tx>>> = []
    for await (const result of circle.stream(
      {
        operationName: 'token',
        operation: OPERATION,
        cursor: undefined,
        cursorState: undefined,
        isSameProvider: false,
      },
      contextOf(),
    ))
      results.push(result)
    expect(errors(results).map(({ code }) => code)).toEqual(['CURSOR_CYCLE'])
  })

  test('ED3 an empty end on a resumption leaves a good position as it is', async () => {
    for (const isOwn of [true, false]) {
      const before = stateAt(block(9), {
        alternatives: [block(9), time(9)],
        metadata: { providerName: 'north', updatedAt: 1, reached: { blockNumber: 9 } },
      })
      const [batch] = batches(
        await read(createScriptedProvider(isOwn ? 'north' : 'south', [{ items: [], end: true }]), before, isOwn),
      )
      expect(batch).toMatchObject({ isComplete: true, items: [] })
      expect(batch!.cursor).toMatchObject({
        primary: block(9),
        alternatives: before.alternatives,
        lastTransactionId: 't9',
        totalFetched: 10,
        metadata: { providerName: 'north', reached: { blockNumber: 9 } },
      })
    }
  })

  test('ED5 a page of nothing but duplicates is yielded for the place it leads to', async () => {
    const results = await read(
      createScriptedProvider(
        'north',
        [
          { items: [tx(9)], next: 'n/1' },
          { items: txs(10, 10), end: true },
        ],
        { supports: ['pageToken', 'blockNumber'] },
      ),
      stateAt(block(9)),
    )
    expect(batches(results).map(({ items, cursor }) => [items.length, cursor.primary.value])).toEqual([
      [0, 'n/1'],
      [1, 10],
    ])
  })

  test('EX8 of a page that breaks in the middle the good part is yielded, with a cursor that leads to it, then the failure', async () => {
    const results = await read(
      createScriptedProvider('north', [{ items: [...txs(10, 11), { id: 'bad' } as Tx, ...txs(12, 13)], next: 'n/9' }], {
        supports: ['pageToken', 'blockNumber'],
      }),
      stateAt(block(9)),
    )
    expect(ids(results)).toEqual(['t10', 't11'])
    expect(batches(results)[0]).toMatchObject({ isTruncated: true, isComplete: false, cursor: { primary: block(11) } })
    expect(errors(results)).toMatchObject([
      { code: 'SOURCE_INVALID', message: 'north: item 3 on the page has no block.' },
    ])
    const whole = await read(
      createScriptedProvider('north', [{ items: [{ id: 'bad' } as Tx], end: true }]),
      stateAt(block(9)),
    )
    expect(whole).toHaveLength(1)
    expect(errors(whole)).toHaveLength(1)
  })

  test('EX8 an item that cannot even be looked at is a failure of the page, and not of the connector', async () => {
    const results = await read(
      createScriptedProvider('north', [{ items: [...txs(10, 11), null as never], end: true }]),
      stateAt(block(9)),
    )
    expect(ids(results)).toEqual(['t10', 't11'])
    expect(errors(results)).toMatchObject([
      { code: 'SOURCE_INVALID', message: 'north: item 3 on the page cannot be read.' },
    ])
  })

  test('E5 E24 a page without items does not forget the other forms of the last one', async () => {
    const from = stateAt(block(9), { alternatives: [block(9), time(9), { type: 'txHash', value: 't9' }] })
    const [batch] = batches(
      await read(
        createScriptedProvider('north', [{ items: [], through: { type: 'timestamp', value: 50 }, end: true }]),
        from,
      ),
    )
    expect(batch!.cursor).toMatchObject({
      primary: time(50),
      alternatives: [time(50), block(9), { type: 'txHash', value: 't9' }],
    })
  })

  test('EX8 if items do not show how far a page reaches, the earlier cursor stays', async () => {
    const results = await read(
      createScriptedProvider('north', [
        { items: [...txs(20, 21), { id: 'bad' } as Tx], through: { type: 'blockNumber', value: 12 } },
      ]),
      stateAt(block(9)),
    )
    expect(batches(results)[0]!.cursor.primary).toEqual(block(9))
  })

  test('E49 items out of order do not lead another provider past what is missing before them', async () => {
    const mixed = await read(createScriptedProvider('north', [{ items: [tx(10), tx(12), tx(11)], end: true }]))
    expect(ids(mixed)).toEqual(['t10', 't12'])
    expect(errors(mixed)).toMatchObject([{ code: 'SOURCE_INVALID' }])
    const [bounded] = batches(
      await read(
        createScriptedProvider('north', [
          { items: [tx(10), tx(12)], through: { type: 'blockNumber', value: 11 } },
          { items: [], end: true },
        ]),
      ),
    )
    expect(bounded!.cursor).toMatchObject({ primary: block(11), alternatives: [block(11)] })
  })

  test('T11 a page that leads back is a failure of the provider', async () => {
    const from = stateAt(tokenOf('north', 'n/1'), {
      metadata: { providerName: 'north', updatedAt: 1, reached: { blockNumber: 50 } },
    })
    expect(
      errors(
        await read(
          createScriptedProvider('north', [{ items: txs(3, 4), end: true }], {
            supports: ['pageToken', 'blockNumber'],
          }),
          from,
        ),
      ),
    ).toMatchObject([{ code: 'SOURCE_INVALID' }])
  })

  test('XC15 an empty token is a token', async () => {
    const provider = createScriptedProvider(
      'north',
      [
        { items: txs(1, 1), next: '' },
        { items: txs(2, 2), end: true },
      ],
      { supports: ['pageToken'], prefers: 'pageToken' },
    )
    expect(ids(await read(provider))).toEqual(['t1', 't2'])
    expect(provider.asked[1]!.cursor).toEqual(tokenOf('north', ''))
  })
})
