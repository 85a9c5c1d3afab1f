import { describe, expect, test } from 'vitest'
import { findCursorFault, findCursorStateFault, mergeCursor } from '../../../src/strategies/failover/cursors.ts'
import type { CursorMap, CursorState } from '../../../src/strategies/index.ts'
import { block, stateAt, time, tokenOf } from './provider-fixture.ts'

describe('cursors', () => {
  test('E1 there are six kinds, each with a value of its own type, and a page token says whose it is', () => {
    for (const cursor of [
      block(7),
      time(7),
      { type: 'slot', value: 7 },
      { type: 'txHash', value: '0x1' },
      { type: 'signature', value: 's' },
      tokenOf('north', 'x'),
      tokenOf('north', ''),
    ]) {
      expect(findCursorFault(cursor), JSON.stringify(cursor)).toBeNull()
    }
    for (const cursor of [
      null,
      7,
      {},
      { type: 'page', value: 1 },
      { type: 'toString', value: 1 },
      { type: 'blockNumber', value: '7' },
      { type: 'blockNumber', value: -1 },
      { type: 'slot', value: 1.5 },
      { type: 'timestamp', value: Number.NaN },
      { type: 'txHash', value: 7 },
      { type: 'signature', value: '' },
      { type: 'pageToken', value: 'x' },
      { type: 'pageToken', value: 'x', providerName: '' },
      { type: 'pageToken', value: 7, providerName: 'north' },
    ])
      expect(findCursorFault(cursor), JSON.stringify(cursor)).not.toBeNull()
  })

  test('E2 a state is a primary cursor, alternatives, the last transaction, a total and metadata', () => {
    expect(findCursorStateFault(stateAt(block(7), { alternatives: [time(7)] }))).toBeNull()
    const { metadata: _, ...bare } = stateAt(block(7))
    expect(findCursorStateFault(bare)).toBeNull()
    const wrong: Array<[string, unknown]> = [
      ['primary', { type: 'blockNumber', value: null }],
      ['alternatives', {}],
      ['alternatives', [block(1), { type: 'slot' }]],
      ['lastTransactionId', null],
      ['totalFetched', -1],
      ['metadata', []],
      ['metadata', { updatedAt: 1 }],
      ['metadata', { providerName: 'north' }],
      ['metadata', { providerName: 'north', updatedAt: 1, isComplete: 'yes' }],
      ['metadata', { providerName: 'north', updatedAt: 1, reached: { txHash: 1 } }],
      [
        'metadata',
        { providerName: 'north', updatedAt: 1, replay: { until: tokenOf('a', 'b'), seek: null, widened: 0 } },
      ],
    ]
    for (const [member, value] of wrong)
      expect(
        findCursorStateFault({ ...stateAt(block(7)), [member]: value }),
        `${member}: ${JSON.stringify(value)}`,
      ).not.toBeNull()
  })

  test('E3 what others put into the metadata is kept', () => {
    const state = stateAt(block(7), {
      metadata: { providerName: 'north', updatedAt: 1, offset: 50, note: { deep: [1] } },
    })
    expect(findCursorStateFault(state)).toBeNull()
    expect(mergeCursor({}, 'token', state).token).toEqual(state)
  })

  test('E9 E11 an update of one operation leaves the others byte for byte as they were', () => {
    const map: CursorMap = { normal: stateAt(block(5)), token: stateAt(block(6)) }
    const before = JSON.stringify(map.normal)
    const merged = mergeCursor(map, 'token', stateAt(block(9)))
    expect(merged.normal).toBe(map.normal)
    expect(JSON.stringify(merged.normal)).toBe(before)
    expect(merged.token!.primary).toEqual(block(9))
    expect(map.token!.primary).toEqual(block(6))
    expect(Object.keys(mergeCursor(map, 'ledger', stateAt(time(1))))).toEqual(['normal', 'token', 'ledger'])
  })

  test('E12 what is no cursor is refused before it is written, and nothing of it is quoted', () => {
    const map: CursorMap = { token: stateAt(block(5)) }
    const broken = {
      ...stateAt(block(5)),
      primary: { type: 'pageToken', value: 'secret-token' },
    } as unknown as CursorState
    expect(() => mergeCursor(map, 'token', broken)).toThrow(
      expect.objectContaining({ code: 'STATE_INVALID', message: expect.not.stringContaining('secret') as string }),
    )
    expect(map.token!.primary).toEqual(block(5))
  })

  test('T11 a position that goes back is refused, unless it says that it reads again', () => {
    const reached = { reached: { blockNumber: 100 }, providerName: 'north', updatedAt: 1 }
    const map: CursorMap = { token: stateAt(block(100), { metadata: reached }) }
    expect(() => mergeCursor(map, 'token', stateAt(block(0), { metadata: reached }))).toThrow(
      /is before the cursor that was reached/,
    )
    expect(() => mergeCursor(map, 'token', stateAt(block(0)))).toThrow(/is behind the/)
    expect(() =>
      mergeCursor(map, 'token', stateAt(block(0), { metadata: { ...reached, reached: { blockNumber: 99 } } })),
    ).toThrow(/is behind the/)
    const again = stateAt(block(98), {
      metadata: {
        ...reached,
        replay: {
          until: { type: 'blockNumber', value: 100 },
          from: { type: 'blockNumber', value: 100 },
          seek: null,
          widened: 0,
        },
      },
    })
    expect(mergeCursor(map, 'token', again).token).toBe(again)
  })
})
