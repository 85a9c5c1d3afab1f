import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SyncError, type SyncContext } from '../../../src/contract/index.ts'
import {
  failover,
  type Failover,
  type FailoverState,
  type ImportBatch,
  type Provider,
  type ProviderPage,
  type FailoverResult,
} from '../../../src/strategies/index.ts'
import { MINUTE, planOf, EngineFixture, SECOND, storeWith } from '../../engine/engine-fixture.ts'
import { runOn, runToEnd, setState, stateOn } from '../run-strategy.ts'
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

let scene: EngineFixture
beforeEach(async () => void (scene = await EngineFixture.open()))
afterEach(() => scene.close())

const over = (...providers: Provider<Tx>[]): Failover<Tx> => failover({ providers, operations: { token: OPERATION } })
const state = async (): Promise<FailoverState> => (await stateOn<FailoverState>(scene))!
const keys = async (): Promise<string[]> =>
  (await scene.keys()).toSorted((a, b) => Number(a.slice(1)) - Number(b.slice(1)))
const named = (from: number, to: number): string[] => txs(from, to).map(({ id }) => id)
/** Every feed entry once: nothing was landed twice. */
const feedIsClean = async (): Promise<void> => {
  const entries = (await scene.feed()).map(({ key, action }) => `${action} ${key}`)
  expect(entries).toEqual([...new Set(entries)])
}
/** A provider that answers until it does not. */
const breaking = (
  name: string,
  truth: () => Tx[],
  answers: number,
  error: () => Error = createUnavailableError,
  options = {},
): ReturnType<typeof createListProvider> => {
  let left = answers
  return createListProvider(name, truth, {
    before: () => {
      if (left-- <= 0) throw error()
    },
    ...options,
  })
}

