import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SyncError, type Listener, type Page, type Store, type SyncContext } from '../../src/contract/index.ts'
import { readStatus } from '../../src/runner/status.ts'
import {
  declare,
  HOUR,
  MINUTE,
  emptyPage,
  recordRequestTimes,
  oneRow,
  ref,
  RunnerFixture,
  SECOND,
} from './runner-fixture.ts'

let scene: RunnerFixture
let start: number
let asked: number[]

beforeEach(async () => {
  scene = await RunnerFixture.open('2026-03-01T00:00:30Z')
  start = scene.time.now()
  asked = []
})
afterEach(() => scene.close())

describe('schedules', () => {
  test('N17: a manual sync runs only when triggered, once per trigger', async () => {
    await scene.runner(declare({ backfill: { schedule: 'manual', execute: recordRequestTimes(asked, start) } })).start()
    await scene.time.advance(6 * HOUR)
    expect(asked).toEqual([])
    await scene.trigger('backfill')
    await scene.time.advance(HOUR)
    expect(asked).toHaveLength(1)
    expect(await scene.store.cycles(ref('backfill'))).toMatchObject([{ trigger: 'trigger', stopReason: 'complete' }])
  })

  test('a trigger while the sync runs stays pending and starts one more cycle', async () => {
    await scene
      .runner(declare({ backfill: { schedule: 'manual', execute: recordRequestTimes(asked, start, MINUTE) } }))
      .start()
    await scene.trigger('backfill')
    await scene.time.until(() => asked.length === 1)
    for (let i = 0; i < 3; i++) {
      await scene.trigger('backfill')
      await scene.time.advance(SECOND)
    }
    await scene.time.advance(HOUR)
    expect(asked).toHaveLength(2)
    expect(asked[1]! - asked[0]!).toBeGreaterThanOrEqual(60)
  })

  test('N18: cron slots are met to the second, each once', async () => {
    await scene
      .runner(declare({ delta: { schedule: { cron: '*/5 * * * *' }, execute: recordRequestTimes(asked, start) } }))
      .start()
    await scene.time.advance(16 * MINUTE)
    expect(asked).toEqual([270, 570, 870])
  })

  test('an interval runs at once and then from start to start, however long a cycle takes', async () => {
    await scene
      .runner(declare({ delta: { schedule: '5m', execute: recordRequestTimes(asked, start, MINUTE) } }))
      .start()
    await scene.time.advance(11 * MINUTE)
    expect(asked).toEqual([0, 300, 600])
  })

  test('XB18: slots missed during sleep are made up for once', async () => {
    await scene
      .runner(
        declare({
          delta: { schedule: '5m', execute: recordRequestTimes(asked, start) },
          hourly: { schedule: { cron: '0 * * * *' }, execute: emptyPage },
        }),
      )
      .start()
    await scene.time.advance(HOUR)
    const before = asked.length
    scene.time.step(24 * HOUR)
    await scene.time.advance(4 * MINUTE)
    expect(asked).toHaveLength(before + 1)
    expect(scene.ended('hourly')).toHaveLength(2)
  })

  test('XB18: setting the clock back a day stops nothing', async () => {
    await scene.runner(declare({ delta: { schedule: '5m', execute: recordRequestTimes(asked, start) } })).start()
    await scene.time.advance(12 * MINUTE)
    expect(asked).toHaveLength(3)
    scene.time.step(-24 * HOUR)
    await scene.time.advance(12 * MINUTE)
    expect(asked).toHaveLength(5)
  })

  test('XB18: after a restart the schedule continues', async () => {
    const syncs = declare({ delta: { schedule: '10m', execute: recordRequestTimes(asked, start) } })
    const first = scene.runner(syncs)
    await first.start()
    await scene.time.advance(MINUTE)
    await first.stop()
    await scene.time.advance(MINUTE)
    await scene.runner(syncs).start()
    await scene.time.advance(10 * MINUTE)
    expect(asked).toEqual([0, 600])
  })

  test('F12: a continuous sync runs again one pause after its end, and pauses longer without changes', async () => {
    await scene
      .runner(
        declare({
          busy: { schedule: 'continuous', execute: oneRow() },
          calm: { schedule: 'continuous', execute: recordRequestTimes(asked, start) },
        }),
      )
      .start()
    await scene.time.advance(20 * SECOND)
    expect(scene.ended('busy').length).toBeGreaterThanOrEqual(19)
    expect(asked.map(Math.round)).toEqual([0, 2, 6, 14])
  })
})

