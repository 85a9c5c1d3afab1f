import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CycleResult } from '../../../src/engine/cycle-options.ts'
import { rest, type RestStream, type TrackedStream } from '../../../src/sources/rest/source.ts'
import { counts, MINUTE, planOf, EngineFixture, SECOND } from '../../engine/engine-fixture.ts'
import { Api, BASE, type Handler } from './api.ts'

let scene: EngineFixture
beforeEach(async () => {
  scene = await EngineFixture.open()
})
afterEach(() => scene.close())

interface Row {
  id: string
  at: string
  value: number
  gone?: boolean
}

interface Event {
  id: string
  created: number
  type: string
  data: { object: { id: string; value: number } }
}

const LAG = 10 * SECOND
const STREAM = { path: '/items', key: 'id', updatedAt: 'at', lagMs: LAG } as const
const SIZE = { parameter: 'limit', value: 3 }

/** A table of the source whose rows become visible some time after their timestamp. */
class Table {
  readonly rows = new Map<string, Row>()

  set(id: string, value: number, atMs: number, more: Partial<Row> = {}): void {
    this.rows.set(id, { id, value, at: new Date(atMs).toISOString(), ...more })
  }

  sorted(): Row[] {
    return [...this.rows.values()].toSorted((a, b) => (a.at === b.at ? (a.id < b.id ? -1 : 1) : a.at < b.at ? -1 : 1))
  }

  /** since and until, both inclusive; pages by token. */
  readonly window: Handler = ({ searchParams: query }) => {
    const found = this.sorted().filter(
      ({ at }) => at >= (query.get('since') ?? '') && at <= (query.get('until') ?? '9'),
    )
    const after = query.get('token')
    const rest = after === null ? found : found.filter(({ at, id }) => `${at} ${id}` > after)
    const page = rest.slice(0, SIZE.value)
    const last = page.at(-1)
    return { items: page, next: rest.length > page.length ? `${last!.at} ${last!.id}` : null }
  }

  readonly timestamp: Handler = ({ searchParams: query }) => ({
    items: this.sorted()
      .filter(({ at }) => at >= (query.get('since') ?? '') && at <= (query.get('until') ?? '9'))
      .slice(0, SIZE.value),
  })

  readonly keyset: Handler = ({ searchParams: query }) => {
    const after = query.get('since')
    return {
      items: this.sorted()
        .filter(
          ({ at, id }) =>
            (after === null || at > after || (at === after && id > query.get('since_id')!)) &&
            at <= (query.get('until') ?? '9'),
        )
        .slice(0, SIZE.value),
    }
  }
}

const TOKEN = { kind: 'token', parameter: 'token', next: 'next' } as const
const FOLLOW = {
  window: { kind: 'window', since: 'since', until: 'until', page: TOKEN },
  timestamp: { kind: 'timestamp', since: 'since', until: 'until', size: SIZE },
  keyset: { kind: 'keyset', after: 'since', afterId: 'since_id', until: 'until', size: SIZE },
  'window without an end': { kind: 'window', since: 'since', page: TOKEN },
  'timestamp without an end': { kind: 'timestamp', since: 'since', size: SIZE },
  'keyset without an end': { kind: 'keyset', after: 'since', afterId: 'since_id', size: SIZE },
} as const satisfies Record<string, NonNullable<RestStream['follow']>>

function tracked(stream: Partial<RestStream>): TrackedStream {
  return rest({
    baseUrl: BASE,
    streams: [{ ...STREAM, records: 'items', page: { kind: 'none' }, ...stream, name: 'items' }],
  }).items as TrackedStream
}

function run(source: TrackedStream, api: Api): Promise<CycleResult> {
  return scene.run(planOf({ execute: source.delta, limits: { retriesMax: 0 } }), { fetch: api.fetch })
}

const values = async (): Promise<Record<string, number>> =>
  Object.fromEntries(Object.entries(await scene.rows()).map(([key, record]) => [key, (record as Row).value]))