describe('several providers of one dataset', () => {
  test('E35 E33 XC35 when one fails, the next goes on from the last position that was landed, a window before it', async () => {
    const north = breaking('north', () => txs(1, 20), 2)
    const south = createListProvider('south', () => txs(1, 20))
    expect((await runOn(scene, over(north, south))).stopReason).toBe('complete')
    expect(await keys()).toEqual(named(1, 20))
    expect(north.asked).toHaveLength(3)
    expect(south.asked[0]!.cursor).toEqual(block(7 - 2))
    expect((await state()).session.switches).toBe(1)
    await feedIsClean()
  })

  test('E34 ED4 the window is applied once: the pages after the first go on exactly', async () => {
    const south = createListProvider('south', () => txs(1, 20))
    await runOn(
      scene,
      over(
        breaking('north', () => txs(1, 20), 2),
        south,
      ),
    )
    expect(south.asked.map(({ cursor }) => cursor!.value)).toEqual([5, 8, 11, 14, 17, 20].slice(0, south.asked.length))
    const again = createListProvider('south', () => txs(1, 22))
    await runOn(scene, over(again))
    expect(again.asked[0]!.cursor).toEqual(
      (await state()).cursors.token!.metadata!.reached!.blockNumber === 22 ? block(20) : null,
    )
  })

  test('E38 E39 F3 XC35 a token of one provider becomes a block or a time for the others', async () => {
    const north = breaking('north', () => txs(1, 20), 2, createUnavailableError, {
      supports: ['pageToken', 'blockNumber'],
    })
    const south = breaking('south', () => txs(1, 20), 1, createUnavailableError, {
      supports: ['pageToken', 'blockNumber'],
    })
    const east = createListProvider('east', () => txs(1, 20), { supports: ['timestamp'] })
    expect((await runOn(scene, over(north, south, east))).stopReason).toBe('complete')
    expect(south.asked[0]!.cursor).toEqual(block(4))
    expect(east.asked[0]!.cursor).toEqual(time(4 * HOUR_MS))
    expect(await keys()).toEqual(named(1, 20))
    await feedIsClean()
  })

  test('E31 F3 a position that only its own provider understands leaves the others out', async () => {
    const token = createScriptedProvider(
      'north',
      [
        { items: [tx(1)], next: 'n/1' },
        createUnavailableError(),
        createUnavailableError(),
        createUnavailableError(),
        createUnavailableError(),
      ],
      { supports: ['pageToken'], prefers: 'pageToken' },
    )
    const south = createScriptedProvider('south', [], { supports: ['slot'], prefers: 'slot' })
    const result = await runOn(scene, over(token, south))
    expect(result.error).toMatchObject({
      code: 'SOURCE_UNAVAILABLE',
      message: expect.stringMatching(/\(north: SOURCE_UNAVAILABLE\)/),
    })
    expect(south.asked).toEqual([])
  })

  test('E36 when all fail there is one error that stands for them; nothing is thrown by the stream', async () => {
    const strategy = over(
      createScriptedProvider('north', [createUnavailableError()]),
      createScriptedProvider('south', [
        async () => {
          throw new Error('odd')
        },
      ]),
    )
    const results: Array<FailoverResult<ImportBatch<Tx>>> = []
    for await (const result of strategy.stream(undefined, contextOf())) results.push(result)
    expect(results).toHaveLength(1)
    expect(results[0]).toMatchObject({
      ok: false,
      error: {
        code: 'SOURCE_UNAVAILABLE',
        message:
          'failover: every provider of `token` has failed (north: SOURCE_UNAVAILABLE, south: CONNECTOR_FAILED). The next attempt retries.',
      },
    })
  })

  test('E20 E14 the same can be read as a stream of batches, each with the state to go on from', async () => {
    const truth = txs(1, 8)
    const found: string[] = []
    let at: FailoverState | undefined
    for (let life = 0; life < 10; life++) {
      const stream = over(
        breaking('north', () => truth, 1),
        createListProvider('south', () => truth),
      ).stream(at, contextOf())
      const { value, done } = await stream.next()
      await stream.return()
      if (done === true || !value.ok) break
      found.push(...value.value.items.map(({ id }) => id))
      at = JSON.parse(JSON.stringify(value.value.state)) as FailoverState
      if (value.value.isComplete) break
    }
    expect([...new Set(found)].toSorted()).toEqual(named(1, 8).toSorted())
  })

  test('E10 E17 E46 EX1 the position is kept as JSON with every batch, in the transaction of its rows', async () => {
    const strategy = over(createListProvider('north', () => txs(1, 8)))
    const seen: Array<[number, number | undefined]> = []
    const store = storeWith(scene.store, {
      commit: async (commit) => {
        const outcome = await scene.store.commit(commit)
        const { inflight, committed } = await scene.store.readCheckpoint({ worker: 'shop', sync: 'sync' })
        const kept = JSON.parse(inflight?.state ?? committed ?? 'null') as FailoverState
        seen.push([(await scene.keys()).length, kept.cursors.token?.totalFetched])
        return outcome
      },
    })
    await scene.run(planOf({ execute: strategy }), { store })
    expect(seen).toEqual([
      [3, 3],
      [6, 6],
      [8, 8],
    ])
  })

  test('E18 F2 T11 EX1 a position that cannot be kept fails the cycle, and its rows are not there either', async () => {
    let commits = 0
    const store = storeWith(scene.store, {
      commit: (commit) =>
        ++commits > 1 ? Promise.reject(new SyncError('STORE_FULL', 'full')) : scene.store.commit(commit),
    })
    const result = await scene.run(planOf({ execute: over(createListProvider('north', () => txs(1, 8))) }), { store })
    expect(result.error?.code).toBe('STORE_FULL')
    expect(await keys()).toEqual(named(1, 3))
    expect((await scene.checkpoint()).failures).toBe(1)
    expect((await runOn(scene, over(createListProvider('north', () => txs(1, 8))))).counts).toMatchObject({
      created: 5,
    })
  })

  test('E21 EX9 what is there already is skipped, and a row is never written twice', async () => {
    await runOn(scene, over(createListProvider('north', () => txs(1, 8))))
    const { cursors: _, ...rest } = await state()
    await setState(scene, { ...rest, cursors: {} })
    const result = await runOn(scene, over(createListProvider('north', () => txs(1, 8))))
    expect(result.counts).toMatchObject({ created: 0, updated: 0, unchanged: 8 })
    expect(await scene.feed()).toHaveLength(8)
  })

  test('E22 EX2 the totals of an import go on when it is resumed, and end with it', async () => {
    const provider = createListProvider('north', () => txs(1, 8))
    expect((await runOn(scene, over(provider), { pagesMax: 2 })).stopReason).toBe('max_pages')
    const inflight = JSON.parse((await scene.checkpoint()).inflight!.state!) as FailoverState
    expect(inflight.session).toMatchObject({
      status: 'started',
      operations: { token: { batches: 2, fetched: 6, yielded: 6 } },
    })
    expect((await scene.checkpoint()).committed).toBeNull()
    await runOn(scene, over(provider))
    expect((await state()).session).toMatchObject({
      status: 'completed',
      operations: { token: { batches: 3, fetched: 8, yielded: 8, deduplicated: 0 } },
    })
    await runOn(scene, over(provider))
    expect((await state()).session.operations.token!.batches).toBe(1)
    expect((await state()).cursors.token!.totalFetched).toBe(8)
  })

  test('E9 E42 each operation has a position of its own, and one that ended waits for the others', async () => {
    const asked: string[] = []
    const provider = createScriptedProvider('north', [
      { items: txs(1, 1), through: { type: 'blockNumber', value: 2 } },
      { items: txs(2, 2), end: true },
      { items: txs(1, 1), end: true },
    ])
    const strategy = failover({ providers: [provider], operations: { normal: OPERATION, token: OPERATION } })
    await runOn(scene, strategy)
    asked.push(...provider.asked.map(({ operation }) => operation))
    expect(asked).toEqual(['normal', 'normal', 'token'])
    expect(Object.keys((await state()).cursors)).toEqual(['normal', 'token'])
  })

  test('E24 a provider that does not offer an operation is not asked for it', async () => {
    const north = createScriptedProvider('north', [{ items: txs(1, 1), end: true }], { operations: ['normal'] })
    const south = createScriptedProvider('south', [{ items: txs(2, 2), end: true }])
    await runOn(scene, failover({ providers: [north, south], operations: { normal: OPERATION, token: OPERATION } }))
    expect([north.asked.length, south.asked.length]).toEqual([1, 1])
  })

  test('E37 E19 E43 the end of an operation survives when nothing of the batch is new, or there is nothing at all', async () => {
    await runOn(scene, over(createListProvider('north', () => txs(1, 3))))
    const known = await runOn(scene, over(createListProvider('north', () => txs(1, 3))))
    expect(known).toMatchObject({ stopReason: 'complete', counts: { created: 0 } })
    const empty = await runOn(scene, over(createScriptedProvider('north', [{ items: [], end: true }])))
    expect(empty.stopReason).toBe('complete')
  })

  test('E48 a stream that never had anything ends, and begins again with any provider', async () => {
    expect((await runOn(scene, over(createScriptedProvider('north', [{ items: [], end: true }])))).stopReason).toBe(
      'complete',
    )
    expect((await state()).cursors.token).toMatchObject({
      primary: block(0),
      totalFetched: 0,
      metadata: { isComplete: true },
    })
    const south = createScriptedProvider('south', [{ items: txs(1, 2), end: true }], {
      supports: ['timestamp'],
      prefers: 'timestamp',
    })
    await runOn(scene, over(south))
    expect(south.asked[0]!.cursor).toBeUndefined()
    expect(await keys()).toEqual(named(1, 2))
  })

  test('ED3 an empty end on a resumption, by the same or another provider, does not send the next cycle back to the beginning', async () => {
    await runOn(scene, over(createListProvider('north', () => txs(1, 8))))
    const before = (await state()).cursors.token!
    await runOn(scene, over(createScriptedProvider('north', [{ items: [], end: true }])))
    await runOn(scene, over(createScriptedProvider('south', [{ items: [], end: true }], { replay: { blocks: 0 } })))
    const after = (await state()).cursors.token!
    expect({ ...after, metadata: undefined }).toEqual({ ...before, metadata: undefined })
    const north = createListProvider('north', () => txs(1, 9))
    await runOn(scene, over(north))
    expect(north.asked[0]!.cursor).toEqual(before.primary)
  })

  test('ED5 the progress of pages with nothing new is kept', async () => {
    const page = (n: number): ProviderPage<Tx> => ({ items: txs(1, 3), next: `n/${n}` })
    const provider = createScriptedProvider('north', [page(1), page(2), page(3)], {
      supports: ['pageToken'],
      prefers: 'pageToken',
    })
    await runOn(scene, over(provider), { pagesMax: 3 })
    expect((JSON.parse((await scene.checkpoint()).inflight!.state!) as FailoverState).cursors.token!.primary).toEqual(
      tokenOf('north', 'n/3'),
    )
  })

  test('ED6 two runs at once: the position of the one that lost its lease is not kept', async () => {
    const strategy = over(createListProvider('north', () => txs(1, 8)))
    const store = storeWith(scene.store, {
      commit: async (commit) => {
        await scene.store.acquire(commit.lease.ref, {
          holder: 'other',
          ttlMs: MINUTE,
          at: scene.clock.now(),
          evictHolder: commit.lease.holder,
        })
        return scene.store.commit(commit)
      },
    })
    expect((await scene.run(planOf({ execute: strategy }), { store })).stopReason).toBe('lease_lost')
    const { inflight, committed } = await scene.checkpoint()
    expect([committed, inflight?.state ?? null, await scene.keys()]).toEqual([null, null, []])
  })

  test.each([
    ['what the window of a thousand still knows', 9, 0],
    ['and of an overlap that is larger than the window', 12, 1_200],
  ])('E33 E41 XC36 after a switch nothing is landed twice: %s', async (_, replay, unchanged) => {
    const truth = Array.from({ length: 1_500 }, (_item, at) => tx(1 + Math.floor(at / 100), `t${at}`))
    const options = { size: 100, replay }
    const result = await runOn(
      scene,
      over(
        breaking('north', () => truth, 14, createUnavailableError, options),
        createListProvider('south', () => truth, options),
      ),
    )
    expect(result.counts).toMatchObject({ created: 1_500, updated: 0, unchanged })
    expect((await state()).session.operations.token!.deduplicated).toBe(unchanged === 0 ? 900 : 0)
    await feedIsClean()
  })

  test('E49 a page that was thrown away and read again lands all of its items', async () => {
    let commits = 0
    const store = storeWith(scene.store, {
      commit: async (commit) => (++commits === 1 ? { kind: 'overlap', keys: [] } : scene.store.commit(commit)),
    })
    await scene.run(planOf({ execute: over(createListProvider('north', () => txs(1, 8))) }), { store })
    expect(await keys()).toEqual(named(1, 8))
  })

  test('XC37 one that does not show what the other ended with is read from further back, a few times', async () => {
    const truth = txs(1, 200)
    await runOn(scene, over(createListProvider('north', () => truth, { size: 50 })))
    // South has a hole where north ended, and what comes before it late.
    const south = createListProvider('south', () => [...truth.filter(({ block: at }) => at < 195), ...txs(201, 203)], {
      size: 500,
    })
    expect((await runOn(scene, over(south))).stopReason).toBe('complete')
    expect(south.asked.map(({ cursor }) => cursor!.value)).toEqual([198, 192, 168, 72])
    expect(await keys()).toEqual(named(1, 203))
    expect(scene.logged.some((line) => line.includes('continuing without it'))).toBe(true)
    await feedIsClean()
  })

  test('XC37 T11 one that is behind does not end the cycle', async () => {
    await runOn(scene, over(createListProvider('north', () => txs(1, 20), { through: true })))
    const behind = createListProvider('south', () => txs(1, 12), { through: true })
    expect((await runOn(scene, over(behind))).error).toMatchObject({ code: 'SOURCE_UNAVAILABLE' })
    expect((await state()).cursors.token!.primary).toEqual(block(21))
    const east = createListProvider('east', () => txs(1, 25), { through: true })
    expect((await runOn(scene, over(behind, east), { afterMs: 10 * MINUTE })).stopReason).toBe('complete')
    expect(await keys()).toEqual(named(1, 25))
  })

  test('XC16 a token that has run out is no failure while a block says the same', async () => {
    const expired = new SyncError('CURSOR_REJECTED', 'expired')
    const provider = createScriptedProvider(
      'north',
      [{ items: txs(1, 3), next: 'n/3' }, expired, { items: txs(3, 5), end: true }],
      { supports: ['pageToken', 'blockNumber'] },
    )
    expect((await runOn(scene, over(provider))).stopReason).toBe('complete')
    expect(provider.asked.map(({ cursor }) => cursor?.value)).toEqual([undefined, 'n/3', 3])
    expect((await state()).providers.north).toMatchObject({ failures: 0, failed: 0 })
  })

  test('XC16 tokens that run out again and again at one place are', async () => {
    const provider = createScriptedProvider(
      'north',
      Array.from({ length: 20 }, (_, at) =>
        at % 2 === 0 ? { items: txs(3, 3), next: `n/${at}` } : new SyncError('CURSOR_REJECTED', 'expired'),
      ),
      { supports: ['pageToken', 'blockNumber'] },
    )
    const south = createScriptedProvider('south', [{ items: txs(1, 5), end: true }])
    expect((await runOn(scene, over(provider, south))).stopReason).toBe('complete')
    expect(provider.asked.length).toBeLessThan(6)
  })

  test('EX8 the good part of a page that breaks is landed, and another provider brings the rest', async () => {
    const north = createScriptedProvider('north', [{ items: [...txs(1, 4), { id: 'bad' } as Tx], end: true }])
    const south = createListProvider('south', () => txs(1, 6))
    expect((await runOn(scene, over(north, south))).stopReason).toBe('complete')
    expect(north.asked).toHaveLength(1)
    expect(await keys()).toEqual(named(1, 6))
    expect((await state()).providers.north).toMatchObject({ failures: 1, lastError: { code: 'SOURCE_INVALID' } })
  })

  test('EX3 the failures of a provider survive a restart, and an open circuit is left alone while there is another', async () => {
    const down3 = (): Provider<Tx> =>
      createScriptedProvider('north', [
        createUnavailableError(),
        createUnavailableError(),
        createUnavailableError(),
        createUnavailableError(),
      ])
    const truth = txs(1, 3)
    for (let cycle = 0; cycle < 3; cycle++) {
      await runOn(
        scene,
        failover({
          providers: [down3(), createListProvider('south', () => truth)],
          operations: { token: OPERATION },
          preferred: 'north',
        }),
        { afterMs: SECOND },
      )
    }
    expect((await state()).providers.north).toMatchObject({ failures: 3 })
    const north = createScriptedProvider('north', [])
    await runOn(
      scene,
      failover({
        providers: [north, createListProvider('south', () => truth)],
        operations: { token: OPERATION },
        preferred: 'north',
      }),
      { afterMs: SECOND },
    )
    expect(north.asked).toEqual([])
    const back = createListProvider('north', () => truth)
    await runOn(
      scene,
      failover({
        providers: [back, createListProvider('south', () => truth)],
        operations: { token: OPERATION },
        preferred: 'north',
      }),
      { afterMs: 10 * MINUTE },
    )
    expect(back.asked.length).toBeGreaterThan(0)
    expect((await state()).providers.north).toMatchObject({ failures: 0 })
  })

  test('EX3 an open circuit is tried when no other provider is left', async () => {
    for (let cycle = 0; cycle < 3; cycle++)
      await runOn(scene, over(createScriptedProvider('north', [createUnavailableError()])), { afterMs: SECOND })
    const north = createListProvider('north', () => txs(1, 3))
    expect((await runOn(scene, over(north), { afterMs: SECOND })).stopReason).toBe('complete')
  })

  test('EX3 who stops the cycle does not punish the provider; a provider that hangs is', async () => {
    const stopping = new AbortController()
    const hangs = createScriptedProvider('north', [
      (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
          stopping.abort()
        }),
    ])
    const stopped = await scene.run(planOf({ execute: over(hangs) }), { signal: stopping.signal })
    expect(stopped.stopReason).toBe('cancelled')
    expect((await scene.checkpoint()).inflight?.state ?? null).toBeNull()

    const hung = createScriptedProvider('north', [() => new Promise(() => {})])
    const result = await runOn(
      scene,
      over(
        hung,
        createListProvider('south', () => txs(1, 3)),
      ),
    )
    expect(result.stopReason).toBe('complete')
    expect((await state()).providers.north).toMatchObject({ failures: 1, lastError: { code: 'SOURCE_TIMEOUT' } })
  })

  test('EX5 one that asks to wait is not asked before, and others are', async () => {
    const limited = new SyncError('RATE_LIMITED', 'slow', { retryAfterMs: 90_000 })
    const north = createScriptedProvider('north', [
      { items: txs(1, 1), through: { type: 'blockNumber', value: 2 } },
      limited,
      { items: txs(3, 3), end: true },
    ])
    const south = createListProvider('south', () => txs(1, 2))
    await runOn(scene, over(north, south))
    expect(north.asked).toHaveLength(2)
    const alone = createScriptedProvider('north', [limited])
    const result = await runOn(scene, over(alone), { afterMs: SECOND })
    expect(result.error).toMatchObject({ code: 'RATE_LIMITED' })
    expect(result.retryAt! - result.endedAt).toBeGreaterThan(80_000)
  })

  test('EX3 the terminal error says what all say, else what may pass', async () => {
    const refused = (): SyncError => new SyncError('AUTH_REJECTED', 'no')
    expect(
      (
        await runOn(
          scene,
          over(createScriptedProvider('north', [refused()]), createScriptedProvider('south', [refused()])),
        )
      ).error?.code,
    ).toBe('AUTH_REJECTED')
    expect(
      (
        await runOn(
          scene,
          over(
            createScriptedProvider('north', [refused()]),
            createScriptedProvider('south', [createUnavailableError()]),
          ),
        )
      ).error?.code,
    ).toBe('SOURCE_UNAVAILABLE')
  })

  test('EX6 a switch is logged, and is in the record of the cycle that the status shows', async () => {
    const result = await runOn(
      scene,
      over(
        breaking('north', () => txs(1, 9), 1),
        createListProvider('south', () => txs(1, 9)),
      ),
    )
    expect(result.endReason).toBe('switched_to_south')
    expect((await scene.store.cycles(null))[0]).toMatchObject({
      stopReason: 'complete',
      endReason: 'switched_to_south',
    })
    expect((await runOn(scene, over(createListProvider('south', () => txs(1, 9))))).endReason).toBeNull()
    const twice = failover({
      providers: [
        breaking('west', () => txs(1, 30), 1),
        breaking('north', () => txs(1, 30), 1),
        createListProvider('south', () => txs(1, 30)),
      ],
      operations: { token: OPERATION },
      preferred: 'west',
    })
    expect((await runOn(scene, twice)).endReason).toBe('switched_2_times')
    expect(scene.logged.filter((line) => line.startsWith('switched to another provider')).slice(0, 1)).toEqual([
      expect.stringContaining('"operation":"token","from":"north","to":"south","after":"SOURCE_UNAVAILABLE"'),
    ])
  })

  test('E50 positions are not portable by force: what no provider understands is an error that says so', async () => {
    await setState(scene, {
      cursors: { token: stateAt({ type: 'signature', value: 's' }) },
      providers: {},
      session: { cycle: 0, startedAt: 0, status: 'completed', operations: {}, switches: 0 },
    })
    expect((await runOn(scene, over(createListProvider('north', () => [])))).error).toMatchObject({
      code: 'CURSOR_REJECTED',
      message: expect.stringContaining('signature'),
    })
  })

  test('a state that is not its own is refused, and what cannot work is refused when it is declared', async () => {
    for (const wrong of [
      { cursors: [] },
      { cursors: { token: { primary: 7 } }, providers: {}, session: {} },
      { cursors: {}, providers: { north: 7 }, session: {} },
      { cursors: {}, providers: {}, session: null },
    ]) {
      await setState(scene, wrong)
      expect((await runOn(scene, over(createListProvider('north', () => [])))).error?.code, JSON.stringify(wrong)).toBe(
        'CURSOR_REJECTED',
      )
    }
    const north = createListProvider('north', () => [])
    expect(() => over()).toThrow(/`providers` is empty/)
    expect(() => over(north, north)).toThrow(/same name/)
    expect(() => failover({ providers: [north], operations: {} })).toThrow(/`operations` is empty/)
    expect(() => failover({ providers: [north], operations: { token: OPERATION }, preferred: 'west' })).toThrow(
      /`preferred`/,
    )
    expect(() => createScriptedProvider('north', [], { supports: ['slot'], prefers: 'blockNumber' })).toThrow(
      /`prefers`/,
    )
    expect((await runOn(scene, over(north), { mode: 'replace', sync: 'other' })).error).toMatchObject({
      code: 'SYNC_INVALID',
    })
  })

  test('E49 broken off after any page, with any provider failing at any time, it lands what there is, once', async () => {
    const truth = txs(1, 17)
    for (let broken = 0; broken < 6; broken++) {
      const each = await EngineFixture.open()
      const strategy = (): Failover<Tx> =>
        over(
          breaking('north', () => truth, broken, createUnavailableError, { supports: ['pageToken', 'blockNumber'] }),
          createListProvider('south', () => truth),
          createListProvider('east', () => truth, { supports: ['timestamp'] }),
        )
      await runToEnd(each, strategy(), { pagesMax: 1 })
      expect((await each.keys()).length).toBe(17)
      expect(await each.feed()).toHaveLength(17)
      await each.close()
    }
  })
})

