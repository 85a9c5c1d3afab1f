import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SyncError, type Page, type SyncContext } from '../../../src/contract/index.ts'
import { ConcurrencySlots } from '../../../src/runner/restate/concurrency-slots.ts'
import type { TurnMemory, TurnResult } from '../../../src/runner/restate/turn-runner.ts'
import { declare, MINUTE, recordRequestTimes, ref, RunnerFixture, SECOND } from '../runner-fixture.ts'
import { FakeProcess } from './fake-restate.ts'

let scene: RunnerFixture
beforeEach(async () => {
  scene = await RunnerFixture.open()
})
afterEach(() => scene.close())

const AT_FIRST = { since: null, tries: 0, storeFailures: 0 }
const FOR_EVER = new AbortController().signal

function take(process: FakeProcess, sync: string, carried: TurnMemory = AT_FIRST): Promise<TurnResult> {
  return process.turns.runTurn(
    [...process.jobs.values()].find(({ ref: name }) => name.sync === sync)!,
    carried,
    FOR_EVER,
  )
}

describe('the lease holder', () => {
  test('XB1 another runner’s lease is respected, and checked again soon', async () => {
    const asked: number[] = []
    const process = new FakeProcess(
      scene,
      declare({ held: { schedule: '1h', execute: recordRequestTimes(asked, 0) } }),
      {},
    )
    await scene.store.acquire(ref('held'), { holder: 'elsewhere:7:ab#1', ttlMs: 10 * MINUTE, at: scene.time.now() })
    expect((await take(process, 'held')).next).toMatchObject({ inMs: 30 * SECOND, isThrottled: false })
    expect(asked).toEqual([])
  })

  test('XB1 a lease taken after the poll is reported with its holder and end', async () => {
    const process = new FakeProcess(
      scene,
      declare({ taken: { schedule: '1h', execute: recordRequestTimes([], 0) } }),
      {},
    )
    const { acquire } = scene.store
    const until = scene.time.now() + 10 * MINUTE
    scene.store.acquire = async (name, request) => {
      await acquire(name, { holder: 'elsewhere:7:ab#1', ttlMs: 10 * MINUTE, at: scene.time.now() })
      return acquire(name, request)
    }
    await take(process, 'taken')
    expect(scene.events).toEqual([
      { kind: 'held', tenant: 'default', worker: 'shop', sync: 'taken', by: 'elsewhere:7:ab#1', until },
    ])
  })

  test('XB1 so is a backfill that briefly takes its delta’s lease', async () => {
    const asked: number[] = []
    const process = new FakeProcess(
      scene,
      declare({ items: { schedule: '1h', execute: recordRequestTimes(asked, 0) } }),
      {},
    )
    await scene.store.acquire(ref('items'), {
      holder: 'restate/items-backfill:elsewhere:7:ab#1',
      ttlMs: 10 * MINUTE,
      at: scene.time.now(),
    })
    await take(process, 'items')
    expect(asked).toEqual([])
  })

  test('XB2 an earlier turn of the same object is taken over at once; its late commits are fenced off', async () => {
    const deaf =
      (row: string, ms: number) =>
      async (_: unknown, { clock }: SyncContext): Promise<Page> => {
        await clock.sleep(ms)
        return { changes: [{ type: 'upsert', key: row, record: {} }], hasMore: false, nextState: { row } }
      }
    const first = new FakeProcess(scene, declare({ one: { schedule: '1h', execute: deaf('old', 20 * SECOND) } }), {})
    const second = new FakeProcess(scene, declare({ one: { schedule: '1h', execute: deaf('new', 5 * SECOND) } }), {})
    const turns = [take(first, 'one')]
    await scene.time.advance(10 * SECOND)
    turns.push(take(second, 'one'))
    await scene.time.advance(MINUTE)
    await Promise.all(turns)
    expect((await scene.store.rows({ database: 'rows', limit: 10 })).map(({ key }) => key)).toEqual(['new'])
    expect(
      scene
        .ended('one')
        .map(({ result }) => result.stopReason)
        .toSorted(),
    ).toEqual(['complete', 'lease_lost'])
  })
})