describe('parents', () => {
  test('children run in the order of their parents, once for each completion', async () => {
    const order: string[] = []
    const record = (sync: string) => async (): Promise<Page> => {
      order.push(sync)
      return { changes: [], hasMore: false }
    }
    const runner = scene.runner(
      declare({
        grandchild: { after: ['child'], execute: record('grandchild') },
        child: { after: ['one', 'two'], execute: record('child') },
        one: { schedule: '5m', execute: record('one') },
        two: { schedule: '10m', execute: record('two') },
      }),
      { concurrency: 1 },
    )
    await runner.start()
    expect(runner.status().syncs.find(({ sync }) => sync === 'child')?.due).toEqual({
      kind: 'never',
      why: 'after',
      waitingFor: ['one', 'two'],
    })
    await scene.time.advance(4 * MINUTE)
    expect(order.toSorted()).toEqual(['child', 'grandchild', 'one', 'two'])
    expect(order.slice(2)).toEqual(['child', 'grandchild'])
    await scene.time.advance(5 * MINUTE)
    expect(order.slice(4)).toEqual(['one'])
    await scene.time.advance(5 * MINUTE)
    expect(order.slice(5).toSorted()).toEqual(['child', 'grandchild', 'one', 'two'])
    expect(order.slice(7)).toEqual(['child', 'grandchild'])
  })

  test('a failed parent holds its children back until it completes', async () => {
    let isBroken = true
    const parent = async (): Promise<Page> => {
      if (isBroken) throw new SyncError('AUTH_REJECTED', 'no')
      return { changes: [], hasMore: false }
    }
    await scene
      .runner(
        declare({
          child: { after: ['parent'], execute: recordRequestTimes(asked, start) },
          parent: { execute: parent },
        }),
      )
      .start()
    await scene.time.advance(HOUR)
    expect(asked).toEqual([])
    isBroken = false
    await scene.trigger('parent')
    await scene.time.advance(MINUTE)
    expect(asked).toHaveLength(1)
  })

  test('the status of the store alone shows what a sync waits for', async () => {
    const syncs = declare({ child: { after: ['parent'] }, parent: {} })
    const [child] = await readStatus({ store: scene.store, syncs, now: start })
    expect(child?.due).toEqual({ kind: 'never', why: 'after', waitingFor: ['parent'] })
  })
})