describe.each(Object.keys(FOLLOW) as Array<keyof typeof FOLLOW>)('N86: changes by %s', (way) => {
  const { kind } = FOLLOW[way]
  test('are read once, then only new ones', async () => {
    const table = new Table()
    const api = new Api(scene.clock, { '/items': table[kind] })
    const source = tracked({ follow: FOLLOW[way], deletes: 'ignore' })
    for (let id = 0; id < 8; id++) table.set(`k${id}`, id, scene.clock.now() - MINUTE + id)
    expect((await run(source, api)).counts).toMatchObject({ created: 8 })
    await scene.clock.drive(scene.clock.sleep(5 * MINUTE))
    table.set('k3', 33, scene.clock.now() - 2 * MINUTE)
    expect((await run(source, api)).counts).toMatchObject({ updated: 1, created: 0 })
    api.taken()
    expect((await run(source, api)).counts).toEqual(counts({ unchanged: kind === 'timestamp' ? 1 : 0 }))
    expect(api.asked.length).toBeLessThanOrEqual(2)
  })

  test('N9: a row that becomes visible late is not skipped', async () => {
    const table = new Table()
    const api = new Api(scene.clock, { '/items': table[kind] })
    const source = tracked({ follow: FOLLOW[way], deletes: 'ignore' })
    table.set('early', 1, scene.clock.now() - MINUTE)
    table.set('fresh', 2, scene.clock.now() - 1 * SECOND)
    await run(source, api)
    const late = scene.clock.now() - 4 * SECOND
    await scene.clock.drive(scene.clock.sleep(3 * SECOND))
    table.set('late', 3, late)
    await scene.clock.drive(scene.clock.sleep(MINUTE))
    await run(source, api)
    expect(await values()).toEqual({ early: 1, fresh: 2, late: 3 })
  })

  test.each([
    ['behind', -3 * 60 * MINUTE],
    ['ahead', 3 * 60 * MINUTE],
  ])('XD28: a source whose clock is hours %s loses nothing', async (_, skewMs) => {
    const table = new Table()
    const api = new Api(scene.clock, { '/items': table[kind] })
    api.skewMs = skewMs
    const source = tracked({ follow: FOLLOW[way], deletes: 'ignore' })
    const serverNow = (): number => scene.clock.now() + skewMs
    for (let round = 0; round < 6; round++) {
      // Each with a slightly older neighbour that becomes visible after the cycle.
      table.set(`k${round}`, round, serverNow())
      const late = serverNow() - SECOND
      await run(source, api)
      table.set(`late${round}`, round, late)
      await scene.clock.drive(scene.clock.sleep(7 * SECOND))
    }
    if (skewMs > 0) await scene.clock.drive(scene.clock.sleep(skewMs))
    await scene.clock.drive(scene.clock.sleep(MINUTE))
    await run(source, api)
    expect(await values()).toEqual(Object.fromEntries([...table.rows.values()].map(({ id, value }) => [id, value])))
    expect(table.rows.size).toBe(12)
  })

  test('N9: after the local clock was an hour ahead, nothing is skipped', async () => {
    const table = new Table()
    const api = new Api(scene.clock, { '/items': table[kind] })
    api.tellsTime = false
    const source = tracked({ follow: FOLLOW[way], deletes: 'ignore' })
    scene.clock.step(60 * MINUTE)
    table.set('ahead', 0, scene.clock.now() - MINUTE)
    await run(source, api)
    scene.clock.step(-60 * MINUTE)
    await run(source, api)
    for (let round = 0; round < 4; round++) {
      table.set(`k${round}`, round, scene.clock.now())
      await scene.clock.drive(scene.clock.sleep(MINUTE))
      await run(source, api)
    }
    expect(await values()).toEqual({ ahead: 0, k0: 0, k1: 1, k2: 2, k3: 3 })
  })

  test('N78: the delta starts at the anchor taken before the backfill', async () => {
    const table = new Table()
    const api = new Api(scene.clock, { '/items': table[kind] })
    const source = tracked({ follow: FOLLOW[way], deletes: 'ignore' })
    table.set('old', 1, scene.clock.now() - 60 * MINUTE)
    let anchor: unknown
    await scene.run(
      planOf({
        sync: 'probe',
        execute: async (_, context) => ({
          changes: [],
          hasMore: false,
          nextState: (anchor = await source.anchor(context)),
        }),
      }),
      { fetch: api.fetch },
    )
    table.set('during', 2, scene.clock.now() - 5 * SECOND)
    await scene.clock.drive(scene.clock.sleep(MINUTE))
    await scene.run(planOf({ execute: (state, context) => source.delta(state ?? anchor, context) }), {
      fetch: api.fetch,
    })
    expect(await values()).toEqual({ during: 2 })
  })

  test('N9: random changes at random times are never missed', async () => {
    for (let seed = 1; seed <= 5; seed++) {
      const world = await EngineFixture.open()
      const table = new Table()
      const api = new Api(world.clock, { '/items': table[kind] })
      const source = tracked({ follow: FOLLOW[way], deletes: 'ignore' })
      const random = randomOf(seed)
      const pending: Array<{ visibleAt: number; apply: () => void }> = []
      for (let step = 0; step < 60; step++) {
        await world.clock.drive(world.clock.sleep(Math.floor(random() * 4 * SECOND)))
        // Visible up to half the lag late; at most two share a timestamp, so that paging by time alone can advance.
        const at = Math.floor(world.clock.now() / 10) * 10 + (step % 2)
        const id = `k${Math.floor(random() * 15)}`
        pending.push({
          visibleAt: world.clock.now() + random() * (LAG / 2),
          apply: () => void ((table.rows.get(id)?.at ?? '') < new Date(at).toISOString() && table.set(id, step, at)),
        })
        for (const change of pending.filter(({ visibleAt }) => visibleAt <= world.clock.now())) {
          change.apply()
          pending.splice(pending.indexOf(change), 1)
        }
        if (random() < 0.4)
          await world.run(planOf({ execute: source.delta, limits: { retriesMax: 0 } }), { fetch: api.fetch })
      }
      for (const { apply } of pending) apply()
      await world.clock.drive(world.clock.sleep(MINUTE))
      const result = await world.run(planOf({ execute: source.delta, limits: { retriesMax: 0 } }), { fetch: api.fetch })
      expect(result.error, `seed ${seed}`).toBe(null)
      expect(await world.rows(), `seed ${seed}`).toEqual(Object.fromEntries(table.rows))
      await world.close()
    }
  })
})