describe('a cycle of many turns', () => {
  test('XC13 invariant 9: a source with a cursor loop is detected, however few pages a turn has', async () => {
    const circling = async (state: unknown, { clock, signal }: SyncContext): Promise<Page> => {
      const at = (state as number | undefined) ?? 0
      await clock.sleep(25 * SECOND, signal)
      return { changes: [{ type: 'upsert', key: `${at}`, record: {} }], hasMore: true, nextState: (at + 1) % 9 }
    }
    const process = new FakeProcess(scene, declare({ one: { schedule: '1h', execute: circling } }), {})
    for (let turn = 0; turn < 20 && !scene.ended('one').some(({ result }) => result.stopReason === 'error'); turn++) {
      const taken = take(process, 'one')
      await scene.time.advance(3 * MINUTE)
      await taken
    }
    const ends = scene.ended('one').map(({ result }) => result)
    expect(ends.at(-1)).toMatchObject({ error: { code: 'CURSOR_CYCLE' } })
    expect(ends.slice(0, -1).map(({ stopReason, pages }) => [stopReason, pages > 0 && pages < 9])).toEqual(
      ends.slice(1).map(() => ['timeout', true]),
    )
  })
})

describe('a wait requested by the source', () => {
  const refusing =
    (asked: number[], retryAfterMs: number) =>
    async (_: unknown, { clock }: SyncContext): Promise<Page> => {
      asked.push(clock.now())
      throw new SyncError('RATE_LIMITED', 'Not now.', { retryAfterMs })
    }

  test('ends the turn if it is long, and the rest of the wait is kept', async () => {
    const asked: number[] = []
    const process = new FakeProcess(
      scene,
      declare({ one: { schedule: '1h', execute: refusing(asked, 50 * SECOND) } }),
      {},
    )
    let turned: TurnResult | null = null
    void take(process, 'one').then((ended) => (turned = ended))
    await scene.time.advance(6 * SECOND)
    expect(turned).toMatchObject({ next: { isThrottled: true }, tries: 1 })
    expect(turned!.next!.inMs).toBeGreaterThan(43 * SECOND)
    expect(asked).toHaveLength(1)
  })

  test('attempts of one page are counted across the turns that its waits divide it into', async () => {
    const asked: number[] = []
    const process = new FakeProcess(
      scene,
      declare({ one: { schedule: '1h', execute: refusing(asked, 20 * SECOND) } }, { retriesMax: 3 }),
      {},
    )
    let carried: TurnMemory = AT_FIRST
    for (let turn = 0; turn < 12 && !scene.ended('one').some(({ result }) => result.stopReason === 'error'); turn++) {
      const taken = take(process, 'one', carried)
      await scene.time.advance(30 * SECOND)
      carried = await taken
    }
    expect(scene.ended('one').at(-1)!.result).toMatchObject({ stopReason: 'error', error: { code: 'RATE_LIMITED' } })
    expect(asked).toHaveLength(4)
  })
})

test('Z14 the object of an erased tenant commits nothing more until it is triggered', async () => {
  const asked: number[] = []
  const process = new FakeProcess(
    scene,
    declare({ one: { schedule: '1h', execute: recordRequestTimes(asked, 0) } }),
    {},
  )
  const first = await take(process, 'one')
  await scene.store.eraseTenant({ actor: 'ana', at: scene.time.now() })
  await scene.time.advance(90 * MINUTE)
  expect((await take(process, 'one', first)).storeFailures).toBe(1)
  expect([asked.length, await scene.store.syncs()]).toEqual([1, []])
  await scene.trigger('one')
  await take(process, 'one')
  expect(asked.length).toBe(2)
})

