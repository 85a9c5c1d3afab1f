import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import type { Landing, Store } from '../../../src/contract/index.ts'
import { openPostgresStore } from '../../../src/stores/postgres/store.ts'
import { counts, readFeed, SyncDriver, upsert } from '../../../src/testing/store-cases/harness.ts'
import { createDatabase, dropDatabase } from '../../setup/postgres-server.ts'
import { query } from '../postgres-harness.ts'

const server = inject('postgresUrl')
const KEYS = ['a', 'b', 'c', 'd', 'e', 'f']

/** How a page is compared with the stored rows depends on the page before it. */
describe.skipIf(server === '')('rows that a page is compared with', () => {
  let url: string
  let store: Store

  beforeEach(async () => {
    url = await createDatabase(server)
    store = await openPostgresStore({ url })
  })
  afterEach(async () => {
    await store.close()
    await dropDatabase(server, url)
  })

  const page = (keys: readonly string[], record: (key: string) => Record<string, unknown>): Landing[] =>
    keys.map((key) => upsert(key, record(key) as never))

  test('invariant 4: a listing without some keys of its range leaves the others unchanged, page after page', async () => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle(page(KEYS, () => ({ n: 1 })))
    const listed = KEYS.filter((key) => key !== 'c')
    for (let turn = 0; turn < 4; turn++)
      expect((await driver.cycle(page(listed, () => ({ n: 1 })))).counts).toEqual(counts({ unchanged: 5 }))
    const changed = await driver.cycle(page(listed, (key) => ({ n: key === 'd' ? 2 : 1 })))
    expect(changed.counts).toEqual(counts({ unchanged: 4, updated: 1 }))
    const mixed = await driver.cycle(page(['a', 'b', 'ba', 'd', 'e'], (key) => ({ n: key === 'd' ? 2 : 1 })))
    expect(mixed.counts).toEqual(counts({ unchanged: 4, created: 1 }))
  })

  test('invariant 8: the sequence of every row is its own, whichever rows of the page changed', async () => {
    const driver = await SyncDriver.acquire(store)
    const expected = new Map<string, number>()
    for (const changed of [KEYS, ['b'], ['b', 'e'], [], ['f', 'a'], ['c']]) {
      await driver.cycle(page(KEYS, (key) => ({ n: (expected.get(key) ?? 0) + (changed.includes(key) ? 1 : 0) })))
      for (const key of changed) expected.set(key, (expected.get(key) ?? 0) + 1)
    }
    const last = new Map((await readFeed(store)).map(({ key, sequence, text }) => [key, [sequence, text]]))
    const rows = await query<{ key: string; sequence: string; n: string }>(
      url,
      'select _key as key, _sequence as sequence, n from things order by _key',
    )
    expect(rows.map(({ key, sequence, n }) => [key, [Number(sequence), `{"n":${n}}`]])).toEqual(
      [...last].toSorted(([a], [b]) => (a < b ? -1 : 1)),
    )
    expect(rows.map(({ key, n }) => [key, Number(n)])).toEqual([...expected].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })

  test('XD13 fields with the names of columns that a lookup adds are compared like others', async () => {
    const names = ['n', 'key', 'hash', 'sequence', 'status', 'at', 'c0', 'c1', 'same', 'owner', 'writer', 'contested']
    const record = (value: string, order: readonly string[]) =>
      Object.fromEntries(order.map((name) => [name, `${name} ${value}`]))
    const driver = await SyncDriver.acquire(store)
    await driver.cycle(page(KEYS, () => record('1', names)))
    const [same, other] = [counts({ unchanged: 1 }), counts({ updated: 1 })]
    // Another order of the fields is another hash of the same record; a single key is looked up by itself.
    for (const keys of [['b'], ['c', 'd']]) {
      const times = (outcome: ReturnType<typeof counts>) =>
        Object.fromEntries(Object.entries(outcome).map(([name, count]) => [name, count * keys.length]))
      const reordered = await driver.cycle(page(keys, () => record('1', names.toReversed())))
      expect(reordered.counts).toEqual(times(same))
      expect((await driver.cycle(page(keys, () => record('2', names)))).counts).toEqual(times(other))
    }
  })

  test('XD13 a field of any record of a page gets its column with that page', async () => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle(page(KEYS, () => ({ n: 1 })))
    for (const [at, key] of KEYS.entries()) {
      await driver.cycle(page(KEYS, (other) => ({ n: at + 2, ...(other === key && { [`only_${key}`]: 'x' }) })))
      expect(await query(url, `select only_${key} as value from things where _key = '${key}'`)).toEqual([
        { value: 'x' },
      ])
    }
  })

  test('invariant 4: a record is compared with the columns that another process has added', async () => {
    const other = await openPostgresStore({ url })
    try {
      const driver = await SyncDriver.acquire(store)
      for (let turn = 0; turn < 2; turn++) await driver.cycle(page(['a', 'b'], () => ({ n: 1 })))
      const second = await SyncDriver.acquire(other, { sync: 'other', owner: driver.owner })
      await second.cycle(page(['a', 'b'], () => ({ n: 1, added: 'x' })))
      const outcome = await driver.cycle(page(['a', 'b'], () => ({ added: 'x', n: 1 })))
      expect(outcome.counts).toEqual(counts({ unchanged: 2 }))
    } finally {
      await other.close()
    }
  })

  test('invariant 4: a value of any type that differs is a change, and the same one in another place is none', async () => {
    const driver = await SyncDriver.acquire(store)
    const first = {
      text: 'x',
      boolean: true,
      bigint: 1,
      timestamp: '2026-01-01T00:00:00Z',
      date: '2026-01-01',
      json: { a: [1] },
    }
    const land = async (record: Record<string, unknown>) => (await driver.cycle(page(['a', 'b'], () => record))).counts
    await land(first)
    const others = { text: 'y', boolean: false, bigint: 2, timestamp: '2026-01-02T00:00:00Z', date: null, json: [] }
    for (const [field, other] of Object.entries(others)) {
      expect(await land({ [field]: null, ...first, [field]: first[field as 'text'] }), field).toEqual(
        counts({ unchanged: 2 }),
      )
      expect(await land({ ...first, [field]: other }), field).toEqual(counts({ updated: 2 }))
      expect(await land(first), field).toEqual(counts({ updated: 2 }))
    }
    // The column shows the instant, and `_extra` has the text.
    const exact = { ...first, timestamp: '2026-01-01T02:00:00+02:00' }
    expect(await land(exact)).toEqual(counts({ updated: 2 }))
    expect(await land(Object.fromEntries(Object.entries(exact).toReversed()))).toEqual(counts({ unchanged: 2 }))
  })

  test('invariant 1: a page of an unfinished cycle stores its whole checkpoint, the counts and the evidence of its page', async () => {
    const driver = await SyncDriver.acquire(store)
    const { inflight } = await driver.begin()
    const next = { state: '{"page":1}', tidemark: '2026-01-01T00:00:00Z', scope: 's\0', guardState: 'g' }
    await driver.page(
      page(['a', 'b'], () => ({ n: 1 })),
      next,
    )
    // PostgreSQL stores no NUL.
    expect((await store.readCheckpoint(driver.ref)).inflight).toEqual({
      ...inflight,
      ...next,
      scope: 's\uFFFD',
      page: 1,
    })
    const evidence = 'select page::int, has_state, pages::int, created::int, unchanged::int from tidemark.cycles'
    expect(await query(url, evidence)).toEqual([{ page: 1, has_state: true, pages: 1, created: 2, unchanged: 0 }])
    await driver.page(
      page(['a', 'b'], () => ({ n: 1 })),
      { state: null },
    )
    expect(await query(url, evidence)).toEqual([{ page: 2, has_state: false, pages: 2, created: 2, unchanged: 2 }])
    await driver.complete([])
    expect(await query(url, evidence)).toEqual([{ page: null, has_state: null, pages: 3, created: 2, unchanged: 2 }])
  })

  test('invariant 1: only a page of a listing that changes nothing is committed without waiting for the disk', async () => {
    await query(
      url,
      `create table waits (setting text); grant all on waits to public;
       create function note() returns trigger language plpgsql as $$
         begin insert into public.waits values (current_setting('synchronous_commit')); return new; end $$;
       create trigger note after update of pages on tidemark.cycles for each row execute function note();`,
    )
    const rows = (keys: readonly string[], n: number, at: number): Landing[] =>
      keys.map((key) => upsert(key, { n }, { at }))
    const settings = async (): Promise<string[]> => {
      const found = await query<{ setting: string }>(url, 'delete from waits returning setting')
      return found.map(({ setting }) => setting)
    }
    const listing = await SyncDriver.acquire(store, { sync: 'listing', mode: 'replace' })
    await listing.begin()
    await listing.page(rows(KEYS, 1, 1))
    await listing.page(rows(KEYS, 1, 1))
    await listing.page(rows(['a', 'f'], 1, 1))
    await listing.page(rows(KEYS, 1, 2))
    await listing.page(rows(['b'], 2, 3))
    await listing.complete(rows(['a'], 1, 2), { sweep: null })
    expect(await settings()).toEqual(['on', 'off', 'off', 'on', 'on', 'on'])
    const delta = await SyncDriver.acquire(store)
    await delta.begin()
    await delta.page(rows(['b'], 2, 3))
    expect(await settings()).toEqual(['on'])
  })
})