describe('unfinished and failed cycles', () => {
  test('a cycle that used up its page budget continues at once, and others run in between', async () => {
    let page = 0
    const endless = async (_: unknown, { clock }: SyncContext): Promise<Page> => {
      await clock.sleep(SECOND)
      return { changes: [], hasMore: ++page < 9, nextState: { page } }
    }
    await scene
      .runner(
        declare({
          long: { schedule: '1d', execute: endless, limits: { pagesMax: 3 } },
          other: { schedule: '1d', execute: recordRequestTimes(asked, start) },
        }),
        { concurrency: 1 },
      )
      .start()
    await scene.time.advance(MINUTE)
    expect(scene.ended('long').map(({ result }) => [result.stopReason, result.resumed])).toEqual([
      ['max_pages', false],
      ['max_pages', true],
      ['complete', true],
    ])
    expect(scene.events.findIndex((event) => event.kind === 'ended' && event.sync === 'other')).toBeLessThan(
      scene.events.findLastIndex((event) => event.kind === 'ended' && event.sync === 'long'),
    )
  })

  test('SX6: failures back off for 1, 5, 30, 120 minutes, counted from the failure; success resets', async () => {
    let healthy = false
    const execute = async (state: unknown, context: SyncContext): Promise<Page> => {
      await recordRequestTimes(asked, start)(state, context)
      if (!healthy) throw new SyncError('CONNECTOR_FAILED', 'not today')
      return { changes: [], hasMore: false }
    }
    const runner = scene.runner(declare({ delta: { schedule: '1m', execute } }))
    await runner.start()
    await scene.time.advance(6 * HOUR)
    const minutes = asked.map((s) => Math.round(s / 60))
    expect(minutes.slice(0, 6)).toEqual([0, 1, 6, 36, 156, 276])
    expect(runner.status().syncs).toMatchObject([{ sync: 'delta', health: 'ERROR', failures: 6 }])
    healthy = true
    await scene.time.advance(2 * HOUR)
    expect(runner.status().syncs).toMatchObject([{ health: 'HEALTHY', failures: 0 }])
    const recovered = asked.length
    await scene.time.advance(10 * MINUTE)
    expect(asked.length - recovered).toBe(10)
  })

  test('F11: refused credentials stop the schedule; a resume or a trigger restarts it', async () => {
    let refused = true
    const execute = async (state: unknown, context: SyncContext): Promise<Page> => {
      await recordRequestTimes(asked, start)(state, context)
      if (refused) throw new SyncError('AUTH_REJECTED', '401')
      return { changes: [], hasMore: false }
    }
    const runner = scene.runner(declare({ delta: { schedule: '5m', execute } }))
    await runner.start()
    await scene.time.advance(6 * HOUR)
    expect(asked).toHaveLength(1)
    expect(runner.status().syncs).toMatchObject([{ health: 'ERROR', due: { kind: 'never', why: 'stopped' } }])
    await scene.trigger('delta')
    await scene.time.advance(HOUR)
    expect(asked).toHaveLength(2)
    refused = false
    await scene.resume('delta')
    await scene.time.advance(11 * MINUTE)
    expect(asked.length).toBeGreaterThanOrEqual(4)
    expect(runner.status().syncs).toMatchObject([{ health: 'HEALTHY' }])
  })

  test('a blocked sweep is retried on schedule, with health ERROR', async () => {
    let rows = 10
    const execute = async (): Promise<Page> => ({
      changes: Array.from({ length: rows }, (_, i) => ({ type: 'upsert', key: `k${i}`, record: { i } })),
      hasMore: false,
    })
    const runner = scene.runner(declare({ all: { mode: 'replace', schedule: '30m', execute } }))
    await runner.start()
    await scene.time.advance(MINUTE)
    rows = 1
    await scene.time.advance(40 * MINUTE)
    expect(runner.status().syncs).toMatchObject([
      { health: 'ERROR', lastError: { code: 'MASS_DELETE' }, due: { kind: 'at', why: 'retry' } },
    ])
    rows = 9
    await scene.time.advance(30 * MINUTE)
    expect(runner.status().syncs).toMatchObject([{ health: 'HEALTHY' }])
  })

  test('F.2: a pause lets the current page commit, and a resume continues after it', async () => {
    const pages: number[] = []
    const execute = async (state: { page: number } | undefined, { clock, signal }: SyncContext): Promise<Page> => {
      const page = (state?.page ?? 0) + 1
      pages.push(page)
      await clock.sleep(10 * SECOND, signal)
      return {
        changes: [{ type: 'upsert', key: String(page), record: { page } }],
        hasMore: page < 6,
        nextState: { page },
      }
    }
    const runner = scene.runner(declare({ delta: { schedule: '1d', execute } }))
    await runner.start()
    await scene.time.advance(15 * SECOND)
    await scene.pause('delta')
    await scene.time.advance(3 * HOUR)
    expect(scene.ended('delta').at(-1)!.result.stopReason).toBe('paused')
    expect(runner.status().syncs).toMatchObject([
      { health: 'PAUSED', due: { kind: 'never', why: 'paused' }, unfinished: { page: 2 } },
    ])
    await scene.resume('delta')
    await scene.time.advance(2 * MINUTE)
    expect((await scene.store.rows({ database: 'rows', limit: 10 })).map(({ key }) => key)).toEqual([
      '1',
      '2',
      '3',
      '4',
      '5',
      '6',
    ])
    expect(scene.ended('delta').at(-1)!.result).toMatchObject({ stopReason: 'complete', resumed: true })
  })

  test('a connector that throws fails only its own cycle', async () => {
    const bad = (): never => {
      throw new TypeError('undefined is not a function')
    }
    await scene
      .runner(
        declare({
          bad: { schedule: '1m', execute: bad },
          good: { schedule: '1m', execute: recordRequestTimes(asked, start) },
        }),
      )
      .start()
    await scene.time.advance(10 * MINUTE)
    expect(asked).toHaveLength(11)
    expect(scene.ended('bad')[0]!.result.error).toMatchObject({ code: 'CONNECTOR_FAILED' })
  })
})

describe('the store', () => {
  test('that is unreachable is retried with growing delays, then everything continues', async () => {
    let down = true
    let calls = 0
    const store = intercept(scene.store, (name) => {
      if (name !== 'listSyncStatus') return
      calls++
      if (down) throw new SyncError('STORE_UNAVAILABLE', 'connection refused')
    })
    await scene
      .runner(declare({ delta: { schedule: '5m', execute: recordRequestTimes(asked, start) } }), { store })
      .start()
    await scene.time.advance(10 * MINUTE)
    expect(asked).toEqual([])
    expect(calls).toBeLessThan(30)
    expect(scene.events).toContainEqual({
      kind: 'store',
      code: 'STORE_UNAVAILABLE',
      message: 'connection refused',
      waitMs: 30 * SECOND,
    })
    down = false
    await scene.time.advance(MINUTE)
    expect(asked).toHaveLength(1)
  })

  test('that fails to grant a lease is retried later, and no cycle counts as failed', async () => {
    let down = true
    let tries = 0
    const store = intercept(scene.store, (name) => {
      if (name !== 'acquire') return
      tries++
      if (down) throw new SyncError('STORE_UNAVAILABLE', 'connection refused')
    })
    await scene
      .runner(declare({ delta: { schedule: '5m', execute: recordRequestTimes(asked, start) } }), { store })
      .start()
    await scene.time.advance(2 * MINUTE)
    expect(tries).toBeLessThan(12)
    down = false
    await scene.time.advance(MINUTE)
    expect(asked).toHaveLength(1)
    expect(await scene.store.readCheckpoint(ref('delta'))).toMatchObject({ failures: 0 })
  })

  test('gets one query per second for all syncs of a tenant, and for a bounded number of tenants', async () => {
    const calls: string[] = []
    const store = intercept(scene.store, (name) => void calls.push(name))
    const syncs = declare(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`s${i}`, { schedule: 'manual' }])))
    const runner = scene.runner(syncs, { store, tenants: ['default', 'second', 'third'], pollBatchMax: 2 })
    await runner.start()
    await scene.time.advance(MINUTE)
    expect(runner.status().syncs).toHaveLength(300)
    calls.length = 0
    await scene.time.advance(MINUTE)
    // Two in one round, and the third in the next.
    expect(calls.length).toBeLessThanOrEqual(91)
    expect(new Set(calls)).toEqual(new Set(['listSyncStatus']))
    await scene.trigger('s77')
    await scene.time.advance(3 * SECOND)
    expect(scene.ended('s77')).toHaveLength(1)
  })
})