describe('N86: changes by events', () => {
  const events: Event[] = []
  beforeEach(() => void events.splice(0))
  const emit = (type: string, id: string, value: number): void =>
    void events.push({
      id: `evt_${String(events.length).padStart(4, '0')}`,
      created: Math.floor(scene.clock.now() / SECOND),
      type,
      data: { object: { id, value } },
    })
  const handler: Handler = ({ searchParams: query }) => {
    if (query.get('limit') === '1') return { data: events.slice(-1), has_more: events.length > 1 }
    const after = query.get('ending_before')
    if (after === 'evt_lost') return Response.json({}, { status: 400 })
    const page = events.filter(({ id }) => id > after!).slice(0, 2)
    return { data: page.toReversed(), has_more: events.some(({ id }) => id > (page.at(-1)?.id ?? '~')) }
  }
  const source = (): TrackedStream =>
    tracked({
      path: '/customers',
      time: 's',
      updatedAt: 'none',
      follow: {
        kind: 'events',
        path: '/events',
        records: 'data',
        id: 'id',
        at: 'created',
        after: 'ending_before',
        order: 'newest-first',
        more: 'has_more',
        newest: { limit: 1 },
        record: 'data.object',
        deletions: { at: 'type', are: ['*.deleted'] },
        only: { at: 'type', are: ['customer.created', 'customer.updated', 'customer.deleted'] },
      },
    })

  test('start at the anchor and include deletions', async () => {
    const api = new Api(scene.clock, { '/events': handler })
    const stream = source()
    emit('customer.created', 'before', 0)
    await run(stream, api)
    for (const [type, id, value] of [
      ['customer.created', 'a', 1],
      ['customer.created', 'b', 2],
      ['invoice.created', 'x', 9],
      ['customer.updated', 'a', 3],
      ['customer.deleted', 'b', 2],
    ] as const)
      emit(type, id, value)
    await run(stream, api)
    expect(await values()).toEqual({})
    await scene.clock.drive(scene.clock.sleep(MINUTE))
    await run(stream, api)
    expect(await values()).toEqual({ a: 3 })
    expect((await scene.feed()).map(({ key, action }) => `${key} ${action}`)).toEqual([
      'a created',
      'b created',
      'a updated',
      'b deleted',
    ])
  })

  test('from a cursor that the log has lost are CURSOR_REJECTED', async () => {
    const api = new Api(scene.clock, { '/events': handler })
    const stream = source()
    const result = await scene.run(
      planOf({
        execute: (_, context) =>
          stream.delta({ cursor: 'evt_lost', cursorTime: new Date(scene.clock.now()).toISOString() }, context),
      }),
      { fetch: api.fetch },
    )
    expect(result.error).toMatchObject({ code: 'CURSOR_REJECTED' })
  })
})

