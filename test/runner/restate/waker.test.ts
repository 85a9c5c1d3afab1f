import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { SyncError } from '../../../src/contract/index.ts'
import type { DeclaredSync } from '../../../src/runner/declared-sync.ts'
import { Waker } from '../../../src/runner/restate/waker.ts'
import { declare, HOUR, MINUTE, emptyPage, ref, RunnerFixture, SECOND } from '../runner-fixture.ts'
import { FakeProcess } from './fake-restate.ts'

let scene: RunnerFixture
let waker: Waker
let process: FakeProcess
let woken: Array<{ sync: string; inMs: number }>
let isDown: boolean
let isUnknown: boolean
let warned: string[]
let takesMs: number
beforeEach(async () => {
  scene = await RunnerFixture.open('2026-03-01T00:00:00Z')
  woken = []
  isDown = false
  isUnknown = false
  warned = []
  takesMs = 0
})
afterEach(async () => {
  await Promise.all([waker.stop(), scene.time.advance(SECOND)])
  await scene.close()
})

async function watch(syncs: readonly DeclaredSync[]): Promise<void> {
  process = new FakeProcess(scene, syncs, {})
  waker = new Waker([...process.jobs.values()], {
    clock: process.clock,
    ports: {
      ...scene.ports(),
      log: { debug() {}, info() {}, warn: (message) => void warned.push(message), error() {} },
    },
    pollMs: SECOND,
    pauseMs: SECOND,
    isDead: () => false,
    onStoreFailure: () => {},
    wake: async ({ ref: name }, at) => {
      if (isDown) throw new SyncError('RESTATE_UNAVAILABLE', 'down')
      if (isUnknown) throw new SyncError('RESTATE_REFUSED', 'no such service')
      woken.push({ sync: name.sync, inMs: at - scene.time.now() })
      if (takesMs > 0) await scene.time.sleep(takesMs)
    },
  })
  await waker.start()
  await scene.time.advance(10)
}

/** Simulates a turn of an object that is due. */
async function turn(sync: string): Promise<void> {
  await process.turns.runTurn(
    [...process.jobs.values()].find(({ ref: name }) => name.sync === sync)!,
    { since: null, tries: 0, storeFailures: 0 },
    new AbortController().signal,
  )
}

test('first every object gets its due time; one that is never due by itself is not woken', async () => {
  await watch(
    declare({ hourly: { schedule: '1h' }, daily: { schedule: { cron: '0 6 * * *' } }, byHand: { schedule: 'manual' } }),
  )
  expect(woken.map(({ sync }) => sync).toSorted()).toEqual(['daily', 'hourly'])
  expect(woken.find(({ sync }) => sync === 'daily')!.inMs).toBeGreaterThan(5 * HOUR)
})

test('a sync is woken when its parents have completed, and its turn finds it due', async () => {
  await watch(declare({ parent: { schedule: 'manual' }, child: { after: ['parent'] } }))
  expect(woken).toEqual([])
  await turn('child')
  expect(await scene.store.cycles(ref('child'))).toEqual([])
  for (let round = 1; round <= 2; round++) {
    await scene.trigger('parent')
    await turn('parent')
    await scene.time.advance(2 * SECOND)
    expect(woken.filter(({ sync }) => sync === 'child').length).toBeGreaterThanOrEqual(round)
    await turn('child')
    expect(await scene.store.cycles(ref('child'))).toHaveLength(round)
    await turn('child')
    expect(await scene.store.cycles(ref('child'))).toHaveLength(round)
    await scene.time.advance(MINUTE)
  }
})

test('N17 a trigger is sent once, within a poll round', async () => {
  await watch(declare({ byHand: { schedule: 'manual' } }))
  await scene.trigger('byHand')
  await scene.time.advance(2 * SECOND)
  expect(woken.map(({ sync }) => sync)).toEqual(['byHand'])
  await turn('byHand')
  await scene.time.advance(5 * MINUTE)
  expect(woken.length).toBe(1)
})

test('changes by the object’s own cycle do not wake it; a resume does', async () => {
  await watch(declare({ hourly: { schedule: '1h' } }))
  await turn('hourly')
  await scene.time.advance(30 * MINUTE)
  expect(woken.length).toBe(1)
  await scene.pause('hourly')
  await scene.time.advance(MINUTE)
  expect(woken.length).toBe(1)
  await scene.resume('hourly')
  await scene.time.advance(2 * SECOND)
  expect(woken.length).toBe(2)
  expect(woken[1]!.inMs).toBeGreaterThan(28 * MINUTE)
})

test('a trigger at the end of a cycle is not mistaken for the cycle’s own change', async () => {
  await watch(declare({ hourly: { schedule: '1h' } }))
  await turn('hourly')
  await scene.trigger('hourly')
  await scene.time.advance(2 * SECOND)
  expect(woken.length).toBe(2)
})

test('an overdue object is woken again, less and less often; one with a held lease is not', async () => {
  // A store may also return syncs that have not changed.
  const standings = scene.store.listSyncStatus.bind(scene.store)
  vi.spyOn(scene.store, 'listSyncStatus').mockImplementation(({ at, recent, ref: one }) =>
    standings({ at, recent, ...(one !== undefined && { ref: one }) }),
  )
  await watch(declare({ free: { schedule: 'manual' }, held: { schedule: 'manual' } }))
  await scene.store.acquire(ref('held'), { holder: 'elsewhere:7:ab#1', ttlMs: 10 * MINUTE, at: scene.time.now() })
  for (const sync of ['free', 'held']) await scene.trigger(sync)
  await scene.time.advance(110 * SECOND)
  expect(woken.filter(({ sync }) => sync === 'free').map(({ inMs }) => Math.round(-inMs / 5_000) * 5)).toEqual([
    0, 10, 30, 60, 90,
  ])
  expect(woken.some(({ sync }) => sync === 'held')).toBe(false)
  await scene.time.advance(10 * MINUTE)
  expect(woken.some(({ sync }) => sync === 'held')).toBe(true)
})

test('a slot that Restate missed is sent', async () => {
  await watch(declare({ daily: { schedule: { cron: '0 6 * * *' }, execute: emptyPage } }))
  await scene.time.advance(6 * HOUR + MINUTE)
  expect(woken.length).toBeGreaterThan(1)
})

test('an unreachable Restate is notified when it is back', async () => {
  await watch(declare({ byHand: { schedule: 'manual' } }))
  isDown = true
  await scene.trigger('byHand')
  await scene.time.advance(MINUTE)
  expect(woken).toEqual([])
  isDown = false
  await scene.time.advance(31 * SECOND)
  expect(woken.length).toBe(1)
})

test('changes during a notification are not lost', async () => {
  await watch(declare({ byHand: { schedule: 'manual' } }))
  takesMs = 5 * SECOND
  await scene.trigger('byHand')
  await scene.time.advance(2 * SECOND)
  await scene.pause('byHand')
  await scene.time.advance(5 * MINUTE)
  expect(woken.length).toBe(1)
})

test('a worker that is not registered yet causes no warning; one that stays unregistered does', async () => {
  isUnknown = true
  await watch(declare({ hourly: { schedule: '1h' } }))
  await scene.time.advance(1_500)
  expect([woken, warned]).toEqual([[], []])
  await scene.time.advance(MINUTE)
  expect(warned).toContain('Restate could not be notified')
  isUnknown = false
  await scene.time.advance(5 * MINUTE)
  expect(woken.map(({ sync }) => sync)).toContain('hourly')
})