describe('the concurrency slots of a process', () => {
  const many = Object.fromEntries(Array.from({ length: 10 }, (_, index) => [`s${index}`, { schedule: '1h' }]))
  const counted = (ms: number) => {
    const counts = { now: 0, most: 0 }
    return {
      counts,
      execute: async (_: unknown, { clock, signal }: SyncContext): Promise<Page> => {
        counts.most = Math.max(counts.most, ++counts.now)
        await clock.sleep(ms, signal).finally(() => counts.now--)
        return { changes: [], hasMore: false }
      },
    }
  }

  test('a limited number of cycles run at once, and all get a slot in the end', async () => {
    const { counts, execute } = counted(SECOND)
    const syncs = declare(
      Object.fromEntries(Object.entries(many).map(([name, options]) => [name, { ...options, execute }])),
    )
    const process = new FakeProcess(scene, syncs, { concurrency: 3 })
    const turns = Promise.all(Object.keys(many).map((sync) => take(process, sync)))
    await scene.time.advance(10 * SECOND)
    expect((await turns).every(({ next }) => next!.inMs > 50 * MINUTE)).toBe(true)
    expect(counts.most).toBe(3)
  })

  test('a long wait for a slot ends the call and is retried', async () => {
    const { execute } = counted(MINUTE)
    const process = new FakeProcess(
      scene,
      declare({ first: { schedule: '1h', execute }, second: { schedule: '1h', execute } }),
      { concurrency: 1 },
    )
    const first = take(process, 'first')
    const second = take(process, 'second')
    await scene.time.advance(30 * SECOND)
    expect((await second).next).toMatchObject({ inMs: SECOND })
    await scene.time.advance(MINUTE)
    expect((await first).next!.inMs).toBeGreaterThan(50 * MINUTE)
  })

  test('XB19 a backlog from a day of downtime has no head start over a new trigger', async () => {
    const order: string[] = []
    const noted =
      (name: string) =>
      async (_: unknown, { clock }: SyncContext): Promise<Page> => {
        order.push(name)
        await clock.sleep(SECOND)
        return { changes: [], hasMore: false }
      }
    const process = new FakeProcess(
      scene,
      declare({
        first: { schedule: '1h', execute: noted('first') },
        behind: { schedule: { cron: '* * * * *' }, execute: noted('behind') },
        asked: { schedule: 'manual', execute: noted('asked') },
      }),
      { concurrency: 1 },
    )
    await scene.trigger('asked')
    const turns = [take(process, 'first')]
    await scene.time.advance(10)
    turns.push(
      take(process, 'behind', { ...AT_FIRST, since: scene.time.now() - 24 * 60 * MINUTE }),
      take(process, 'asked'),
    )
    await scene.time.advance(10 * SECOND)
    await Promise.all(turns)
    expect(order).toEqual(['first', 'asked', 'behind'])
  })

  test('XB19 tenants alternate, whichever came first', async () => {
    const places = new ConcurrencySlots(1, scene.time)
    const order: string[] = []
    const come = async (tenant: string): Promise<void> => {
      const waiting = { tenant, dueSince: 0, priority: 0, tieBreaker: 0 }
      expect(await places.acquire(waiting, MINUTE, FOR_EVER)).toBe(true)
      order.push(tenant)
      await scene.time.sleep(SECOND)
      places.release(waiting)
    }
    const all = Promise.all(['large', 'large', 'large', 'large', 'small', 'small'].map(come))
    await scene.time.drive(all)
    expect(order).toEqual(['large', 'small', 'large', 'small', 'large', 'large'])
  })

  test('a waiter that gives up takes no slot', async () => {
    const places = new ConcurrencySlots(1, scene.time)
    const [first, second, third] = ['a', 'b', 'c'].map((tenant) => ({
      tenant,
      dueSince: 0,
      priority: 0,
      tieBreaker: 0,
    }))
    await places.acquire(first!, SECOND, FOR_EVER)
    const giving = new AbortController()
    const late = places.acquire(second!, MINUTE, giving.signal)
    giving.abort(new Error('given up'))
    expect(await late).toBe(false)
    places.release(first!)
    expect(await places.acquire(third!, SECOND, FOR_EVER)).toBe(true)
  })

  test('XA10 on stop, running turns end between pages and waiting ones end; both are retried at once, and no new turn starts', async () => {
    const { execute } = counted(MINUTE)
    const process = new FakeProcess(
      scene,
      declare({ first: { schedule: '1h', execute }, second: { schedule: '1h', execute } }),
      { concurrency: 1 },
    )
    const turns = Promise.all([take(process, 'first'), take(process, 'second')])
    await scene.time.advance(SECOND)
    const stopped = process.turns.stop()
    expect((await turns).map(({ next }) => next!.inMs)).toEqual([0, 0])
    await stopped
    expect((await scene.store.readCheckpoint(ref('first'))).heldBy).toBe(null)
    await expect(take(process, 'first')).rejects.toThrow('the runner is stopping')
  })
})