describe('N87: deletions', () => {
  test('in the record are deletes', async () => {
    const table = new Table()
    const api = new Api(scene.clock, { '/items': table.window })
    const source = tracked({ follow: FOLLOW.window, deleted: 'gone' })
    table.set('a', 1, scene.clock.now() - 5 * MINUTE)
    table.set('b', 2, scene.clock.now() - 5 * MINUTE)
    await run(source, api)
    table.set('a', 1, scene.clock.now(), { gone: true })
    await scene.clock.drive(scene.clock.sleep(MINUTE))
    await run(source, api)
    expect(await values()).toEqual({ b: 2 })
  })

  test('in a separate list are read in the same cycle as the changes', async () => {
    const table = new Table()
    const trash: Array<{ record: string; at: string }> = []
    const api = new Api(scene.clock, {
      '/items': table.window,
      '/trash': ({ searchParams: query }) => trash.filter(({ at }) => at >= (query.get('since') ?? '')),
    })
    const source = tracked({
      follow: FOLLOW.window,
      deletes: {
        path: '/trash',
        key: 'record',
        updatedAt: 'at',
        follow: { kind: 'window', since: 'since', page: { kind: 'none' } },
      },
    })
    table.set('a', 1, scene.clock.now() - 5 * MINUTE)
    table.set('b', 2, scene.clock.now() - 5 * MINUTE)
    await run(source, api)
    table.rows.delete('a')
    trash.push({ record: 'a', at: new Date(scene.clock.now()).toISOString() })
    await scene.clock.drive(scene.clock.sleep(MINUTE))
    await run(source, api)
    expect(await values()).toEqual({ b: 2 })
    // The last page of a window is requested twice: its end may be false. So is the first window, which is empty.
    expect(api.asked.map(({ path }) => path)).toEqual([
      '/items',
      '/items',
      '/trash',
      '/trash',
      '/items',
      '/trash',
      '/trash',
    ])
    const horizon = new Date(scene.clock.now() - LAG).toISOString().replace('Z', '000Z')
    await scene.clock.drive(scene.clock.sleep(MINUTE))
    await run(source, api)
    // One cycle later the second empty answer of the changes confirms the first, and the tidemark covers both.
    expect((await scene.checkpoint()).tidemark).toBe(horizon)
  })

  test('in a separate list have their own anchor', async () => {
    const api = new Api(scene.clock, { '/items': new Table().window, '/trash': () => [] })
    const source = tracked({
      follow: FOLLOW.window,
      deletes: {
        path: '/trash',
        key: 'record',
        updatedAt: 'at',
        follow: { kind: 'window', since: 'since', page: { kind: 'none' } },
      },
    })
    let anchor: unknown
    await scene.run(
      planOf({
        execute: async (_, context) => ({
          changes: [],
          hasMore: false,
          nextState: (anchor = await source.anchor(context)),
        }),
      }),
      { fetch: api.fetch },
    )
    expect(anchor).toEqual({
      states: { changes: { since: expect.any(String) }, deletes: { since: expect.any(String) } },
    })
  })

  test('that matter but are not reported require the complete list', () => {
    const { items } = rest({
      baseUrl: BASE,
      streams: [{ ...STREAM, name: 'items', page: { kind: 'none' }, follow: FOLLOW.window, deletes: 'sweep' }],
    })
    expect(items.mode).toBe('replace')
  })

  test('that are ignored stay until the next backfill', async () => {
    const table = new Table()
    const api = new Api(scene.clock, { '/items': table.window })
    const source = tracked({ follow: FOLLOW.window, deletes: 'ignore', page: TOKEN })
    for (const id of ['a', 'b', 'c', 'd']) table.set(id, 1, scene.clock.now() - 5 * MINUTE)
    await run(source, api)
    table.rows.delete('a')
    await run(source, api)
    expect(await scene.keys()).toEqual(['a', 'b', 'c', 'd'])
    await scene.run(planOf({ sync: 'backfill', owner: 'shop/sync', mode: 'replace', execute: source.backfill }), {
      fetch: api.fetch,
    })
    expect(await scene.keys()).toEqual(['b', 'c', 'd'])
  })
})

