import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SyncError, type Change, type Execute } from '../../src/contract/index.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import type { EventFeedState } from '../../src/strategies/index.ts'
import { HOUR, MINUTE, EngineFixture, SECOND } from '../engine/engine-fixture.ts'
import { EventLog, feedOf, type LogEvent } from './event-log.ts'
import { runOn, setState, stateOn } from './run-strategy.ts'

let scene: EngineFixture
let log: EventLog

beforeEach(async () => {
  scene = await EngineFixture.open()
  log = new EventLog(scene.clock)
})
afterEach(() => scene.close())

const cycle = (execute: Execute<any>, choices: Parameters<typeof runOn>[2] = {}): Promise<CycleResult> =>
  runOn(scene, execute, choices)
const state = (): Promise<EventFeedState | null> => stateOn(scene)

/** A log with an old event in it, and a delta that has noted it. */
async function anchored(delta: Execute<any>): Promise<void> {
  log.change('first')
  await cycle(delta)
}

describe('the anchor', () => {
  test('N35 N36 a sync without state notes the newest event, lands nothing, and goes on from there', async () => {
    for (let index = 0; index < 5; index++) log.change(`old-${index}`)
    const delta = feedOf(log)
    expect(await cycle(delta)).toMatchObject({ stopReason: 'complete', pages: 1, counts: { created: 0 } })
    expect(await state()).toMatchObject({ cursor: 'evt_5' })
    log.change('new')
    await cycle(delta)
    expect(await scene.keys()).toEqual(['new'])
    expect(await state()).toMatchObject({ cursor: 'evt_6' })
  })

  test('D5 an empty log is a place too: everything that comes later is applied, from the first event on', async () => {
    const delta = feedOf(log)
    for (let round = 0; round < 2; round++) {
      expect(await cycle(delta)).toMatchObject({ stopReason: 'complete' })
      expect(await state()).toEqual({ cursor: null })
    }
    expect(log.calls).toBe(0)
    for (const key of ['a', 'b', 'c']) log.change(key)
    expect(await cycle(delta)).toMatchObject({ stopReason: 'complete', counts: { created: 3 } })
    expect(await state()).toMatchObject({ cursor: 'evt_3' })
    log.change('d')
    await cycle(delta)
    expect(await scene.keys()).toEqual(['a', 'b', 'c', 'd'])
  })

  test('D5 more first events than the source shows from its beginning are HISTORY_LOST, and none is passed over', async () => {
    const delta = feedOf(log, { limit: 2 })
    await cycle(delta)
    for (const key of ['a', 'b', 'c']) log.change(key)
    expect(await cycle(delta)).toMatchObject({ stopReason: 'error', error: { code: 'HISTORY_LOST' } })
    expect(await scene.keys()).toEqual([])
  })

  test('D5 a source that has no word for the beginning of its log is HISTORY_LOST too; one that is down is asked again', async () => {
    let refusal: Error = new SyncError('SOURCE_UNAVAILABLE', 'down')
    const delta = feedOf(log, {
      read: async () => {
        throw refusal
      },
    })
    await cycle(delta)
    log.change('a')
    expect(await cycle(delta)).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_UNAVAILABLE' } })
    refusal = new Error('400 ending_before is empty')
    expect(await cycle(delta)).toMatchObject({ stopReason: 'error', error: { code: 'HISTORY_LOST' } })
  })

  test('D5 as a control: a source that stores an empty id is refused from then on', async () => {
    const planted: Execute<{ cursor: string }> = async (given) => {
      if (given === undefined) return { changes: [], hasMore: false, nextState: { cursor: log.newest()?.id ?? '' } }
      return {
        changes: log
          .endingBefore(given.cursor, 100)
          .data.map(({ object }) => ({ type: 'upsert', key: object.id, record: { ...object } })),
        hasMore: false,
      }
    }
    await cycle(planted)
    log.change('a')
    for (let round = 0; round < 3; round++) expect(await cycle(planted)).toMatchObject({ stopReason: 'error' })
  })

  test('N78 N79 scenario 5: captured before the backfill, it finds the twenty objects that change meanwhile; the end of the backfill does not', async () => {
    const run = async (startFrom: 'before' | 'after'): Promise<boolean> => {
      scene = await EngineFixture.open()
      log = new EventLog(scene.clock)
      for (let index = 0; index < 100; index++) log.change(`c${String(index).padStart(3, '0')}`)
      scene.clock.step(MINUTE)
      const delta = feedOf(log)
      let anchor: EventFeedState | undefined
      const backfill: Execute<{ after: string }> = async (given, context) => {
        if (given === undefined && startFrom === 'before') anchor = await delta.anchor(context)
        const page = log
          .objects()
          .filter(({ id }) => given === undefined || id > given.after)
          .slice(0, 20)
        scene.clock.step(HOUR)
        for (let index = 0; index < 4; index++) log.change(`c0${index}${index}`)
        if (page.length < 20 && startFrom === 'after') anchor = await delta.anchor(context)
        return {
          changes: page.map((object) => ({ type: 'upsert', key: object.id, record: { ...object } })),
          hasMore: page.length === 20,
          nextState: { after: page.at(-1)?.id ?? '' },
        }
      }
      await cycle(backfill, { sync: 'backfill', mode: 'replace' })
      await setState(scene, anchor)
      await cycle(delta)
      return (
        JSON.stringify(await scene.rows()) ===
        JSON.stringify(Object.fromEntries(log.objects().map((object) => [object.id, object])))
      )
    }
    expect(await run('before')).toBe(true)
    expect(await run('after')).toBe(false)
  })

  test('XC34 an anchor is taken only when no earlier event can still appear, so that a backfill after it lists the changes of those events', async () => {
    log.change('young')
    const young = await cycle(feedOf(log), { afterMs: SECOND })
    expect(young.endedAt - young.startedAt).toBeGreaterThan(8 * SECOND)
    const old = await cycle(feedOf(log), { sync: 'other', afterMs: MINUTE })
    expect(old.endedAt - old.startedAt).toBe(0)
  })
})