test('E8 a context of another run remembers nothing of this one', async () => {
  // The pacer is the run's own: windows of one tenant must not hide items from another.
  const strategy = over(createListProvider('north', () => txs(1, 3)))
  const items = async (context: SyncContext): Promise<number> => (await strategy(undefined, context)).changes.length
  expect([await items(contextOf()), await items(contextOf())]).toEqual([3, 3])
})

test('XC38 E6 what a repair deleted comes back as it was, though the last transaction was one of it', async () => {
  const scene = await EngineFixture.open()
  // The history has three versions: with t2 and t3, without them, and as at first.
  let told = txs(1, 3)
  const chain = { reads: 0 }
  const execute = failover<Tx>({
    operations: { token: OPERATION },
    providers: [createListProvider('north', () => told)],
    repair: {
      check: async () => (chain.reads++ === 0 ? null : { from: { type: 'blockNumber', value: 2 }, kept: null }),
      settle: ({ fetchedItems: seen }) => ({
        kept: null,
        changes:
          chain.reads === 0
            ? []
            : ['t2', 't3']
                .filter((key) => !seen.some(({ id }) => id === key))
                .map((key) => ({ type: 'delete' as const, key })),
      }),
    },
  })
  await runOn(scene, execute)
  chain.reads = 1
  told = txs(1, 1)
  await runOn(scene, execute)
  expect(await scene.keys()).toEqual(['t1'])
  told = txs(1, 3)
  await runOn(scene, execute)
  expect(await scene.keys()).toEqual(['t1', 't2', 't3'])
  await scene.close()
})

