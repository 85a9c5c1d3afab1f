import { expect, onTestFinished, test } from 'vitest'
import type { Ports } from '../../src/contract/index.ts'
import { compactLogPeriodically } from '../../src/runner/compact-log.ts'
import { remove, START, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'

test('XE13 the log is compacted to its retention every hour, and a failing store is retried', async () => {
  const harness = await openHarness()
  onTestFinished(() => harness.close())
  const { store } = harness
  const driver = await SyncDriver.acquire(store)
  for (let day = 0; day < 4; day++)
    await driver.cycle(day % 2 === 0 ? [upsert('a', { day })] : [remove('a')], { at: START + day * 86_400_000 })
  const stop = new AbortController()
  const [floors, lines]: [number[], string[]] = [[], []]
  let [now, broken] = [START + 2.5 * 86_400_000, 1]
  const note = (message: string): void => void lines.push(message)
  const ports: Ports = {
    random: { next: Math.random },
    log: { debug: note, info: note, warn: note, error: note },
    clock: {
      now: () => now,
      async sleep(ms) {
        now += ms
        floors.push((await store.feed({ after: 0, limit: 0, scanMax: 1 })).floor)
        if (now > START + 5 * 86_400_000) stop.abort()
      },
    },
  }
  const failing = {
    ...store,
    compact: (request: Parameters<typeof store.compact>[0]) =>
      broken-- > 0 ? Promise.reject(new Error('busy')) : store.compact(request),
  }
  await compactLogPeriodically(failing, ports, 86_400_000, stop.signal)
  expect(floors[0]).toBe(0)
  expect(floors[1]).toBe(2)
  expect(floors.at(-1)).toBe(4)
  expect([...new Set(floors)]).toEqual([0, 2, 3, 4])
  expect(lines.filter((line) => line === 'log compaction failed')).toHaveLength(1)
  expect(await store.row('things', 'a')).toBe(null)
})

test('XE13 a retention below an hour is also the interval', async () => {
  const stop = new AbortController()
  const slept: number[] = []
  const none = (): void => {}
  const clock = {
    now: () => START,
    async sleep(ms: number) {
      slept.push(ms)
      stop.abort()
    },
  }
  const harness = await openHarness()
  onTestFinished(() => harness.close())
  await compactLogPeriodically(
    harness.store,
    { random: { next: Math.random }, log: { debug: none, info: none, warn: none, error: none }, clock },
    900_000,
    stop.signal,
  )
  expect(slept).toEqual([900_000])
})

test('XE13 between two steps the writers have at least as long as a step took', async () => {
  const harness = await openHarness()
  onTestFinished(() => harness.close())
  const stop = new AbortController()
  const [slept, took]: [number[], number[]] = [[], [700, 0, 90]]
  const none = (): void => {}
  let now = START
  const clock = {
    now: () => now,
    async sleep(ms: number) {
      slept.push(ms)
      if (took.length === 0) stop.abort()
    },
  }
  const slow = {
    ...harness.store,
    compact: async () => ({
      floor: 0,
      removedEntries: 0,
      removedCycles: 0,
      hasMore: (now += took.shift()!) !== START + 790,
    }),
  }
  await compactLogPeriodically(
    slow,
    { random: { next: Math.random }, log: { debug: none, info: none, warn: none, error: none }, clock },
    900_000,
    stop.signal,
  )
  expect(slept).toEqual([750, 50, 900_000])
})

test('XE13 a store with a retention of one day has the same size after a month as after a week, and still knows the origin of each row', async () => {
  const harness = await openHarness()
  onTestFinished(() => harness.close())
  const { store } = harness
  const driver = await SyncDriver.acquire(store)
  const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
  const held: Array<{ entries: number; cycles: number }> = []
  for (let day = 0; day < 30; day++) {
    for (let n = 0; n < 40; n++) {
      const key = `k${(day * 7 + n) % 50}`
      const at = START + day * 86_400_000 + n * 60_000
      await driver.begin({ at })
      // Most cycles bring nothing, some bring changes, and a few delete rows.
      await driver.complete(n % 4 !== 0 ? [] : n % 20 === 0 ? [remove(key)] : [upsert(key, { day, n })], { at })
    }
    const stop = new AbortController()
    const clock = { now: () => START + (day + 1) * 86_400_000, sleep: async () => stop.abort() }
    await compactLogPeriodically(store, { random: { next: Math.random }, log: quiet, clock }, 86_400_000, stop.signal)
    held.push({
      entries: (await store.changes({ after: 0, limit: 10_000 })).length,
      cycles: (await store.cycles(null, { limit: 10_000 })).length,
    })
  }
  const rows = await store.rows({ database: 'things', limit: 100 })
  const cycles = new Set((await store.cycles(null, { limit: 10_000 })).map(({ cycle }) => cycle))
  for (const { database, key } of rows)
    expect((await store.history(database, key)).map(({ cycle }) => cycles.has(cycle))).not.toContain(false)
  // A day of cycles, those that current rows reference, and the newest hundred.
  for (const { entries, cycles: kept } of held) expect([entries <= 10 + 50, kept <= 100 + 50]).toEqual([true, true])
  expect(held[29]!.cycles).toBeLessThanOrEqual(Math.max(...held.slice(0, 7).map((day) => day.cycles)) + 50)
})
