import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Execute } from '../../src/contract/index.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import { flipFlop, keyset, type FlipFlopState, type KeysetState } from '../../src/strategies/index.ts'
import { MINUTE, EngineFixture, SECOND } from '../engine/engine-fixture.ts'
import { iso, runOn, setState, stateOn } from './run-strategy.ts'
import { keysetOf, Table, type TableRow } from './table.ts'

type State = FlipFlopState<KeysetState, KeysetState>

let scene: EngineFixture
let table: Table
let audit: Table

beforeEach(async () => {
  scene = await EngineFixture.open()
  table = new Table(scene.clock)
  audit = new Table(scene.clock)
})
afterEach(() => scene.close())

const cycle = (execute: Execute<any>, choices: Parameters<typeof runOn>[2] = {}): Promise<CycleResult> =>
  runOn(scene, execute, choices)
const state = (): Promise<State | null> => stateOn(scene)

/** Deleted here and noted there, perhaps late. */
function remove(id: string, { lateMs = 0 }: { lateMs?: number } = {}): void {
  table.remove(id)
  audit.put(id, { lateMs })
}

/** The rows of a table, and the deletions from its audit log. */
function connector(limit = 3): Execute<State> {
  return flipFlop({
    delta: keysetOf(table, { limit }),
    deletes: keyset<TableRow>({
      read: (query) => audit.read(query),
      timestamp: ({ at }) => at,
      id: ({ id }) => id,
      toChange: ({ id, at }) => ({ type: 'delete', key: id, upstreamUpdatedAt: at }),
      lagMs: 15 * SECOND,
      limit,
    }),
  })
}

