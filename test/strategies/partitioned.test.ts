import { expect, test } from 'vitest'
import { SyncError, type Change, type JsonValue, type PartitionWrite } from '../../src/contract/index.ts'
import { partitioned, type PartitionedOptions, type PartitionPage } from '../../src/strategies/partitioned.ts'
import { EngineFixture, ref } from '../engine/engine-fixture.ts'
import { iso, runOn, runToEnd, stateOn } from './run-strategy.ts'

interface PageState {
  readonly page: number
}

const change = (key: string): Change => ({ type: 'upsert', key, record: { key } })
const listOf = (keys: readonly string[]) => async () => ({ partitions: keys.map((key) => ({ key, value: key })) })

/** Reads scripted pages of rows; a function may fail instead. */
function pagesOf(
  pages: Readonly<Record<string, readonly (readonly string[] | (() => readonly string[]))[]>>,
  options: Partial<PartitionedOptions<string, PageState>> = {},
) {
  const requests: string[] = []
  const execute = partitioned<string, PageState>({
    list: listOf(Object.keys(pages)),
    read: async ({ key }, state): Promise<PartitionPage<PageState>> => {
      const page = state?.page ?? 0
      requests.push(`${key}${page}`)
      const answer = pages[key]?.[page] ?? []
      return {
        changes: (typeof answer === 'function' ? answer() : answer).map(change),
        hasMore: page + 1 < (pages[key]?.length ?? 0),
        nextState: { page: page + 1 },
      }
    },
    ...options,
  })
  return { execute, requests }
}

async function statesOf(scene: EngineFixture): Promise<Record<string, any>> {
  const rows = await scene.store.partitions(ref(), { limit: 100_000 })
  return Object.fromEntries(rows.map(({ key, state }) => [key, JSON.parse(state)]))
}

test('the partitions are listed, and each is read to its end with a state of its own', async () => {
  const scene = await EngineFixture.open()
  const { execute, requests } = pagesOf({ a: [['a1'], ['a2']], b: [['b1']], c: [[]] }, { concurrency: 2 })
  await runToEnd(scene, execute)
  expect(requests).toEqual(['a0', 'b0', 'a1', 'c0'])
  expect(Object.keys(await scene.rows())).toEqual(['a1', 'a2', 'b1'])
  expect(await statesOf(scene)).toMatchObject({ a: { state: { page: 2 } }, b: { state: { page: 1 } } })
  expect(await stateOn(scene)).toEqual({})
  // The next cycle continues each from there.
  requests.length = 0
  await runToEnd(scene, execute)
  expect(requests).toEqual(['a2', 'b1', 'c1'])
})

test('a replace cycle reads every partition from its start, also if another cycle was not completed', async () => {
  const scene = await EngineFixture.open()
  const { execute, requests } = pagesOf({ a: [['a1'], ['a2']], b: [['b1'], ['b2']] })
  await runOn(scene, execute, { mode: 'replace', pagesMax: 3 })
  expect(requests.splice(0)).toEqual(['a0', 'a1', 'b0'])
  expect((await runOn(scene, execute, { mode: 'replace', fresh: true })).stopReason).toBe('complete')
  expect(requests.splice(0)).toEqual(['a0', 'a1', 'b0', 'b1'])
  expect(Object.values(await statesOf(scene)).map(({ state }) => state)).toEqual([undefined, undefined])
  await runOn(scene, execute, { mode: 'replace' })
  expect(requests).toEqual(['a0', 'a1', 'b0', 'b1'])
})

test('the sweep of a replace cycle waits for all partitions', async () => {
  const scene = await EngineFixture.open()
  await runOn(scene, pagesOf({ a: [['a1']], b: [['b1'], ['b2']], c: [['c1']] }).execute, { mode: 'replace' })
  const broken = pagesOf({
    a: [['a1']],
    b: [
      ['b1'],
      () => {
        throw new SyncError('SOURCE_UNAVAILABLE', 'down')
      },
    ],
    c: [['c1']],
  })
  const result = await runOn(scene, broken.execute, { mode: 'replace' })
  expect(result).toMatchObject({ stopReason: 'error', counts: { swept: 0 } })
  expect(await scene.keys()).toEqual(['a1', 'b1', 'b2', 'c1'])
  const { counts } = await runOn(scene, pagesOf({ a: [['a1']], b: [['b1']], c: [['c1']] }).execute, {
    mode: 'replace',
    fresh: true,
  })
  expect(counts).toMatchObject({ swept: 1 })
})

