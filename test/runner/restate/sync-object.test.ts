import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { SyncError, type Page, type SyncContext } from '../../../src/contract/index.ts'
import { seededRandom } from '../../../src/testing/store-cases/harness.ts'
import { declare, HOUR, MINUTE, recordRequestTimes, oneRow, ref, RunnerFixture, SECOND } from '../runner-fixture.ts'
import { FakeRestate } from './fake-restate.ts'

let scene: RunnerFixture
let restate: FakeRestate
beforeEach(async () => {
  scene = await RunnerFixture.open('2026-03-01T00:00:00Z')
  restate = new FakeRestate(scene)
})
afterEach(() => scene.close())

const at = (): number => scene.time.now()
const runs = (): number => restate.calls.filter(({ method }) => method === 'run').length

describe('a schedule is a timer of the object', () => {
  test.each([1, 2, 3])(
    'XB18 every slot of a day runs once and on time, despite wake-ups, crashes and late cancellations (seed %i)',
    async (seed) => {
      const random = seededRandom(seed)
      restate.losesCancels = true
      const syncs = declare({
        tens: { schedule: { cron: '*/10 * * * *' }, execute: recordRequestTimes([], at(), 30 * SECOND) },
      })
      restate.serve(syncs)
      await restate.call('tens', 'wake', { at: at() })
      const end = at() + 24 * HOUR
      while (at() < end) {
        await scene.time.advance(Math.round(random() * 5 * MINUTE))
        const dice = random()
        if (dice < 0.3) void restate.call('tens', 'wake', { at: at() - Math.round(random() * HOUR) })
        else if (dice < 0.5) restate.crash('tens')
        else if (dice < 0.55) restate.serve(syncs)
      }
      const starts = (await scene.store.cycles(ref('tens'), { limit: 1_000 }))
        .map(({ startedAt }) => startedAt)
        .toReversed()
      const slots = starts.map((start) => Math.floor(start / (10 * MINUTE)))
      expect(slots).toEqual(slots.map((_, index) => slots[0]! + index))
      expect(slots.length).toBeGreaterThanOrEqual(144)
      expect(Math.max(...starts.map((start) => start % (10 * MINUTE)))).toBeLessThan(5 * SECOND)
      // One of the timers that were set is left.
      await scene.time.advance(10 * MINUTE)
      expect(restate.pending('tens').length).toBe(1)
    },
  )

  test('XB18 a slot during an outage is made up for, also by a sync that never ran before', async () => {
    const asked: number[] = []
    const start = at()
    const syncs = declare({ daily: { schedule: { cron: '0 6 * * *' }, execute: recordRequestTimes(asked, start) } })
    const first = restate.serve(syncs)
    await restate.call('daily', 'wake', { at: start + 6 * HOUR })
    await scene.time.advance(6 * HOUR - MINUTE)
    first.die()
    await scene.time.advance(2 * MINUTE)
    restate.serve(syncs)
    await scene.time.advance(MINUTE)
    expect(asked).toEqual([6 * 3_600 + 60])
  })

  test('one timer at a time: a later one is cancelled when an earlier one is set', async () => {
    restate.serve(declare({ yearly: { schedule: { cron: '0 0 1 1 *' }, execute: oneRow() } }))
    await restate.call('yearly', 'wake', { at: at() + 300 * 24 * HOUR })
    for (let times = 0; times < 3; times++) {
      await restate.call('yearly', 'trigger')
      await scene.time.advance(SECOND)
    }
    expect((await scene.store.readCheckpoint(ref('yearly'))).version).toBe(3)
    expect(restate.pending('yearly')).toMatchObject([{ method: 'run', at: Date.parse('2027-01-01T00:00:00Z') }])
  })

  test('a timer that could not be cancelled does nothing, and sets no other', async () => {
    restate.losesCancels = true
    restate.serve(declare({ hourly: { schedule: '1h', execute: oneRow() } }))
    await restate.call('hourly', 'wake', { at: at() })
    for (let times = 0; times < 5; times++) {
      await scene.time.advance(10 * MINUTE)
      await restate.call('hourly', 'trigger')
    }
    expect(restate.pending('hourly').length).toBeGreaterThan(4)
    await scene.time.advance(3 * HOUR)
    expect(restate.pending('hourly').length).toBe(1)
  })

  test('a wake with a known time does nothing; with an earlier one it starts a turn', async () => {
    restate.serve(declare({ hourly: { schedule: '1h', execute: oneRow() } }))
    await restate.call('hourly', 'wake', { at: at() })
    await scene.time.advance(SECOND)
    const before = runs()
    await restate.call('hourly', 'wake', { at: at() + HOUR })
    expect(runs()).toBe(before)
    await restate.call('hourly', 'wake', { at: at() })
    expect(runs()).toBe(before + 1)
  })

  test('several wake-ups during a turn start one more turn', async () => {
    restate.serve(declare({ slow: { schedule: 'manual', execute: recordRequestTimes([], at(), MINUTE) } }))
    await restate.call('slow', 'trigger')
    await scene.time.advance(SECOND)
    const before = runs()
    for (let times = 0; times < 10; times++) await restate.call('slow', 'wake', { at: at() })
    expect(runs()).toBe(before + 1)
    await scene.time.advance(2 * MINUTE)
    expect((await scene.store.readCheckpoint(ref('slow'))).version).toBe(1)
  })

  test('a sync removed from the worker file leaves no timer; declared again, it continues', async () => {
    const both = declare({ gone: { schedule: '1h', execute: oneRow() }, kept: { schedule: '1h', execute: oneRow() } })
    restate.serve(both)
    for (const sync of ['gone', 'kept']) await restate.call(sync, 'wake', { at: at() })
    await scene.time.advance(MINUTE)
    restate.serve(both.filter(({ plan }) => plan.sync === 'kept'))
    await scene.time.advance(2 * HOUR)
    expect([restate.pending('gone').length, restate.pending('kept').length]).toEqual([0, 1])
    await expect(restate.call('gone', 'trigger')).rejects.toThrow('has no sync')
    restate.serve(both)
    await restate.call('gone', 'wake', { at: at() })
    await scene.time.advance(MINUTE)
    expect((await scene.store.readCheckpoint(ref('gone'))).version).toBe(2)
    expect(restate.pending('gone').length).toBe(1)
  })

  test('a new schedule counts from the next poll', async () => {
    restate.serve(declare({ changing: { schedule: '1d', execute: oneRow() } }))
    await restate.call('changing', 'wake', { at: at() })
    await scene.time.advance(MINUTE)
    restate.serve(declare({ changing: { schedule: '1h', execute: oneRow() } }))
    await restate.call('changing', 'wake', { at: at() + HOUR - MINUTE })
    await scene.time.advance(HOUR)
    expect((await scene.store.readCheckpoint(ref('changing'))).version).toBe(2)
    restate.serve(declare({ changing: { schedule: 'manual', execute: oneRow() } }))
    await scene.time.advance(2 * HOUR)
    expect(restate.pending('changing')).toEqual([])
  })
})