test('a state of another kind is rejected instead of starting over', async () => {
  const api = new Api(scene.clock, { '/items': new Table().window })
  for (const kind of ['window', 'timestamp', 'keyset'] as const) {
    const source = tracked({ follow: FOLLOW[kind], deletes: 'ignore' })
    for (const state of [
      { since: 'yesterday', cursor: 'yesterday', cursorTimestamp: 'yesterday', cursorId: '' },
      { since: 7, cursor: 7, cursorTimestamp: 7, cursorId: 7 },
    ]) {
      const result = await scene.run(planOf({ execute: (_, context) => source.delta(state, context) }), {
        fetch: api.fetch,
      })
      expect(result.error, kind).toMatchObject({ code: 'CURSOR_REJECTED' })
    }
  }
})

/** A small deterministic generator: mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

type Items = { items: Row[]; next?: string | null }
const WRONG: Record<string, (answer: Items) => Items> = {
  'without records': () => ({ items: [], next: null }),
  'with half of its records and a false end': ({ items }) => ({ items: items.slice(items.length >> 1), next: null }),
}

test.each(
  (['window', 'window without an end', 'timestamp', 'keyset'] as const).flatMap((name) =>
    Object.keys(WRONG)
      // Nothing distinguishes the second half of a keyset list from the whole list.
      .filter((wrong) => name !== 'keyset' || wrong === 'without records')
      .map((wrong) => [wrong, name] as const),
  ),
)('T7: a response %s skips nothing: %s', async (wrong, name) => {
  const table = new Table()
  const handler = table[name === 'window without an end' ? 'window' : name]
  for (const nth of [1, 2, 3]) {
    let requests = 0
    let isWrong = false
    const api = new Api(scene.clock, {
      '/items': (url, init) => {
        const answer = handler(url, init) as Items
        return isWrong && ++requests === nth ? WRONG[wrong]!(answer) : answer
      },
    })
    const source = tracked({ follow: FOLLOW[name], deletes: 'ignore' })
    await run(source, api)
    for (const id of ['a', 'b', 'c', 'd', 'e']) table.set(`${id}${nth}`, nth, scene.clock.now() + id.charCodeAt(0))
    scene.clock.step(MINUTE)
    isWrong = true
    await run(source, api)
    scene.clock.step(10 * MINUTE)
    await run(source, api)
    const rows = await scene.rows()
    expect(Object.keys(rows).toSorted(), `request ${nth}`).toEqual([...table.rows.keys()].toSorted())
  }
})

test('T7: a window without changes is requested again from the same time, with one request per cycle', async () => {
  const table = new Table()
  table.set('a', 1, scene.clock.now())
  scene.clock.step(MINUTE)
  const api = new Api(scene.clock, { '/items': table.window })
  const source = tracked({ follow: FOLLOW.window, deletes: 'ignore' })
  await run(source, api)
  scene.clock.step(MINUTE)
  await run(source, api)
  api.taken()
  const since = new Set<string | undefined>()
  for (let cycle = 0; cycle < 5; cycle++) {
    scene.clock.step(MINUTE)
    await run(source, api)
    const asked = api.taken()
    expect(asked).toHaveLength(1)
    since.add(asked[0]!.since)
  }
  expect(since.size).toBe(1)
})
