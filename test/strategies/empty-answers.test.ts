import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Execute } from '../../src/contract/index.ts'
import { eventFeed } from '../../src/strategies/event-feed.ts'
import { keyset } from '../../src/strategies/keyset.ts'
import { timeWindow } from '../../src/strategies/kit/time-window.ts'
import { timestampPaging } from '../../src/strategies/kit/timestamp-paging.ts'
import { EngineFixture, MINUTE, planOf, upsert } from '../engine/engine-fixture.ts'

interface Item {
  readonly id: string
  readonly at: string
}

let scene: EngineFixture
/** The records of the source, and whether its next answers are wrongly empty. */
let items: Item[]
let wrong: number
beforeEach(async () => {
  scene = await EngineFixture.open()
  items = []
  wrong = 0
})
afterEach(() => scene.close())

const isHidden = (): boolean => wrong > 0 && wrong-- > 0
const add = (id: string): void => void items.push({ id, at: new Date(scene.clock.now() + 1_000).toISOString() })

const READERS: Record<string, () => Execute<any>> = {
  window: () =>
    timeWindow({
      lagMs: 0,
      read: async ({ since = '', until }) => {
        const found = isHidden() ? [] : items.filter(({ at }) => at >= since && at < until)
        return { changes: found.map(({ id }) => upsert(id)), next: null }
      },
    }),
  'timestamp paging': () =>
    timestampPaging({
      lagMs: 0,
      pageSize: 10,
      timestamp: (item) => (item as unknown as Item).at,
      toChange: (item) => upsert((item as unknown as Item).id),
      read: async ({ since = '' }) => ({
        records: (isHidden() ? [] : items.filter(({ at }) => at >= since)) as never[],
      }),
    }),
  keyset: () =>
    keyset<Item>({
      lagMs: 0,
      limit: 10,
      timestamp: ({ at }) => at,
      id: ({ id }) => id,
      toChange: ({ id }) => upsert(id),
      read: async ({ after }) => ({
        items: isHidden() ? [] : items.filter(({ at }) => after === undefined || at > after.timestamp),
        end: true,
      }),
    }),
  'event feed': () =>
    eventFeed<Item>({
      lagMs: 0,
      order: 'oldest-first',
      time: ({ at }) => at,
      id: ({ id }) => id,
      toChanges: ({ id }) => [upsert(id)],
      anchor: async () => items.at(-1),
      read: async ({ after }) => ({
        events: isHidden() ? [] : items.slice(items.findIndex(({ id }) => id === after) + 1),
        hasMore: false,
      }),
    }),
}

describe.each(Object.keys(READERS))('invariant 12: with %s', (name) => {
  const cycle = async (): Promise<number> => {
    scene.clock.step(MINUTE)
    const { stopReason, tidemark } = await scene.run(planOf({ execute: READERS[name]!() }))
    expect(stopReason).toBe('complete')
    return Date.parse(tidemark ?? '1970-01-01')
  }

  test('one empty answer does not move the tidemark past a record that it lacks', async () => {
    add('a')
    await cycle()
    add('b')
    await cycle()
    add('c')
    const addedAt = scene.clock.now() + 1_000
    wrong = 1
    expect(await cycle()).toBeLessThan(addedAt)
    expect(await cycle()).toBeGreaterThanOrEqual(addedAt)
    expect(await scene.keys()).toContain('c')
  })

  test('the tidemark of a quiet source follows one cycle behind', async () => {
    add('a')
    await cycle()
    add('b')
    let before = await cycle()
    for (let round = 0; round < 4; round++) {
      const startedAt = scene.clock.now()
      const tidemark = await cycle()
      expect(tidemark).toBeGreaterThanOrEqual(before)
      if (round > 0) expect(tidemark).toBeGreaterThanOrEqual(startedAt - MINUTE)
      before = tidemark
    }
  })
})
