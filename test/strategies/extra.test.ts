import { describe, expect, test } from 'vitest'
import type { Change, Execute, Mode, SyncContext } from '../../src/contract/index.ts'
import {
  eventFeed,
  frontier,
  keyset,
  offset,
  offsets,
  pageNumber,
  relay,
  relayNested,
  search,
  token,
  watermark,
  type EventPage,
  type ExtraAnswer,
  type ExtraState,
} from '../../src/strategies/index.ts'

const NOW = Date.parse('2026-03-01T12:00:00Z')

function contextOf(mode: Mode): SyncContext {
  return {
    clock: { now: () => NOW, sleep: async () => {} },
    cycle: { id: 'c', mode, startedAt: NOW, page: 1 },
    log: { debug() {}, info() {}, warn() {}, error() {} },
    signal: new AbortController().signal,
  } as unknown as SyncContext
}

interface Extra {
  readonly seen: number
}

/** Records the extra state of each query, and returns the next of the given answers. */
class Source {
  readonly received: Array<Extra | undefined> = []
  readonly #answers: Array<ExtraAnswer<Extra>>

  constructor(...answers: Array<ExtraAnswer<Extra>>) {
    this.#answers = answers
  }

  answer<Rest extends object>({ extra }: ExtraState<Extra>, rest: Rest): Rest & ExtraAnswer<Extra> {
    this.received.push(extra)
    return { ...rest, ...this.#answers.shift() }
  }
}

interface Row {
  readonly id: string
  readonly time: string
}

const upsert = ({ id }: Row): Change => ({ type: 'upsert', key: id, record: { id } })
/** Each page has another row, so that no page repeats the one before. */
const rowAt = (n: number): Row => ({ id: String(n + 1), time: new Date(NOW - 3_600_000 + n * 1_000).toISOString() })

/** Every strategy, over a source that always has one more page. */
const STRATEGIES: Record<string, { mode: Mode; create: (source: Source) => Execute<any>; state?: object }> = {
  token: {
    mode: 'replace',
    create: (source) =>
      token<Extra>({
        read: async (query) =>
          source.answer(query, {
            changes: [upsert(rowAt(source.received.length))],
            next: `t${source.received.length}`,
          }),
      }),
  },
  relay: {
    mode: 'replace',
    create: (source) =>
      relay<Extra>({
        read: async (query) =>
          source.answer(query, {
            changes: [upsert(rowAt(source.received.length))],
            pageInfo: { hasNextPage: true, endCursor: `c${source.received.length}` },
          }),
      }),
  },
  relayNested: {
    mode: 'replace',
    create: (source) =>
      relayNested<Extra>({
        readOuter: async (query) =>
          source.answer(query, {
            changes: [],
            pageInfo: { hasNextPage: true, endCursor: 'outer' },
            parents: [{ id: 'p', pageInfo: { hasNextPage: true, endCursor: 'inner' } }],
          }),
        readInner: async (query) =>
          source.answer(query, {
            changes: [],
            parents: [{ id: 'p', pageInfo: { hasNextPage: true, endCursor: `i${source.received.length}` } }],
          }),
      }),
  },
  pageNumber: {
    mode: 'replace',
    create: (source) =>
      pageNumber<Extra>({ read: async (query) => source.answer(query, { changes: [upsert(rowAt(query.page))] }) }),
  },
  offset: {
    mode: 'replace',
    create: (source) =>
      offset<Extra>({
        limit: 1,
        read: async (query) => source.answer(query, { changes: [upsert(rowAt(query.offset))] }),
      }),
  },
  keyset: {
    mode: 'incremental',
    create: (source) =>
      keyset<Row, Extra>({
        read: async (query) => source.answer(query, { items: [rowAt(source.received.length)], end: false }),
        timestamp: ({ time }) => time,
        id: ({ id }) => id,
        toChange: upsert,
        lagMs: 0,
        limit: 1,
      }),
  },
  search: {
    mode: 'incremental',
    create: (source) =>
      search<Row, Extra>({
        read: async (query) =>
          source.answer(query, { items: [rowAt(source.received.length), rowAt(source.received.length + 1)] }),
        modifiedMs: ({ time }) => Date.parse(time),
        id: ({ id }) => id,
        toChange: upsert,
        lagMs: 0,
        limit: 2,
        lookBackMs: 3_600_000,
      }),
  },
  offsets: {
    mode: 'incremental',
    create: (source) =>
      offsets<Row, Extra>({
        bounds: async () => ({ 0: { low: '0', end: '100' } }),
        read: async (query) => source.answer(query, { messages: [], next: { 0: String(source.received.length + 1) } }),
        cursor: ({ id }) => id,
        toChanges: upsert,
      }),
  },
  watermark: {
    mode: 'incremental',
    create: (source) =>
      watermark<Extra>({
        streamId: 's',
        cursorField: 'time',
        key: ['id'],
        read: async (query) => source.answer(query, { items: [{ ...rowAt(source.received.length) }], end: false }),
        limit: 1,
      }),
  },
  frontier: {
    mode: 'incremental',
    create: (source) =>
      frontier<Row, Extra>(
        async (context) =>
          source.answer(context, { items: [rowAt(source.received.length)], nextCursor: `n${source.received.length}` }),
        { id: ({ id }) => id, toChange: upsert },
      ),
  },
  eventFeed: {
    mode: 'incremental',
    state: { cursor: 'e', cursorTime: '2026-03-01T10:00:00.000Z' },
    create: (source) =>
      eventFeed<Row, Extra>({
        anchor: async () => rowAt(0),
        read: async (query) => source.answer(query, { events: [rowAt(source.received.length)], hasMore: true }),
        id: ({ id }) => id,
        time: ({ time }) => time,
        toChanges: (row) => [upsert(row)],
        lagMs: 0,
        order: 'oldest-first',
      }),
  },
}

describe.each(Object.entries(STRATEGIES))('%s', (_, { mode, create, state: first }) => {
  test('carries the extra state of an answer until another answer replaces or removes it', async () => {
    const source = new Source({ extra: { seen: 1 } }, {}, { extra: { seen: 2 } }, { extra: null }, {})
    const execute = create(source)
    let state: unknown = first
    const stored: unknown[] = []
    for (let page = 0; page < 5; page++) {
      const { nextState, hasMore } = await execute(state, contextOf(mode))
      expect(hasMore).toBe(true)
      state = JSON.parse(JSON.stringify(nextState))
      stored.push((state as ExtraState<Extra>).extra)
    }
    expect(source.received).toEqual([undefined, { seen: 1 }, { seen: 1 }, { seen: 2 }, undefined])
    expect(stored).toEqual([{ seen: 1 }, { seen: 1 }, { seen: 2 }, undefined, undefined])
    expect(state).not.toHaveProperty('extra')
  })

  test('two syncs that share a strategy do not share the extra state', async () => {
    const source = new Source({ extra: { seen: 1 } })
    const execute = create(source)
    await execute(first, contextOf(mode))
    const { nextState } = await execute(first, contextOf(mode))
    expect(source.received).toEqual([undefined, undefined])
    expect(nextState).not.toHaveProperty('extra')
  })
})

describe('a page of events', () => {
  const CURSOR = { cursor: 'e', cursorTime: '2026-03-01T10:00:00.000Z' }
  const events = [0, 1, 2].map(rowAt)
  const young = { id: 'young', time: new Date(NOW - 1_000).toISOString() }

  const feed = (toPage: (page: EventPage<Row, Extra>) => object): Execute<any> =>
    eventFeed<Row, Extra>({
      anchor: async () => rowAt(0),
      read: async () => ({ events: [young, ...events.toReversed()], hasMore: true, extra: { seen: 7 } }),
      id: ({ id }) => id,
      time: ({ time }) => time,
      toPage: async (page) => toPage(page) as any,
      lagMs: 10_000,
      order: 'newest-first',
    })

  test('is converted in one call, with the events that are left and the state', async () => {
    const calls: Array<EventPage<Row, Extra>> = []
    const execute = feed((page) => {
      calls.push(page)
      return { changes: page.events.map(upsert), ...page.end(page.events.length) }
    })
    const page = await execute({ ...CURSOR, extra: { seen: 6 } }, contextOf('incremental'))
    expect(calls).toHaveLength(1)
    expect(calls[0]).toMatchObject({
      events,
      left: [young],
      hasMore: true,
      requestedAt: NOW,
      state: { ...CURSOR, extra: { seen: 7 } },
    })
    expect(page).toMatchObject({ hasMore: false, nextState: { cursor: '3', extra: { seen: 7 } } })
    expect(page.changes.map(({ key }) => key)).toEqual(['1', '2', '3'])
    expect(page.tidemark).toBeTypeOf('string')
  })

  test('may end before its last event: the rest follows on the next page, and the page claims no tidemark', async () => {
    const execute = feed(({ events: [first], end }) => ({ changes: [upsert(first!)], ...end(1) }))
    const page = await execute(CURSOR, contextOf('incremental'))
    expect(page).toMatchObject({ hasMore: true, nextState: { cursor: '1' } })
    expect(page.tidemark).toBeUndefined()
  })

  test('may end before its first event: the cursor stays', async () => {
    const page = await feed(({ end }) => ({ changes: [], ...end(0) }))(CURSOR, contextOf('incremental'))
    expect(page).toMatchObject({ hasMore: true, nextState: CURSOR })
  })

  test('decides on the extra state: a state without one removes it', async () => {
    const kept = await feed(({ end }) => {
      const { nextState, ...rest } = end(3)
      return { changes: [], ...rest, nextState: { ...nextState, extra: { seen: 8 } } }
    })(CURSOR, contextOf('incremental'))
    expect(kept.nextState).toMatchObject({ extra: { seen: 8 } })
    const removed = await feed(({ end }) => {
      const { extra: _, ...nextState } = end(3).nextState
      return { changes: [], hasMore: false, nextState }
    })(CURSOR, contextOf('incremental'))
    expect(removed.nextState).not.toHaveProperty('extra')
  })
})

describe('the key of a watermark', () => {
  const create = (key: readonly string[]): Execute<any> =>
    watermark({
      streamId: 's',
      cursorField: 'time',
      key: async () => key,
      read: async () => ({ items: [{ ...rowAt(0) }], end: false }),
      limit: 1,
    })

  test('may come from the metadata of the source', async () => {
    const page = await create(['id'])(undefined, contextOf('incremental'))
    expect(page.changes).toMatchObject([{ key: '1' }])
    expect(page.nextState).toMatchObject({ run: { after: { key: ['1'] } } })
  })

  test('must name a field', async () => {
    await expect(create([])(undefined, contextOf('incremental'))).rejects.toMatchObject({ code: 'SYNC_INVALID' })
  })
})