describe('pages of events', () => {
  test('N37 N44 D3 T4 scenario 4: 250 events come in three calls, each once', async () => {
    const delta = feedOf(log)
    await anchored(delta)
    for (let index = 0; index < 250; index++) log.change(`o${index}`)
    expect(await cycle(delta)).toMatchObject({
      stopReason: 'complete',
      pages: 3,
      counts: { created: 250, unchanged: 0 },
    })
    expect(log.calls).toBe(3)
    expect(await state()).toMatchObject({ cursor: 'evt_251' })
  })

  /** A page taken as it comes: applied from its top, and left by its bottom. */
  const asItComes =
    (stamps: boolean): Execute<{ cursor: string }> =>
    async (given) => {
      if (given === undefined) return { changes: [], hasMore: false, nextState: { cursor: log.newest()!.id } }
      const { data, has_more } = log.endingBefore(given.cursor, 100)
      const changes = data.map(({ object, created, type }): Change => {
        const time = stamps ? { upstreamUpdatedAt: new Date(created * 1_000).toISOString() } : {}
        return type === 'deleted'
          ? { type: 'delete', key: object.id, ...time }
          : { type: 'upsert', key: object.id, record: { ...object }, ...time }
      })
      return { changes, hasMore: has_more, nextState: { cursor: data.at(-1)?.id ?? given.cursor } }
    }

  test('D3 T4 as a control: leaving a page by its last event creeps along, and twenty calls do not reach the end', async () => {
    const delta = asItComes(false)
    await anchored(delta)
    for (let index = 0; index < 250; index++) log.change(`o${index}`)
    expect(await cycle(delta, { pagesMax: 20 })).toMatchObject({ stopReason: 'max_pages' })
    expect((await scene.keys()).length).toBeLessThan(130)
  })

  test.each([
    ['without times', false],
    ["with the event's second as time", true],
  ])('D4 T4 as a control: applied from the top %s, objects end stale; ours end as they are', async (_, stamps) => {
    const happen = (): void => {
      for (let round = 0; round < 5; round++) for (let index = 0; index < 10; index++) log.change(`o${index}`)
    }
    const naive = asItComes(stamps)
    await anchored(naive)
    happen()
    await cycle(naive, { pagesMax: 1 })
    const { first: _first, ...landed } = await scene.rows()
    expect(Object.values(landed)).not.toEqual(log.objects().filter(({ id }) => id !== 'first'))

    scene = await EngineFixture.open()
    log = new EventLog(scene.clock)
    const delta = feedOf(log, { limit: 7 })
    await anchored(delta)
    happen()
    await cycle(delta)
    expect(Object.values(await scene.rows())).toEqual(log.objects().filter(({ id }) => id !== 'first'))
  })

  test("N41 D4 what was changed and then deleted ends deleted, and its changes carry the event's time", async () => {
    const delta = feedOf(log)
    await anchored(delta)
    log.change('a')
    log.change('b')
    scene.clock.step(SECOND)
    log.change('a')
    log.remove('a')
    await cycle(delta)
    expect(await scene.keys()).toEqual(['b'])
    expect((await scene.feed()).find(({ key }) => key === 'b')?.upstreamAt).toMatch(/^2026-03-01T00:05:00/)
  })

  test('XC33 events of one second keep the order of the log, also across pages: an object that was deleted and recreated exists', async () => {
    for (const limit of [1, 2, 100]) {
      scene = await EngineFixture.open()
      log = new EventLog(scene.clock)
      const delta = feedOf(log, { limit })
      await anchored(delta)
      log.change('a')
      log.remove('a')
      log.change('a')
      log.change('b')
      log.change('b')
      log.remove('b')
      await cycle(delta)
      expect(await scene.rows(), `pages of ${limit}`).toEqual({ a: { id: 'a', v: 1 } })
    }
  })

  test('XC33 the rank inside a second is the same however the pages fall', async () => {
    const times: string[][] = []
    for (const limit of [1, 3, 100]) {
      scene = await EngineFixture.open()
      log = new EventLog(scene.clock)
      const delta = feedOf(log, { limit })
      await anchored(delta)
      for (let index = 0; index < 7; index++) log.change(`o${index}`)
      await cycle(delta)
      times.push((await scene.feed()).map(({ upstreamAt }) => upstreamAt!))
    }
    expect(times[0]).toEqual(times[2])
    expect(times[1]).toEqual(times[2])
    expect(times[2]!.slice(0, 3)).toEqual([
      '2026-03-01T00:05:00.000000Z',
      '2026-03-01T00:05:00.000001Z',
      '2026-03-01T00:05:00.000002Z',
    ])
  })

  test('a time that the author gives is left as it is', async () => {
    const delta = feedOf(log, {
      toChanges: ({ object }) => [
        { type: 'upsert', key: object.id, record: { ...object }, upstreamUpdatedAt: '2026-01-01T00:00:00Z' },
      ],
    })
    await anchored(delta)
    log.change('a')
    await cycle(delta)
    expect((await scene.feed()).map(({ upstreamAt }) => upstreamAt)).toEqual(['2026-01-01T00:00:00.000000Z'])
  })

  test('a log that sends its oldest events first works the same', async () => {
    const delta = feedOf(log, {
      order: 'oldest-first',
      read: async ({ after }) => {
        const { data, has_more } = log.endingBefore(after, 3)
        return { events: data.toReversed(), hasMore: has_more }
      },
    })
    await anchored(delta)
    for (let index = 0; index < 10; index++) {
      log.change(`o${index % 4}`)
      scene.clock.step(SECOND)
    }
    await cycle(delta)
    expect(Object.values(await scene.rows())).toEqual(log.objects().filter(({ id }) => id !== 'first'))
  })

  test('a cycle that is broken off after every page ends with the same copy', async () => {
    const delta = feedOf(log, { limit: 4 })
    await anchored(delta)
    for (let index = 0; index < 23; index++) log.change(`o${index % 5}`)
    for (let run = 0; run < 8; run++) await cycle(delta, { pagesMax: 1 })
    expect(Object.values(await scene.rows())).toEqual(log.objects().filter(({ id }) => id !== 'first'))
  })
})

