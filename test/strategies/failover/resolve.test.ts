import { describe, expect, test } from 'vitest'
import { findResumption } from '../../../src/strategies/failover/resumption.ts'
import type { CursorState, CursorType, PaginationCursor } from '../../../src/strategies/index.ts'
import { block, HOUR_MS, createScriptedProvider, stateAt, time, tokenOf } from './provider-fixture.ts'

const provider = (name: string, supports: CursorType[], prefers = supports[0]!) =>
  createScriptedProvider(name, [], { supports, prefers, replay: { blocks: 2, ms: HOUR_MS } })
const resume = (
  name: string,
  supports: CursorType[],
  state: CursorState | undefined,
): PaginationCursor | null | undefined => {
  const found = findResumption(provider(name, supports), state)
  return found === null ? null : found.cursor
}

describe('where a provider goes on', () => {
  test('E4 E8 the provider that wrote the cursor resumes it exactly; another one is identified by the name in the metadata', () => {
    const state = stateAt(block(100), { alternatives: [block(100)] })
    expect(findResumption(provider('north', ['blockNumber']), state)).toEqual({
      cursor: block(100),
      isSameProvider: true,
      replay: undefined,
    })
    expect(findResumption(provider('south', ['blockNumber']), state)).toMatchObject({
      cursor: block(98),
      isSameProvider: false,
    })
  })

  test('E24 a provider that understands nothing of what is kept is left out', () => {
    expect(resume('south', ['timestamp'], stateAt(block(100)))).toBeNull()
    expect(
      resume(
        'south',
        ['signature'],
        stateAt(block(100), { alternatives: [time(5), { type: 'txHash', value: '0x1' }] }),
      ),
    ).toBeNull()
    expect(resume('south', ['timestamp'], undefined)).toBeUndefined()
  })

  test('E31 a page token is for the provider that gave it', () => {
    const state = stateAt(tokenOf('north', 'n/3'))
    expect(resume('north', ['pageToken', 'blockNumber'], state)).toEqual(tokenOf('north', 'n/3'))
    expect(resume('south', ['pageToken', 'blockNumber'], state)).toBeNull()
  })

  test('E32 a block or a time is for every provider that declares it', () => {
    const state = stateAt(tokenOf('north', 'n/3'), { alternatives: [block(100), time(50 * HOUR_MS)] })
    expect(resume('south', ['blockNumber'], state)).toEqual(block(98))
    expect(resume('east', ['timestamp'], state)).toEqual(time(49 * HOUR_MS))
  })

  test('E34 EX4 the window is applied across providers only, to blocks and times only, and not below zero', () => {
    const state = stateAt(block(1), { alternatives: [time(5)] })
    expect(resume('north', ['blockNumber'], state)).toEqual(block(1))
    expect(resume('south', ['blockNumber'], state)).toEqual(block(0))
    expect(resume('south', ['timestamp'], state)).toEqual(time(0))
  })

  test('E38 its own page token comes first, then a block, then a time; of each the primary first', () => {
    const all = ['pageToken', 'blockNumber', 'timestamp', 'txHash'] satisfies CursorType[]
    expect(resume('north', all, stateAt(block(9), { alternatives: [tokenOf('north', 'x'), block(8)] }))).toEqual(
      tokenOf('north', 'x'),
    )
    expect(resume('north', all, stateAt(time(9), { alternatives: [time(8), block(8), block(7)] }))).toEqual(block(8))
    expect(resume('north', all, stateAt(block(9), { alternatives: [block(8)] }))).toEqual(block(9))
    expect(
      resume('north', all, stateAt({ type: 'txHash', value: '0x1' }, { alternatives: [time(8), time(7)] })),
    ).toEqual(time(8))
    expect(
      resume('north', ['txHash', 'timestamp'], stateAt({ type: 'txHash', value: '0x1' }, { alternatives: [time(8)] })),
    ).toEqual(time(8))
  })

  test('E39 F3 ED1 a foreign token is passed over, and the block beside it used, also by a provider that has tokens of its own', () => {
    const state = stateAt(tokenOf('infura', 'i/7'), { provider: 'infura', alternatives: [block(100)] })
    expect(resume('alchemy', ['pageToken', 'blockNumber'], state)).toEqual(block(98))
    expect(resume('alchemy', ['pageToken'], state)).toBeNull()
  })

  test('E40 other kinds go through as they are', () => {
    for (const cursor of [
      { type: 'slot', value: 100 },
      { type: 'signature', value: 's' },
      { type: 'txHash', value: '0x1' },
    ] satisfies PaginationCursor[]) {
      expect(findResumption(provider('south', [cursor.type]), stateAt(cursor))).toEqual({
        cursor,
        isSameProvider: false,
        replay: undefined,
      })
    }
  })

  test('E48 a position of a stream that never had anything is a beginning for every provider', () => {
    const synthetic: CursorState = {
      primary: block(0),
      lastTransactionId: '',
      totalFetched: 0,
      metadata: { providerName: 'north', updatedAt: 1, isComplete: true },
    }
    expect(resume('south', ['timestamp'], synthetic)).toBeUndefined()
    expect(resume('south', ['pageToken'], synthetic)).toBeUndefined()
    expect(resume('south', ['timestamp'], stateAt(block(0)))).toBeNull()
  })

  test('E51 a last transaction that was read ahead of the position, or long before it, is not looked for', () => {
    const at = (lastAt: number): unknown =>
      findResumption(
        provider('south', ['blockNumber']),
        stateAt(tokenOf('north', 'n'), {
          alternatives: [block(100)],
          metadata: { providerName: 'north', updatedAt: 1, lastAt: { blockNumber: lastAt } },
        }),
      )!.replay!.seek
    expect([at(90), at(98), at(100), at(101)]).toEqual([null, 't9', 't9', null])
  })

  test('E51 only what lies inside the window is looked for again', () => {
    const near = stateAt(block(100), { alternatives: [block(99)] })
    const far = stateAt(block(100), { alternatives: [block(90)] })
    expect(findResumption(provider('south', ['blockNumber']), near)!.replay).toEqual({
      until: block(100),
      from: block(100),
      seek: 't9',
      widened: 0,
    })
    expect(findResumption(provider('south', ['blockNumber']), far)!.replay).toEqual({
      until: block(100),
      from: block(100),
      seek: null,
      widened: 0,
    })
  })
})
