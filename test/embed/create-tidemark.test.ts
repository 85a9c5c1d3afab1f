import { mkdirSync, rmdirSync } from 'node:fs'
import { describe, expect, expectTypeOf, test, vi } from 'vitest'
import { createTidemark } from '../../src/embed/index.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { Worker } from '../../src/worker/worker.ts'
import { openTidemark, PeopleFixture, storeUrl } from './embed-fixture.ts'

describe('an instance inside a program', () => {
  test('runs a sync, and reads rows, changes, history and SQL', async () => {
    const fixture = new PeopleFixture()
    const tidemark = openTidemark({ workers: [fixture.worker] })
    fixture.records.set('ada', { name: 'Ada' }).set('bob', { name: 'Bob' })
    const [first] = await tidemark.run('people')
    expect(first).toMatchObject({ stopReason: 'complete', pages: 2, counts: { created: 2 } })

    const people = tidemark.database<{ name: string }>('people')
    const rows = await collect(people.rows())
    expect(rows.map(({ key, record }) => [key, record.name])).toEqual([
      ['ada', 'Ada'],
      ['bob', 'Bob'],
    ])
    fixture.records.set('ada', { name: 'Ada Lovelace' }).delete('bob')
    const before = await people.changes()
    expect(before).toMatchObject({ hasMore: false, nextAfter: 2 })
    await tidemark.run('staff/people')
    const after = await people.changes({ after: before.nextAfter })
    expect(after.changes.map(({ key, action, record }) => [key, action, record?.name])).toEqual([
      ['ada', 'updated', 'Ada Lovelace'],
      ['bob', 'deleted', undefined],
    ])
    expect(await people.row('bob')).toBeNull()
    const versions = await tidemark.why('people', 'ada')
    expect(versions.map(({ action, changed }) => [action, changed])).toEqual([
      ['created', ['name']],
      ['updated', ['name']],
    ])
    expect(await tidemark.query('select _key, name from people')).toEqual({
      columns: ['_key', 'name'],
      rows: [{ _key: 'ada', name: 'Ada Lovelace' }],
      truncated: false,
    })
    expect(await tidemark.status()).toMatchObject([{ worker: 'staff', sync: 'people', health: 'HEALTHY' }])
  })

  test('the rows of a tenant are invisible to another', async () => {
    const fixture = new PeopleFixture()
    const tidemark = openTidemark({ workers: [fixture.worker], tenants: ['acme', 'globex'] })
    fixture.records.set('ada', { name: 'Ada' })
    await tidemark.run('people', { tenant: 'globex' })
    expect(await collect(tidemark.database('people').rows())).toEqual([])
    expect(await collect(tidemark.database('people', { tenant: 'globex' }).rows())).toHaveLength(1)
    await expect(tidemark.run('people', { tenant: 'initech' })).rejects.toThrow('does not run for tenant "initech"')
  })

  test('a trigger is taken by the schedule of any process, and events report its cycle', async () => {
    const fixture = new PeopleFixture()
    const url = storeUrl()
    const [one, two] = [url, url].map((store) => openTidemark({ store, workers: [fixture.worker] }))
    fixture.records.set('ada', { name: 'Ada' })
    const ended: CycleResult[] = []
    const started = vi.fn()
    one!.on('cycleStarted', started)
    one!.on('cycleEnded', () => {
      throw new Error('a listener that throws does not affect the sync')
    })
    one!.on('cycleEnded', ({ tenant, result }) => {
      expect(tenant).toBe('default')
      ended.push(result)
    })
    await one!.start()
    await two!.trigger('people')
    await vi.waitFor(() => expect(ended).toMatchObject([{ stopReason: 'complete', counts: { created: 1 } }]), 20_000)
    expect(started).toHaveBeenCalledTimes(1)
    await two!.pause('people')
    expect(await two!.status()).toMatchObject([{ health: 'PAUSED' }])
    await two!.resume('people')
  })

  test('stop ends a run between two pages, and the next instance continues it', async () => {
    const fixture = new PeopleFixture()
    const store = storeUrl()
    for (let n = 0; n < 5; n++) fixture.records.set(`k${n}`, { name: `name ${n}` })
    const first = createTidemark({ store, workers: [fixture.worker], log: 'silent' })
    const results = new Promise<CycleResult[]>((resolve, reject) => {
      fixture.beforePage = () => {
        if (fixture.pages === 3) void first.stop()
      }
      first.run('people').then(resolve, reject)
    })
    expect((await results)[0]).toMatchObject({ stopReason: 'cancelled' })
    fixture.beforePage = () => {}
    const second = openTidemark({ store, workers: [fixture.worker] })
    const pagesBefore = fixture.pages
    expect(await second.run('people')).toMatchObject([{ stopReason: 'complete', resumed: true }])
    expect(fixture.pages - pagesBefore).toBeLessThan(5)
    expect(await collect(second.database('people').rows())).toHaveLength(5)
    await expect(first.run('people')).rejects.toThrow('was stopped')
  })

  test('the backfill of a pair runs before its delta, once', async () => {
    const worker = new Worker({ name: 'shop' })
    const modes: string[] = []
    worker.track('orders', {
      database: worker.database('orders'),
      source: {
        backfill: async () => (modes.push('backfill'), { changes: [], hasMore: false }),
        delta: async (state: { at: number } | undefined) => (
          modes.push('delta'),
          { changes: [], hasMore: false, nextState: state ?? { at: 1 } }
        ),
        anchor: async () => ({ at: 0 }),
      },
    })
    const tidemark = openTidemark({ workers: [worker] })
    await tidemark.run('orders')
    await tidemark.run('orders')
    expect(modes).toEqual(['backfill', 'delta', 'delta'])
  })

  test('tick runs what is due and returns; an interrupted cycle continues with the next tick', async () => {
    const fixture = new PeopleFixture({ schedule: '1h' })
    for (let n = 0; n < 3; n++) fixture.records.set(`k${n}`, { name: `name ${n}` })
    const tidemark = openTidemark({ workers: [fixture.worker] })
    expect(await tidemark.tick({ budgetMs: 30_000 })).toMatchObject({
      isComplete: true,
      cycles: [{ stopReason: 'complete', counts: { created: 3 } }],
    })
    expect(await tidemark.tick()).toEqual({ isComplete: true, cycles: [] })

    await tidemark.trigger('people')
    const before = fixture.pages
    fixture.beforePage = () => new Promise((resolve) => setTimeout(resolve, 300))
    expect(await tidemark.tick({ budgetMs: 100 })).toMatchObject({ isComplete: false })
    fixture.beforePage = () => {}
    const { cycles } = await tidemark.tick({ budgetMs: 30_000 })
    expect(cycles).toMatchObject([{ stopReason: 'complete' }])
    expect(fixture.pages - before).toBeLessThanOrEqual(4)
  })

  test('secrets come from the program, per tenant, and are masked', async () => {
    const worker = new Worker({ name: 'api' })
    worker.sync('secret', {
      database: worker.database('things'),
      mode: 'incremental',
      execute: async (_state, { secrets }) => {
        throw new Error(`the vendor refused ${secrets.get('API_KEY')}`)
      },
    })
    const tidemark = openTidemark({
      workers: [worker],
      tenants: ['acme', 'globex'],
      secrets: (name, tenant) => (tenant === 'acme' ? `${name}-of-${tenant}-4f1a9` : undefined),
    })
    const [acme] = await tidemark.run('secret')
    expect(acme?.error?.message).toContain('the vendor refused')
    expect(JSON.stringify(acme)).not.toContain('4f1a9')
    const [globex] = await tidemark.run('secret', { tenant: 'globex' })
    expect(globex?.error).toMatchObject({ code: 'SECRET_MISSING' })
  })

  test('a store that cannot be opened is tried again', async () => {
    const fixture = new PeopleFixture()
    const store = storeUrl()
    const path = store.slice('sqlite:'.length)
    mkdirSync(path)
    const tidemark = openTidemark({ store, workers: [fixture.worker] })
    await expect(tidemark.run('people')).rejects.toMatchObject({ name: 'SyncError' })
    rmdirSync(path)
    expect(await tidemark.run('people')).toMatchObject([{ stopReason: 'complete' }])
  })

  test('an open store is used, and stays open', async () => {
    const store = await openStore(storeUrl())
    const fixture = new PeopleFixture()
    const tidemark = createTidemark({ store, workers: [fixture.worker], log: 'silent' })
    await tidemark.run('people')
    await tidemark.stop()
    expect(await store.databases()).toHaveLength(1)
    await store.close()
  })

  test('the rows of a query have the type of its schema, which checks them', async () => {
    const fixture = new PeopleFixture()
    fixture.records.set('ada', { name: 'Ada' })
    const tidemark = openTidemark({ workers: [fixture.worker] })
    await tidemark.run('people')
    const typed = await tidemark.query('select name from people', { schema: personSchema })
    expectTypeOf(typed.rows).toEqualTypeOf<ReadonlyArray<{ name: string }>>()
    expect(typed.rows).toEqual([{ name: 'Ada' }])
    await expect(
      tidemark.query("select name from people union all select 'Bob' order by name", { schema: onlyAda }),
    ).rejects.toMatchObject({ code: 'SCHEMA_MISMATCH', message: 'Row 2 of the query: not Ada' })
    const named = await tidemark.query<{ name: string }>('select name from people')
    expectTypeOf(named.rows).toEqualTypeOf<ReadonlyArray<{ name: string }>>()
    const untyped = await tidemark.query('select name from people')
    expectTypeOf(untyped.rows[0]!['name']).toEqualTypeOf<unknown>()
  })

  test('the type of the rows follows from the schema of the database', () => {
    const worker = new Worker()
    const typed = worker.database('typed', { schema: personSchema })
    const untyped = worker.database('untyped')
    const tidemark = openTidemark({ workers: [worker] })
    const reader = tidemark.database(typed)
    expectTypeOf<NonNullable<Awaited<ReturnType<typeof reader.row>>>['record']>().toEqualTypeOf<{ name: string }>()
    expect(tidemark.database(untyped).name).toBe('untyped')
  })
})