test('XC38 E6 an item that comes back within one run, after another took its key, is landed again', async () => {
  const version = (name: string): Tx => ({ ...tx(2), name })
  const page = (item: Tx, end = false): ProviderPage<Tx> => ({
    items: [tx(1), item, tx(3, 't3')],
    through: { type: 'blockNumber', value: 4 },
    end,
    custom: String(north.asked.length),
  })
  const north: ReturnType<typeof createScriptedProvider> = createScriptedProvider('north', [
    async () => page(version('a')),
    async () => page(version('b')),
    async () => page(version('a'), true),
  ])
  const execute = failover<Tx>({
    operations: { token: { ...OPERATION, id: ({ id, name }) => `${id} ${String(name)}` } },
    providers: [north],
    repair: {
      check: async () => ({ from: { type: 'blockNumber', value: 1 }, kept: null }),
      settle: () => ({ changes: [], kept: null }),
    },
  })
  expect((await runOn(scene, execute)).stopReason).toBe('complete')
  expect(north.asked).toHaveLength(3)
  expect((await scene.rows())['t2']).toMatchObject({ name: 'a' })
})

describe('providers that ask to wait', () => {
  const refusal = (retryAfterMs: number): SyncError => new SyncError('RATE_LIMITED', 'slow down', { retryAfterMs })
  const always = (name: string, retryAfterMs: number): ReturnType<typeof createScriptedProvider> =>
    createScriptedProvider(
      name,
      Array.from({ length: 500 }, () => refusal(retryAfterMs)),
    )

  test('when all of them do, the cycle fails with the shortest wait, and lands no empty page', async () => {
    const [north, south] = [always('north', 90 * SECOND), always('south', 40 * SECOND)]
    const result = await runOn(scene, over(north, south), { limits: { retriesMax: 0 } })
    expect(result).toMatchObject({ stopReason: 'error', pages: 0, error: { code: 'RATE_LIMITED' } })
    expect(result.retryAt).toBeGreaterThanOrEqual(scene.clock.now() + 40 * SECOND)
    expect(result.retryAt).toBeLessThan(scene.clock.now() + 90 * SECOND)
    expect([north.asked.length, south.asked.length]).toEqual([1, 1])
  })

  test('when the shortest wait is over, only the provider that announced it is asked', async () => {
    const north = createScriptedProvider('north', [refusal(10 * MINUTE)])
    const south = createScriptedProvider('south', [
      refusal(5 * SECOND),
      refusal(5 * SECOND),
      { items: txs(1, 3), end: true },
    ])
    const result = await runOn(scene, over(north, south), { limits: { retriesMax: 3 } })
    expect(result.stopReason).toBe('complete')
    expect(north.asked).toHaveLength(1)
    expect((await state()).providers.north?.waitUntil).toBeGreaterThan(scene.clock.now())
  })

  test('a failure after a wait counts as one', async () => {
    const [north, south] = [
      createScriptedProvider('north', [refusal(5 * SECOND), createUnavailableError()]),
      createScriptedProvider('south', [refusal(5 * SECOND), { items: txs(1, 3), end: true }]),
    ]
    await runOn(scene, over(north, south), { limits: { retriesMax: 5 } })
    expect((await state()).providers.north).toMatchObject({ failures: 1, lastError: { code: 'SOURCE_UNAVAILABLE' } })
  })
})