describe('a cycle continues after any crash', () => {
  const pages =
    (asked: number[], ms = 10 * SECOND) =>
    async (state: { page: number } | undefined, { clock, signal }: SyncContext): Promise<Page> => {
      const page = (state?.page ?? 0) + 1
      asked.push(page)
      await clock.sleep(ms, signal)
      return {
        changes: [{ type: 'upsert', key: String(page), record: { page } }],
        hasMore: page < 6,
        nextState: { page },
      }
    }

  test('XA11 during a page: it is taken over at once, and no committed page is read again', async () => {
    const asked: number[] = []
    restate.serve(declare({ long: { schedule: 'manual', execute: pages(asked) } }))
    await restate.call('long', 'trigger')
    await scene.time.advance(25 * SECOND)
    restate.crash('long')
    await scene.time.advance(2 * MINUTE)
    expect(asked).toEqual([1, 2, 3, 3, 4, 5, 6])
    expect((await scene.store.cycles(ref('long'))).length).toBe(1)
    expect((await scene.store.readCheckpoint(ref('long'))).version).toBe(1)
  })

  test('an attempt that Restate gave up stops reading', async () => {
    const aborted: boolean[] = []
    restate.serve(
      declare({
        deaf: {
          schedule: 'manual',
          execute: async (_, { clock, signal }) => {
            const index = aborted.push(false) - 1
            signal.addEventListener('abort', () => (aborted[index] = true))
            await clock.sleep(MINUTE, signal)
            return { changes: [], hasMore: false }
          },
        },
      }),
    )
    await restate.call('deaf', 'trigger')
    await scene.time.advance(SECOND)
    restate.crash('deaf')
    await scene.time.advance(SECOND)
    expect(aborted).toEqual([true, false])
  })

  test('it runs in slices, reads each page once, and is one cycle', async () => {
    const asked: number[] = []
    restate.serve(declare({ long: { schedule: 'manual', execute: pages(asked) } }), { sliceMs: 15 * SECOND })
    await restate.call('long', 'trigger')
    await scene.time.advance(2 * MINUTE)
    expect(asked).toEqual([1, 2, 3, 4, 5, 6])
    expect(scene.ended('long').map(({ result }) => result.stopReason)).toEqual(['timeout', 'timeout', 'complete'])
    expect((await scene.store.cycles(ref('long'))).length).toBe(1)
  })

  test('a store outage of hours stops nothing permanently', async () => {
    restate.serve(declare({ hourly: { schedule: '1h', execute: oneRow() } }))
    await restate.call('hourly', 'wake', { at: at() })
    await scene.time.advance(MINUTE)
    const down = vi.spyOn(scene.store, 'listSyncStatus').mockRejectedValue(new SyncError('STORE_BUSY', 'down'))
    await scene.time.advance(5 * HOUR)
    const waits = scene.events.filter((event) => event.kind === 'store').map(({ waitMs }) => waitMs)
    expect(waits.slice(0, 7)).toEqual([1, 2, 4, 8, 16, 30, 30].map((seconds) => seconds * SECOND))
    down.mockRestore()
    await scene.time.advance(MINUTE)
    expect((await scene.store.readCheckpoint(ref('hourly'))).version).toBe(2)
  })
})