test('a store with notifications is polled less often, at once when notified, and as often as before when disconnected', async () => {
  let ear: Listener | null = null
  let calls = 0
  const counted = intercept(scene.store, (name) => void (calls += name === 'listSyncStatus' ? 1 : 0))
  const store = new Proxy(counted, {
    get: (target, name) =>
      name === 'subscribe'
        ? (given: Listener) => ((ear = given), { addTenant: () => {}, close: async () => {} })
        : (Reflect.get(target, name) as unknown),
  })
  const callsIn = async (ms: number): Promise<number> => {
    calls = 0
    await scene.time.advance(ms)
    return calls
  }
  await scene
    .runner(declare({ backfill: { schedule: 'manual', execute: recordRequestTimes(asked, start) } }), { store })
    .start()
  ear!.onConnected(true)
  await scene.time.advance(10 * SECOND)
  expect(await callsIn(MINUTE)).toBeLessThanOrEqual(7)
  await scene.trigger('backfill')
  ear!.onChange('default')
  await scene.time.advance(100)
  expect(asked).toHaveLength(1)
  await scene.time.advance(2 * SECOND)
  ear!.onConnected(false)
  expect(await callsIn(20 * SECOND)).toBeGreaterThanOrEqual(18)
})

test('a listener that throws does not affect cycles', async () => {
  const runner = scene.runner(declare({ delta: { schedule: '5m', execute: oneRow() } }), {
    onEvent: () => {
      throw new Error('full disk')
    },
  })
  await runner.start()
  await scene.time.advance(6 * MINUTE)
  expect(await scene.store.readCheckpoint(ref('delta'))).toMatchObject({ version: 2, failures: 0 })
})

test('events report a cycle in order', async () => {
  await scene.runner(declare({ delta: { schedule: '5m', execute: oneRow() } })).start()
  await scene.time.advance(MINUTE)
  expect(scene.events).toMatchObject([
    { kind: 'started', tenant: 'default', worker: 'shop', sync: 'delta', why: 'schedule', resumed: false, page: 0 },
    { kind: 'landed', sync: 'delta', page: 1, counts: { created: 1 } },
    { kind: 'ended', sync: 'delta', result: { stopReason: 'complete' } },
  ])
})

test('status is the same from the store alone as from the runner, and never contains the state', async () => {
  const syncs = declare({
    delta: {
      schedule: '5m',
      execute: async () => ({ changes: [], hasMore: false, nextState: { token: 'secret-position' } }),
    },
    backfill: { schedule: 'manual', mode: 'replace' },
  })
  const runner = scene.runner(syncs)
  await runner.start()
  await scene.time.advance(MINUTE)
  const read = await readStatus({ store: scene.store, syncs, now: scene.time.now() })
  expect(runner.status()).toMatchObject({ state: 'running', running: [], waiting: 0, syncs: read })
  expect(read).toMatchObject([
    {
      sync: 'delta',
      health: 'HEALTHY',
      version: 1,
      due: { kind: 'at', at: start + 5 * MINUTE, why: 'schedule' },
      lastCycle: { stopReason: 'complete' },
    },
    { sync: 'backfill', health: 'INITIALIZING', due: { kind: 'never', why: 'manual' }, lastCycle: null },
  ])
  expect(JSON.stringify(read)).not.toContain('secret-position')
})

/** Wraps the store and calls `before` with the name of each method. */
function intercept(store: Store, before: (name: string) => void): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (name === 'forTenant') return (tenant: string) => intercept(target.forTenant(tenant), before)
      if (typeof member !== 'function' || name === 'subscribe') return member
      return async (...args: unknown[]) => {
        before(String(name))
        return await (member as (...args: unknown[]) => unknown).apply(target, args)
      }
    },
  })
}