test('if one of several requests fails, the others are committed, and the failed one is the first to be read again', async () => {
  const scene = await EngineFixture.open()
  let failures = 2
  const { execute, requests } = pagesOf(
    {
      a: [['a1'], ['a2']],
      b: [
        () => {
          if (failures-- > 0) throw new SyncError('SOURCE_UNAVAILABLE', 'down')
          return ['b1']
        },
      ],
      c: [['c1']],
      d: [['d1']],
    },
    { concurrency: 3 },
  )
  const first = await runOn(scene, execute)
  expect(first).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_UNAVAILABLE' } })
  expect(requests).toEqual(['a0', 'b0', 'c0', 'b0'])
  expect(await scene.keys()).toEqual(['a1', 'c1'])
  requests.length = 0
  expect((await runOn(scene, execute)).stopReason).toBe('complete')
  expect(requests).toEqual(['b0', 'a1', 'd0'])
  expect(await scene.keys()).toEqual(['a1', 'a2', 'b1', 'c1', 'd1'])
})

test('if all requests fail, the page fails', async () => {
  const scene = await EngineFixture.open()
  const down = (): never => {
    throw new SyncError('SOURCE_UNAVAILABLE', 'down')
  }
  const { execute, requests } = pagesOf({ a: [down], b: [down] }, { concurrency: 2 })
  expect(await runOn(scene, execute)).toMatchObject({ stopReason: 'error', pages: 1 })
  // The list is committed, and not requested again.
  expect(requests).toEqual(['a0', 'b0', 'a0', 'b0'])
  expect(await runOn(scene, execute)).toMatchObject({ stopReason: 'error', pages: 0 })
})

test('as many requests are open as `concurrency` allows, of different partitions, and no more', async () => {
  const scene = await EngineFixture.open()
  let [open, most] = [0, 0]
  const reading = new Set<string>()
  const execute = partitioned<string, PageState>({
    list: listOf(Array.from({ length: 20 }, (_, index) => `p${index}`)),
    read: async ({ key }, state, { clock, signal }) => {
      expect(reading.has(key)).toBe(false)
      reading.add(key)
      most = Math.max(most, ++open)
      await clock.sleep(1_000, signal)
      open--
      reading.delete(key)
      const page = state?.page ?? 0
      const hasMore = page < Number(key.slice(1)) % 3
      return { changes: [change(`${key}/${page}`)], hasMore, nextState: { page: page + 1 } }
    },
    concurrency: 5,
  })
  const startedAt = scene.clock.now()
  await runToEnd(scene, execute, { afterMs: 0 })
  expect(most).toBe(5)
  expect((await scene.keys()).length).toBe(39)
  // A partition begins as soon as another one ends.
  expect(scene.clock.now() - startedAt).toBe(9_000)
})

test('a cursor that expired within a partition restarts that partition, from the state of its last complete read', async () => {
  const scene = await EngineFixture.open()
  const asked: string[] = []
  let expired = false
  const execute = partitioned<string, { since: number; token?: number }>({
    list: listOf(['a', 'b']),
    read: async ({ key }, state, { cycle }) => {
      const { since = 0, token = 0 } = state ?? {}
      asked.push(`${key} ${since} ${token}`)
      if (token === 2 && expired) {
        expired = false
        throw new SyncError('CURSOR_REJECTED', 'the token has expired')
      }
      return {
        changes: [change(`${key}${cycle.id}${token}`)],
        hasMore: token < 2,
        nextState: token < 2 ? { since, token: token + 1 } : { since: since + 1 },
      }
    },
  })
  await runToEnd(scene, execute)
  asked.length = 0
  await runOn(scene, execute, { pagesMax: 1 })
  expired = true
  const result = await runOn(scene, execute)
  expect(result.stopReason).toBe('complete')
  expect(asked).toEqual(['a 1 0', 'a 1 1', 'a 1 2', 'a 1 0', 'a 1 1', 'a 1 2', 'b 1 0', 'b 1 1', 'b 1 2'])
})

test('a partition whose cursors expire again and again fails the cycle', async () => {
  const scene = await EngineFixture.open()
  let requests = 0
  const execute = partitioned<string, PageState>({
    list: listOf(['a']),
    read: async (_, state) => {
      requests++
      if (state !== undefined) throw new SyncError('CURSOR_REJECTED', 'the token has expired')
      return { changes: [change('a1')], hasMore: true, nextState: { page: 1 } }
    },
  })
  expect(await runOn(scene, execute)).toMatchObject({ stopReason: 'error', error: { code: 'CURSOR_REJECTED' } })
  // Once more after the engine restarted the cycle.
  expect(requests).toBe(15)
})