describe('two streams of one sync', () => {
  test('N68 N69 N81 N82 N83 scenario 7: delta to its end, then deletes to theirs, and back, one stream a cycle', async () => {
    for (let index = 0; index < 7; index++) table.put(`r${index}`)
    expect(await cycle(connector())).toMatchObject({ stopReason: 'complete', pages: 3 })
    expect(await state()).toMatchObject({
      phase: 'deletes',
      deltaCursor: { cursorTimestamp: iso(Date.parse('2026-03-01T00:00:00Z')), cursorId: 'r6' },
    })
    expect(audit.asked).toHaveLength(0)
    for (const id of ['r1', 'r2', 'r3', 'r4']) remove(id)
    table.put('new')
    expect(await cycle(connector())).toMatchObject({ stopReason: 'complete', pages: 2, counts: { deleted: 4 } })
    expect(await scene.keys()).toEqual(['r0', 'r5', 'r6'])
    expect(await state()).toMatchObject({
      phase: 'delta',
      deltaCursor: { cursorId: 'r6' },
      deletesCursor: { cursorId: 'r4' },
    })
    await cycle(connector())
    expect(await scene.rows()).toEqual(table.truth())
    expect(await state()).toMatchObject({
      phase: 'deletes',
      deltaCursor: { cursorId: 'new' },
      deletesCursor: { cursorId: 'r4' },
    })
  })

  test('D9 N2 the first run, without any state, is one of the delta; as a control, reading the phase of no state fails', async () => {
    table.put('a')
    expect(await cycle(connector())).toMatchObject({ stopReason: 'complete', counts: { created: 1 } })
    const planted: Execute<State> = async (given) => ({
      changes: [],
      hasMore: false,
      nextState: { phase: given!.phase },
    })
    expect(await cycle(planted, { sync: 'planted' })).toMatchObject({
      stopReason: 'error',
      error: { code: 'CONNECTOR_FAILED' },
    })
  })

  test('N83 the first turn to deletes begins where that stream begins, and an empty one leaves it there', async () => {
    table.put('a')
    await cycle(connector())
    await cycle(connector())
    expect(await state()).toMatchObject({ phase: 'delta', deltaCursor: { cursorId: 'a' } })
    expect(await state()).toMatchObject({ deletesCursor: { cursorTimestamp: null, cursorId: null } })
    remove('a')
    await cycle(connector())
    await cycle(connector())
    expect(await scene.keys()).toEqual([])
  })

  test('N72 N84 scenario 7: broken off after every page, in either phase, the streams go on where each was', async () => {
    const phases = new Set<string>()
    for (let round = 0; round < 60; round++) {
      if (round < 20) for (let index = 0; index < 3; index++) table.put(`r${(round * 3 + index) % 17}`)
      if (round < 20 && round % 2 === 1) remove(Object.keys(table.truth())[round % 7]!)
      await cycle(connector(2), { pagesMax: 1, afterMs: 10 * SECOND })
      const { inflight } = await scene.checkpoint()
      if (inflight?.state) phases.add((JSON.parse(inflight.state) as State).phase)
    }
    expect(await scene.rows()).toEqual(table.truth())
    expect(phases).toEqual(new Set(['delta', 'deletes']))
  })

  test('XE10 a delete that becomes visible late does not touch a row that was recreated since', async () => {
    table.put('a')
    table.put('b')
    await cycle(connector())
    remove('a', { lateMs: 10 * MINUTE })
    remove('b', { lateMs: 10 * MINUTE })
    scene.clock.step(SECOND)
    table.put('a')
    for (let round = 0; round < 6; round++) await cycle(connector())
    expect(await scene.rows()).toEqual(table.truth())
  })

  test('XE10 as a control: without the time of the deletion it would', async () => {
    const timeless = flipFlop({
      delta: keysetOf(table),
      deletes: keyset<TableRow>({
        read: (query) => audit.read(query),
        timestamp: ({ at }) => at,
        id: ({ id }) => id,
        toChange: ({ id }) => ({ type: 'delete', key: id }),
        lagMs: 0,
        limit: 10,
      }),
    })
    table.put('a')
    await cycle(timeless)
    remove('a', { lateMs: 10 * MINUTE })
    scene.clock.step(SECOND)
    table.put('a')
    for (let round = 0; round < 6; round++) await cycle(timeless)
    expect(await scene.keys()).toEqual([])
  })

  test('N82 one stream failing moves neither cursor nor phase', async () => {
    table.put('a')
    await cycle(connector())
    const before = await state()
    const broken = flipFlop({
      delta: keysetOf(table),
      deletes: async () => {
        throw new Error('no audit today')
      },
    })
    expect(await cycle(broken)).toMatchObject({ stopReason: 'error' })
    expect(await state()).toEqual(before)
  })

  test('N83 a stream that ends without a state keeps the one it was asked with', async () => {
    const asked: unknown[] = []
    const once =
      (name: string): Execute<string> =>
      async (given) => {
        asked.push([name, given])
        return given === undefined
          ? { changes: [], hasMore: false, nextState: `${name} 1` }
          : { changes: [], hasMore: false }
      }
    for (let round = 0; round < 6; round++) await cycle(flipFlop({ delta: once('delta'), deletes: once('deletes') }))
    expect(asked).toEqual([
      ['delta', undefined],
      ['deletes', undefined],
      ['delta', 'delta 1'],
      ['deletes', 'deletes 1'],
      ['delta', 'delta 1'],
      ['deletes', 'deletes 1'],
    ])
  })

  test('a stream that reports more pages without a state fails with that reason', async () => {
    expect(
      await cycle(
        flipFlop({
          delta: async () => ({ changes: [], hasMore: true }),
          deletes: async () => ({ changes: [], hasMore: false }),
        }),
      ),
    ).toMatchObject({ error: { code: 'STATE_MISSING' } })
  })

  test('a phase it does not know is refused and kept', async () => {
    await setState(scene, { phase: 'backfill' })
    expect(await cycle(connector())).toMatchObject({ error: { code: 'CURSOR_REJECTED' } })
    expect(await state()).toEqual({ phase: 'backfill' })
  })

  test('as a replace sync it would take one stream for everything: refused', async () => {
    expect(await cycle(connector(), { mode: 'replace' })).toMatchObject({ error: { code: 'SYNC_INVALID' } })
  })
})