describe('wrong options', () => {
  const { worker } = new PeopleFixture()
  test.each([
    [{ store: 'sqlite:a.db', workers: [] }, 'workers must be a list of at least one Worker'],
    [{ store: 5, workers: [worker] }, 'store is 5'],
    [{ store: 'sqlite:a.db', workers: [worker], concurency: 2 }, 'Did you mean "concurrency"'],
    [{ store: 'sqlite:a.db', workers: [worker, worker] }, 'two workers are named "staff"'],
    [{ store: 'sqlite:a.db', workers: [worker], prefix: 'tidemark/' }, 'prefix is "tidemark/"'],
    [{ store: 'sqlite:a.db', workers: [worker], tenants: [] }, 'tenants must name at least one tenant'],
    [{ store: 'sqlite:a.db', workers: [worker], concurrency: 0 }, 'concurrency is 0'],
    [{ store: 'sqlite:a.db', workers: [worker], log: 'loud' }, 'log is "loud"'],
  ])('are refused before anything is opened: %#', (options, message) => {
    expect(() => createTidemark(options as never)).toThrow(message)
  })

  test('an unknown name is answered with the closest one', async () => {
    const tidemark = openTidemark({ workers: [worker] })
    await expect(tidemark.run('poeple')).rejects.toThrow('Did you mean "people"')
    expect(() => tidemark.database('peopl')).toThrow('Did you mean "people"')
    await expect(tidemark.destinations.run('warehouse')).rejects.toThrow('There is no destination "warehouse"')
  })
})

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

const personSchema = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value: unknown) => ({ value }),
    types: undefined as unknown as { readonly input: { name: string }; readonly output: { name: string } } | undefined,
  },
} as const

const onlyAda = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value: unknown) =>
      (value as { name: string }).name === 'Ada' ? { value } : { issues: [{ message: 'not Ada' }] },
  },
} as const