test('EX8 XC38 where the past can change, nothing of a broken page is landed', async () => {
  const scene = await EngineFixture.open()
  const north = createScriptedProvider('north', [{ items: [...txs(1, 2), { id: 'bad' } as Tx], end: true }])
  await runOn(
    scene,
    failover<Tx>({
      operations: { token: OPERATION },
      providers: [north],
      repair: { check: async () => null, settle: () => ({ changes: [], kept: null }) },
    }),
  )
  expect(await scene.keys()).toEqual([])
  await scene.close()
})

test('XC38 a repair hears what the provider said of a page also where the window is opened wider, and that this is not the end', async () => {
  const page = (items: Tx[], word: string): ProviderPage<Tx> => ({
    items,
    through: { type: 'blockNumber', value: 4 },
    end: true,
    custom: word,
  })
  const north = createScriptedProvider('north', [page(txs(1, 3), 'as north has it'), createUnavailableError()])
  // Another past, in which t3 never was.
  const south = createScriptedProvider('south', [
    page([tx(2), tx(3, 'other')], 'as south has it'),
    page([...txs(1, 2), tx(3, 'other')], 'the same'),
  ])
  const heard: unknown[] = []
  const execute = failover<Tx>({
    operations: { token: OPERATION },
    providers: [north, south],
    repair: {
      check: async () => null,
      settle: ({ fetchedItems: seen, cursor, isComplete }) => {
        heard.push({
          seen: seen.map(({ id }) => id),
          word: cursor.metadata?.custom,
          place: cursor.primary.value,
          isComplete,
        })
        return { changes: [], kept: null }
      },
    },
  })
  await runOn(scene, execute)
  await runOn(scene, execute)
  expect(heard.slice(0, 2)).toEqual([
    { seen: ['t1', 't2', 't3'], word: 'as north has it', place: 4, isComplete: true },
    { seen: ['t2', 'other'], word: 'as south has it', place: 0, isComplete: false },
  ])
  // It belonged to that page: the question from further back begins without it.
  expect(south.asked[1]).toMatchObject({ cursor: block(0), own: { metadata: { providerName: 'south' } } })
  expect(south.asked[1]!.own!.metadata).not.toHaveProperty('custom')
})