describe('young events', () => {
  test('N38 only events more than ten seconds old are applied', async () => {
    const delta = feedOf(log)
    await anchored(delta)
    log.change('ten')
    scene.clock.step(SECOND)
    log.change('nine')
    await cycle(delta, { afterMs: 9 * SECOND })
    expect(await scene.keys()).toEqual([])
    await cycle(delta, { afterMs: SECOND })
    expect(await scene.keys()).toEqual(['ten'])
  })

  test('N39 scenario 4: a page of only young ones leaves the cursor and ends the cycle', async () => {
    const delta = feedOf(log, { limit: 2 })
    await anchored(delta)
    const before = await state()
    for (let index = 0; index < 5; index++) log.change(`o${index}`)
    expect(await cycle(delta, { afterMs: SECOND })).toMatchObject({ stopReason: 'complete', pages: 1 })
    expect(await state()).toEqual(before)
    await cycle(delta)
    expect(await scene.keys()).toHaveLength(5)
  })

  test.each([
    { more: true, old: 3, young: 0, hasMore: true },
    { more: true, old: 2, young: 1, hasMore: false },
    { more: true, old: 0, young: 3, hasMore: false },
    { more: false, old: 3, young: 0, hasMore: false },
    { more: true, old: 0, young: 0, hasMore: false },
  ])(
    'N40 the source has more: $more, $old old and $young young ones: the cycle goes on: $hasMore',
    async ({ more, old, young, hasMore }) => {
      let calls = 0
      const eventsOf = (count: number, ageMs: number): LogEvent[] =>
        Array.from({ length: count }, (_, index) => ({
          id: `${ageMs}-${index}`,
          created: Math.floor((scene.clock.now() - ageMs) / 1_000),
          type: 'changed',
          object: { id: `${ageMs}-${index}`, v: 1 },
        }))
      const delta = feedOf(log, {
        order: 'oldest-first',
        read: async () =>
          ++calls > 1
            ? { events: [], hasMore: false }
            : { events: [...eventsOf(old, MINUTE), ...eventsOf(young, SECOND)], hasMore: more },
      })
      await anchored(delta)
      await cycle(delta)
      expect(calls > 1).toBe(hasMore)
    },
  )

  test('N25 an event that shows up late is not passed behind the lag, and is lost without it', async () => {
    const run = async (lagMs: number): Promise<boolean> => {
      scene = await EngineFixture.open()
      log = new EventLog(scene.clock)
      const delta = feedOf(log, { lagMs })
      await anchored(delta)
      log.change('late', { lateMs: 8 * SECOND })
      scene.clock.step(2 * SECOND)
      log.change('prompt')
      await cycle(delta, { afterMs: 2 * SECOND })
      await cycle(delta)
      return (await scene.keys()).includes('late')
    }
    expect(await run(10 * SECOND)).toBe(true)
    expect(await run(0)).toBe(false)
  })

  test('an event is not skipped because an older one follows it in the log', async () => {
    const at = (ageMs: number): number => Math.floor((scene.clock.now() - ageMs) / 1_000)
    let young = true
    const delta = feedOf(log, {
      order: 'oldest-first',
      read: async ({ after }) => ({
        events: (
          [
            { id: 'e1', created: at(MINUTE) },
            { id: 'e2', created: at(young ? SECOND : MINUTE) },
            { id: 'e3', created: at(12 * SECOND) },
          ] as const
        )
          .map((event): LogEvent => ({ ...event, type: 'changed', object: { id: event.id, v: 1 } }))
          .filter(({ id }) => id > after || !after.startsWith('e')),
        hasMore: false,
      }),
    })
    await setState(scene, { cursor: '0', cursorTime: '2026-02-28T00:00:00Z' })
    await cycle(delta)
    expect(await state()).toMatchObject({ cursor: 'e1' })
    young = false
    await cycle(delta)
    expect(await scene.keys()).toEqual(['e1', 'e2', 'e3'])
  })

  test("XC26 the source's clock lowers the horizon where ours is ahead", async () => {
    const run = async (tells: boolean): Promise<boolean> => {
      scene = await EngineFixture.open()
      const slow = { now: () => scene.clock.now() - HOUR, sleep: (ms: number) => scene.clock.sleep(ms) }
      log = new EventLog(slow)
      const delta = feedOf(log, {
        read: async ({ after }) => {
          const { data, has_more } = log.endingBefore(after, 100)
          return { events: data, hasMore: has_more, ...(tells && { serverTime: log.now() }) }
        },
      })
      await anchored(delta)
      log.change('late', { lateMs: 8 * SECOND })
      scene.clock.step(2 * SECOND)
      log.change('prompt')
      await cycle(delta, { afterMs: 2 * SECOND })
      await cycle(delta)
      return (await scene.keys()).includes('late')
    }
    expect(await run(true)).toBe(true)
    expect(await run(false)).toBe(false)
  })
})