describe('a wait requested by the source occupies no process', () => {
  const limited = (asked: number[], from: number, until: number) => async (): Promise<Page> => {
    asked.push((at() - from) / SECOND)
    if (asked.length <= until) throw new SyncError('RATE_LIMITED', 'too many', { retryAfterMs: 30 * SECOND })
    return { changes: [], hasMore: false }
  }

  test('no lease is held meanwhile, and a wake-up does not shorten it', async () => {
    const asked: number[] = []
    restate.serve(declare({ limited: { schedule: 'manual', execute: limited(asked, at(), 1) } }))
    await restate.call('limited', 'trigger')
    await scene.time.advance(SECOND)
    expect(restate.pending('limited').map(({ isRunning }) => isRunning)).toEqual([false])
    expect((await scene.store.readCheckpoint(ref('limited'))).heldBy).toBe(null)
    await restate.call('limited', 'wake', { at: at() })
    await restate.call('limited', 'trigger')
    await scene.time.advance(28 * SECOND)
    expect(asked).toEqual([0])
    await scene.time.advance(2 * SECOND)
    expect(asked[1]).toBe(30)
  })

  test('it is not retried forever: attempts of a page are counted across its waits, then the cycle fails', async () => {
    const asked: number[] = []
    restate.serve(declare({ limited: { schedule: 'manual', execute: limited(asked, at(), Infinity) } }))
    await restate.call('limited', 'trigger')
    await scene.time.advance(160 * SECOND)
    expect(asked).toEqual([0, 30, 60, 90, 120, 150])
    expect(await scene.store.readCheckpoint(ref('limited'))).toMatchObject({
      failures: 1,
      lastError: { code: 'RATE_LIMITED' },
    })
    // The next cycle starts with no attempts.
    await scene.time.advance(MINUTE + 160 * SECOND)
    expect(asked.slice(6)).toEqual([210, 240, 270, 300, 330, 360])
  })

  test('a committed page resets the attempts', async () => {
    let calls = 0
    const execute = async (state: { page: number } | undefined): Promise<Page> => {
      const page = (state?.page ?? 0) + 1
      if (++calls % 4 !== 0) throw new SyncError('RATE_LIMITED', 'too many', { retryAfterMs: 30 * SECOND })
      return { changes: [], hasMore: page < 3, nextState: { page } }
    }
    restate.serve(declare({ limited: { schedule: 'manual', execute } }))
    await restate.call('limited', 'trigger')
    await scene.time.advance(HOUR)
    expect(await scene.store.readCheckpoint(ref('limited'))).toMatchObject({ failures: 0, version: 1 })
    expect(calls).toBe(12)
  })
})

