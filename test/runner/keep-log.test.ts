import { expect, onTestFinished, test } from 'vitest'
import type { Ports } from '../../src/contract/index.ts'
import { keepLog } from '../../src/runner/keep-log.ts'
import { remove, START, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'

test('XE13 the log is kept for as long as it was said, every hour, and a store that fails is asked again', async () => {
  const harness = await openHarness()
  onTestFinished(() => harness.close())
  const { store } = harness
  const driver = await SyncDriver.take(store)
  for (let day = 0; day < 4; day++) await driver.cycle(day % 2 === 0 ? [upsert('a', { day })] : [remove('a')], { at: START + day * 86_400_000 })
  const stop = new AbortController()
  const [floors, lines]: [number[], string[]] = [[], []]
  let [now, broken] = [START + 2.5 * 86_400_000, 1]
  const note = (message: string): void => void lines.push(message)
  const ports: Ports = {
    random: { next: Math.random }, log: { debug: note, info: note, warn: note, error: note },
    clock: {
      now: () => now,
      async sleep(ms) {
        now += ms
        floors.push((await store.feed({ after: 0, limit: 0, scanMax: 1 })).floor)
        if (now > START + 5 * 86_400_000) stop.abort()
      },
    },
  }
  const failing = { ...store, compact: (request: Parameters<typeof store.compact>[0]) => (broken-- > 0 ? Promise.reject(new Error('busy')) : store.compact(request)) }
  await keepLog(failing, ports, 86_400_000, stop.signal)
  expect(floors[0]).toBe(0)
  expect(floors[1]).toBe(2)
  expect(floors.at(-1)).toBe(4)
  expect([...new Set(floors)]).toEqual([0, 2, 3, 4])
  expect(lines.filter((line) => line === 'the log could not be compacted')).toHaveLength(1)
  expect(await store.row('things', 'a')).toBe(null)
})

test('XE13 what is kept for less than an hour is looked after as often', async () => {
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
  await keepLog(harness.store, { random: { next: Math.random }, log: { debug: none, info: none, warn: none, error: none }, clock }, 900_000, stop.signal)
  expect(slept).toEqual([900_000])
})