describe('what cannot be', () => {
  test('XC32 an absence longer than the log reaches is HISTORY_LOST, in words that say what to do, and the state stays', async () => {
    const delta = feedOf(log)
    await anchored(delta)
    const before = await state()
    log.change('lost')
    const calls = log.calls
    const result = await cycle(delta, { afterMs: 31 * 24 * HOUR })
    expect(result).toMatchObject({ stopReason: 'error', error: { code: 'HISTORY_LOST' } })
    expect(result.error!.message).toMatch(
      /last complete 31 days ago.*keeps changes and deletions for 29 days only.*worker\.track/,
    )
    expect(await state()).toEqual(before)
    expect(log.calls).toBe(calls)
  })

  test('XC32 a quiet log that has dropped the event of the cursor has lost nothing while every cycle was run', async () => {
    const delta = feedOf(log)
    await anchored(delta)
    for (let day = 0; day < 40; day++)
      expect(await cycle(delta, { afterMs: 24 * HOUR })).toMatchObject({ stopReason: 'complete' })
    log.change('news')
    expect(await cycle(delta)).toMatchObject({ stopReason: 'complete', counts: { created: 1 } })
    expect(await state()).toMatchObject({ cursor: 'evt_2' })
  })

  test('XC32 within the time the log is kept nothing is said', async () => {
    const delta = feedOf(log)
    await anchored(delta)
    log.change('kept')
    expect(await cycle(delta, { afterMs: 29 * 24 * HOUR })).toMatchObject({
      stopReason: 'complete',
      counts: { created: 1 },
    })
  })

  test('a page sorted the other way than declared fails before anything is landed', async () => {
    const delta = feedOf(log, { order: 'oldest-first' })
    await anchored(delta)
    for (let index = 0; index < 5; index++) {
      log.change(`o${index}`)
      scene.clock.step(MINUTE)
    }
    expect(await cycle(delta)).toMatchObject({ error: { code: 'SOURCE_INVALID' } })
    expect(await scene.keys()).toEqual([])
  })

  test('the event of the cursor, sent again, is not applied again', async () => {
    const delta = feedOf(log, { read: async () => ({ events: [log.newest()!], hasMore: true }) })
    await anchored(delta)
    expect(await cycle(delta)).toMatchObject({ stopReason: 'complete', pages: 1, counts: { created: 0 } })
  })

  test.each([
    ['no time', { created: Number.NaN }],
    ['no id', { id: '' }],
  ])('XC20 an event with %s fails', async (_, part) => {
    const delta = feedOf(log, {
      read: async () => ({ events: [{ ...log.newest()!, id: 'evt_x', ...part }], hasMore: false }),
      time: ({ created }) => (Number.isNaN(created) ? 'never' : new Date(created * 1_000).toISOString()),
    })
    await anchored(delta)
    expect(await cycle(delta)).toMatchObject({ error: { code: 'SOURCE_INVALID' } })
  })

  test('as a replace sync it would sweep everything: refused', async () => {
    expect(await cycle(feedOf(log), { mode: 'replace' })).toMatchObject({
      error: { code: 'SYNC_INVALID', message: expect.stringMatching(/incremental/) },
    })
  })

  test.each([[{ cursor: '' }], [{ cursor: 'evt_1' }], [{ cursor: 'evt_1', cursorTime: 5 }]])(
    'a state that is not its own is refused and kept: %o',
    async (stored) => {
      await setState(scene, stored)
      expect(await cycle(feedOf(log))).toMatchObject({ error: { code: 'CURSOR_REJECTED' } })
      expect(await state()).toEqual(stored)
    },
  )

  test.each([[{ lagMs: -1 }], [{ retentionMs: 0 }]])('%o is refused at once', (options) => {
    expect(() => feedOf(log, options)).toThrow(expect.objectContaining({ code: 'SYNC_INVALID' }))
  })
})