test('a state that the source rejects at the start of a partition fails the cycle: deletions since then would be missed', async () => {
  const scene = await EngineFixture.open()
  let isRejecting = false
  const execute = partitioned<string, PageState>({
    list: listOf(['a']),
    read: async (_, state) => {
      if (isRejecting && state !== undefined) throw new SyncError('CURSOR_REJECTED', 'gone')
      return { changes: [change('a1')], hasMore: false, nextState: { page: 1 } }
    },
  })
  await runToEnd(scene, execute)
  isRejecting = true
  expect(await runOn(scene, execute)).toMatchObject({ stopReason: 'error', counts: { unchanged: 0 } })
})

test('any other error within a partition repeats only the request that failed', async () => {
  const scene = await EngineFixture.open()
  let isDown = true
  const down = (): string[] => {
    if (isDown) throw new SyncError('SOURCE_UNAVAILABLE', 'down')
    return ['a2']
  }
  const { execute, requests } = pagesOf({ a: [['a1'], down] })
  expect((await runOn(scene, execute)).stopReason).toBe('error')
  isDown = false
  expect((await runOn(scene, execute)).stopReason).toBe('complete')
  expect(requests).toEqual(['a0', 'a1', 'a1'])
})

test('a row of a partition that is removed or restored during the cycle restarts the cycle: no partition is skipped', async () => {
  for (const tampered of [null, { value: 'c', listed: 0 }]) {
    const scene = await EngineFixture.open()
    const { execute, requests } = pagesOf({ a: [['a1'], ['a2']], b: [['b1']], c: [['c1']] })
    await runOn(scene, execute, { pagesMax: 1, mode: 'replace' })
    await writePartitions(scene, [{ key: 'c', state: tampered }])
    const result = await runOn(scene, execute, { mode: 'replace' })
    expect(result.stopReason).toBe('complete')
    expect(requests.filter((request) => request === 'c0')).toHaveLength(1)
    expect(await scene.keys()).toEqual(['a1', 'a2', 'b1', 'c1'])
  }
})

/** The hand of an operator, through a page of the unfinished cycle. */
async function writePartitions(scene: EngineFixture, partitions: readonly PartitionWrite[]): Promise<void> {
  const acquired = await scene.store.acquire(ref(), { holder: 'sql', ttlMs: 1_000, at: scene.clock.now() })
  if (acquired.kind !== 'acquired') throw new Error('held')
  const { inflight, version } = acquired.checkpoint
  if (inflight === null) throw new Error('no cycle is unfinished')
  await scene.store.commit({
    lease: acquired.lease,
    version,
    at: scene.clock.now(),
    transition: { ...inflight, kind: 'continue', page: inflight.page + 1 },
    owner: 'shop',
    landings: [],
    quarantined: [],
    columns: {},
    readAtSequence: 0,
    upstreamToleranceMs: 0,
    partitions: partitions.map(({ key, state }) => ({ key, state: state === null ? null : JSON.stringify(state) })),
  })
  await scene.store.release(acquired.lease)
}

test('a partition that loops, stalls or returns only empty pages fails', async () => {
  const scene = await EngineFixture.open()
  const looping = (states: (page: number) => JsonValue, rows: (page: number) => string[]) =>
    partitioned<string>({
      list: listOf(['a', 'b']),
      read: async ({ key }, _, { cycle }) =>
        key === 'b'
          ? { changes: [], hasMore: false }
          : { changes: rows(cycle.page).map(change), hasMore: true, nextState: states(cycle.page) },
      concurrency: 2,
    })
  const cases = [
    [
      looping(
        (page) => page % 7,
        (page) => [`r${page}`],
      ),
      'CURSOR_CYCLE',
    ],
    [
      looping(
        () => 1,
        () => ['r'],
      ),
      'CURSOR_STALLED',
    ],
    [
      looping(
        (page) => page,
        () => [],
      ),
      'EMPTY_PAGES',
    ],
  ] as const
  for (const [execute, code] of cases)
    expect(await runOn(scene, execute, { sync: code, limits: { pagesMax: 1_500 } })).toMatchObject({
      stopReason: 'error',
      error: { code },
    })
})

test('many partitions without changes are no empty pages', async () => {
  const scene = await EngineFixture.open()
  const keys = Array.from({ length: 60 }, (_, index) => `p${index}`)
  for (const mode of ['incremental', 'replace'] as const) {
    const { execute, requests } = pagesOf(Object.fromEntries(keys.map((key) => [key, [[]]])))
    const result = await runOn(scene, execute, { mode, sync: mode, limits: { emptyPagesMax: 20 } })
    expect(result.stopReason).toBe('complete')
    expect(requests).toHaveLength(60)
  }
})