describe('control through calls of the object', () => {
  test('F.2 pause, resume and trigger write to the registry, also while a cycle runs', async () => {
    restate.serve(declare({ slow: { schedule: 'manual', execute: recordRequestTimes([], at(), MINUTE) } }))
    await restate.call('slow', 'trigger')
    await scene.time.advance(SECOND)
    await restate.call('slow', 'pause')
    expect((await scene.store.readCheckpoint(ref('slow'))).paused).toBe(true)
    await scene.time.advance(2 * MINUTE)
    await restate.call('slow', 'trigger')
    await scene.time.advance(2 * MINUTE)
    expect((await scene.store.readCheckpoint(ref('slow'))).version).toBe(1)
    await restate.call('slow', 'resume')
    await scene.time.advance(2 * MINUTE)
    expect(await scene.store.readCheckpoint(ref('slow'))).toMatchObject({ version: 2, paused: false })
    expect((await scene.store.audit(ref('slow'), { limit: 10 })).map(({ actor }) => actor)).toContain('restate')
  })

  test('cancel ends the cycle without waiting for its page, keeps committed pages, and nothing continues until a resume', async () => {
    const asked: number[] = []
    const execute = async (state: { page: number } | undefined, { clock, signal }: SyncContext): Promise<Page> => {
      const page = (state?.page ?? 0) + 1
      asked.push(page)
      if (page === 3 && asked.length === 3) await clock.sleep(90 * SECOND, signal)
      return { changes: [{ type: 'upsert', key: String(page), record: {} }], hasMore: page < 4, nextState: { page } }
    }
    restate.serve(declare({ stuck: { schedule: '1h', execute } }))
    await restate.call('stuck', 'trigger')
    await scene.time.advance(10 * SECOND)
    await restate.call('stuck', 'cancel')
    await scene.time.advance(2 * SECOND)
    expect(await scene.store.readCheckpoint(ref('stuck'))).toMatchObject({
      heldBy: null,
      paused: true,
      failures: 0,
      inflight: { page: 2 },
    })
    await scene.time.advance(3 * HOUR)
    expect([asked, restate.pending('stuck')]).toEqual([[1, 2, 3], []])
    await restate.call('stuck', 'resume')
    await scene.time.advance(MINUTE)
    expect(asked.slice(0, 5)).toEqual([1, 2, 3, 3, 4])
    expect(restate.pending('stuck').length).toBe(1)
  })

  test('status returns the sync status and the time of the object’s timer', async () => {
    restate.serve(declare({ hourly: { schedule: '1h', execute: oneRow() } }))
    const start = at()
    await restate.call('hourly', 'wake', { at: start })
    await scene.time.advance(MINUTE)
    expect(await restate.call('hourly', 'status')).toMatchObject({
      sync: 'hourly',
      health: 'HEALTHY',
      timer: start + HOUR,
      due: { kind: 'at', at: start + HOUR },
    })
  })
})
