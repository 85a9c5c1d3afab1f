import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Page, SyncContext } from '../../src/contract/index.ts'
import { declare, HOUR, MINUTE, recordRequestTimes, ref, RunnerFixture, SECOND } from './runner-fixture.ts'

let scene: RunnerFixture
beforeEach(async () => {
  scene = await RunnerFixture.open()
})
afterEach(() => scene.close())

/** A page every ten seconds, without end. */
async function endless(state: { page: number } | undefined, { clock, signal }: SyncContext): Promise<Page> {
  const page = (state?.page ?? 0) + 1
  await clock.sleep(10 * SECOND, signal)
  return { changes: [{ type: 'upsert', key: String(page), record: { page } }], hasMore: true, nextState: { page } }
}

/** Ignores the signal, and is slow. */
async function deaf(_: unknown, { clock }: SyncContext): Promise<Page> {
  await clock.sleep(HOUR)
  return { changes: [], hasMore: false }
}

describe('a graceful stop', () => {
  test('XA10: ends running cycles between pages, keeps committed pages, releases the leases and starts nothing', async () => {
    const asked: number[] = []
    const runner = scene.runner(
      declare({
        long: { schedule: '1h', execute: endless },
        short: { schedule: '1m', execute: recordRequestTimes(asked, 0) },
      }),
    )
    await runner.start()
    await scene.time.advance(25 * SECOND)
    await runner.stop()
    expect(runner.status()).toMatchObject({ state: 'stopped', running: [] })
    expect(scene.ended('long').map(({ result }) => [result.stopReason, result.pages, result.error])).toEqual([
      ['cancelled', 2, null],
    ])
    expect(await scene.store.readCheckpoint(ref('long'))).toMatchObject({
      heldBy: null,
      failures: 0,
      inflight: { page: 2 },
    })
    const before = asked.length
    await scene.time.advance(HOUR)
    expect(asked).toHaveLength(before)
  })

  test('XA10: the next process continues where the stopped one ended', async () => {
    const syncs = declare({ long: { schedule: '1d', execute: endless } })
    const first = scene.runner(syncs)
    await first.start()
    await scene.time.advance(25 * SECOND)
    await first.stop()
    await scene.runner(syncs).start()
    await scene.time.advance(11 * SECOND)
    expect(scene.events.filter((event) => event.kind === 'started')).toMatchObject([
      { resumed: false, why: 'schedule' },
      { resumed: true, page: 2, why: 'unfinished' },
    ])
    expect((await scene.store.rows({ database: 'rows', limit: 9 })).map(({ key }) => key)).toEqual(['1', '2', '3'])
  })

  test('XA10: a source that ignores the signal is abandoned at once; the engine does not wait for it', async () => {
    const runner = scene.runner(declare({ slow: { schedule: '1h', execute: deaf } }))
    await runner.start()
    await scene.time.advance(SECOND)
    await runner.stop({ graceMs: 5 * SECOND })
    expect(await scene.store.readCheckpoint(ref('slow'))).toMatchObject({ heldBy: null })
  })

  test('XA10: an unresponsive store costs the grace period and no more', async () => {
    const hanging = { ...scene.store, release: () => new Promise<void>(() => {}) }
    const runner = scene.runner(declare({ long: { schedule: '1h', execute: endless } }), { store: hanging })
    await runner.start()
    await scene.time.advance(SECOND)
    let stopped = false
    const stopping = runner.stop({ graceMs: 5 * SECOND }).then(() => (stopped = true))
    await scene.time.advance(4 * SECOND)
    expect(stopped).toBe(false)
    await scene.time.advance(SECOND)
    await stopping
    expect(runner.status()).toMatchObject({ state: 'stopping', running: [{ sync: 'long', why: 'schedule' }] })
  })

  test('XA10: a second stop may have a shorter grace period', async () => {
    const hanging = { ...scene.store, release: () => new Promise<void>(() => {}) }
    const runner = scene.runner(declare({ long: { schedule: '1h', execute: endless } }), { store: hanging })
    await runner.start()
    await scene.time.advance(SECOND)
    void runner.stop({ graceMs: HOUR })
    const urgent = runner.stop({ graceMs: 0 })
    await scene.time.advance(1)
    await urgent
  })

  test('before the start, twice, or without a start, works', async () => {
    const never = scene.runner(declare({ delta: {} }))
    await never.stop()
    expect(never.status().state).toBe('stopped')
    const runner = scene.runner(declare({ delta: { schedule: 'manual' } }))
    await Promise.all([runner.start(), runner.stop()])
    await runner.stop()
    expect(runner.status().state).toBe('stopped')
  })

  test('leaves no listener behind', async () => {
    const before = process.listenerCount('unhandledRejection')
    const runner = scene.runner(declare({ delta: { schedule: '5m' } }))
    await runner.start()
    expect(process.listenerCount('unhandledRejection')).toBe(before + 1)
    await scene.time.advance(MINUTE)
    await runner.stop()
    expect(process.listenerCount('unhandledRejection')).toBe(before)
  })
})

test('holder names differ for every cycle', async () => {
  const holders = new Set<string>()
  const store = {
    ...scene.store,
    acquire: (...[sync, request]: Parameters<typeof scene.store.acquire>) => (
      holders.add(request.holder),
      scene.store.acquire(sync, request)
    ),
  }
  await scene.runner(declare({ a: { schedule: '1m' }, b: { schedule: '1m' } }), { store, holder: 'host:1:abc' }).start()
  await scene.time.advance(2 * MINUTE)
  expect([...holders]).toEqual([
    'host:1:abc#1',
    'host:1:abc#2',
    'host:1:abc#3',
    'host:1:abc#4',
    'host:1:abc#5',
    'host:1:abc#6',
  ])
})