test('invariant 12: the tidemark is the minimum over the partitions, and not later than the list', async () => {
  const scene = await EngineFixture.open()
  const start = scene.clock.now()
  const tidemarks: Record<string, string | null | undefined> = {}
  const run = async (given: Record<string, string | null | undefined>, lagMs = 0) => {
    Object.assign(tidemarks, given)
    const execute = partitioned<string, PageState>({
      list: listOf(['a', 'b', 'c']),
      read: async ({ key }) => ({ changes: [], hasMore: false, nextState: { page: 1 }, tidemark: tidemarks[key] }),
      lagMs,
    })
    await runOn(scene, execute, { afterMs: 60_000 })
    return (await scene.checkpoint()).tidemark
  }
  const at = (ms: number): string => iso(start + ms).replace('Z', '000Z')
  expect(await run({ a: iso(start + 9_000), b: iso(start + 5_000), c: '2026-03-01T01:00:30+01:00' })).toBe(at(5_000))
  // The cycle begins at 120 s: a partition that appeared later has not been listed.
  expect(await run({ a: iso(start + 500_000), b: iso(start + 500_000), c: iso(start + 500_000) })).toBe(at(120_000))
  expect(await run({ a: iso(start + 500_000) }, 70_000)).toBe(at(110_000))
})

test('a global cursor is the minimum of the last cycle, and a partition without a row is read from its start', async () => {
  const scene = await EngineFixture.open()
  const start = scene.clock.now()
  const keys = ['a', 'b', 'c']
  const asked: string[] = []
  const execute = partitioned<string, { since: string }>({
    list: async () => ({ partitions: keys.map((key) => ({ key, value: key })) }),
    read: async ({ key }, state) => {
      asked.push(`${key} ${state?.since ?? '-'}`)
      return {
        changes: [change(key)],
        hasMore: false,
        nextState: { since: 'own' },
        tidemark: iso(start + 10_000 * (1 + keys.indexOf(key))),
      }
    },
    partitionsMax: 2,
    globalState: (since) => ({ since }),
  })
  await runToEnd(scene, execute)
  const since = iso(start + 10_000).replace('Z', '000Z')
  expect(await stateOn(scene)).toEqual({ since })
  expect(Object.values(await statesOf(scene)).map(({ state }) => state)).toEqual([undefined, undefined, undefined])
  keys.push('d')
  await runToEnd(scene, execute)
  expect(asked.splice(0)).toEqual(['a -', 'b -', 'c -', `a ${since}`, `b ${since}`, `c ${since}`, 'd -'])
  // Below the limit every partition has a state of its own again.
  keys.splice(2)
  await runToEnd(scene, execute)
  expect(asked.splice(0)).toEqual([`a ${since}`, `b ${since}`])
  await runToEnd(scene, execute)
  expect(asked).toEqual(['a own', 'b own'])
  expect(await stateOn(scene)).toEqual({})
})

test('many partitions: the state of the sync stays small, and a crash loses one page', async () => {
  const scene = await EngineFixture.open()
  const count = Number(process.env['TIDEMARK_PARTITIONS'] ?? 2_000)
  const keys = Array.from({ length: count }, (_, index) => `parent-${String(index).padStart(6, '0')}`)
  let largest = 0
  let requests = 0
  const inner = partitioned<string, PageState>({
    list: async (cursor) => {
      const start = Number(cursor ?? 0)
      const page = keys.slice(start, start + 500)
      return {
        partitions: page.map((key) => ({ key, value: key })),
        ...(start + 500 < count && { next: start + 500 }),
      }
    },
    read: async ({ key }) => {
      requests++
      return { changes: [change(`${key}/child`)], hasMore: false, nextState: { page: 1 } }
    },
    concurrency: 16,
  })
  const execute: typeof inner = async (state, context) => {
    const page = await inner(state, context)
    largest = Math.max(largest, JSON.stringify(page.nextState).length)
    return page
  }
  await runOn(scene, execute, { pagesMax: 20 })
  expect((await runOn(scene, execute)).stopReason).toBe('complete')
  expect(await scene.store.countPartitions(ref())).toBe(count)
  expect((await scene.keys()).length).toBe(count)
  expect(requests).toBe(count)
  expect(largest).toBeLessThan(2_000)
  const { committed } = await scene.checkpoint()
  console.info(
    `${count} partitions: state of the sync at most ${largest} bytes in a cycle, ${committed} between cycles`,
  )
})
