import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Change } from '../../../src/contract/index.ts'
import { parseLsn } from '../../../src/sources/postgres-cdc/lsn.ts'
import {
  postgresCdc,
  type CdcState,
  type PostgresCdcOptions,
  type PostgresCdcSource,
} from '../../../src/sources/postgres-cdc/source.ts'
import { sql } from '../../../src/sources/sql/source.ts'
import { stringifyJson } from '../../../src/values/json.ts'
import { getSerializedRecord } from '../../../src/values/serialized-upsert.ts'
import { contextOf } from '../sql/cases.ts'
import { DatabaseFixture } from '../sql/database-fixture.ts'
import { CdcFixture } from './cdc-fixture.ts'

describe.skipIf(inject('postgresUrl') === '')('postgres-cdc', () => {
  let shop: CdcFixture
  let tables = 0
  const stages: DatabaseFixture[] = []
  beforeAll(async () => {
    shop = await CdcFixture.open()
  })
  afterAll(() => shop.close())
  afterEach(async () => {
    for (const stage of stages.splice(0)) await stage.close()
    await shop.exec('select pg_drop_replication_slot(slot_name) from pg_replication_slots where not active')
  })

  async function makeTable(
    columns = 'id int primary key, note text',
    rows = "select g, 'n' || g from generate_series(1, 20) g",
  ): Promise<string> {
    const name = `t${++tables}`
    await shop.exec(`create table ${name} (${columns}); insert into ${name} ${rows}`)
    return name
  }
  async function stageOf(
    options: Partial<PostgresCdcOptions> & Pick<PostgresCdcOptions, 'tables'>,
  ): Promise<DatabaseFixture> {
    const stage = await DatabaseFixture.open()
    stages.push(stage)
    const databases = options.tables
      .map(({ database }) => database)
      .filter((name): name is string => name !== undefined && name !== 'rows')
    return stage.track('rows', shop.source(options), databases)
  }
  /** An LSN whose snapshot no longer exists. */
  async function startOf(source: PostgresCdcSource): Promise<CdcState> {
    const cycle = new AbortController()
    const start = await source.anchor({ ...contextOf(), signal: cycle.signal })
    cycle.abort(new Error('over'))
    await expect
      .poll(async () => (await shop.client.query("select 1 from pg_locks where locktype = 'advisory'")).rowCount)
      .toBe(0)
    return start
  }
  /** The source's rows, read by another way than the one that is tested. */
  async function truth(table: string): Promise<Record<string, unknown>> {
    const { changes } = await sql({ url: shop.server.url }).listing(table).execute(undefined, contextOf())
    return Object.fromEntries(
      changes.map((change) => [change.key, (change as Extract<Change, { type: 'upsert' }>).record]),
    )
  }

  test('R42 R50 the rows as of the slot, then every change: inserts, updates, deletes, keys that change, all types alike', async () => {
    const table = await makeTable(
      'id int primary key, note text, big int8, price numeric, at timestamptz, b bytea, j jsonb, tags text[], sum int generated always as (id + 1) stored',
      `select g, 'n' || g, 9223372036854775800 + g % 8, g / 7.0, '2026-01-31 12:00:00.123456+00'::timestamptz + g * interval '1 microsecond', '\\x00ff', '{"n": 9007199254740993}', '{a,"b,c",NULL}' from generate_series(1, 20) g`,
    )
    const stage = await stageOf({ tables: [{ table }] })
    // It says that it has no place yet, and has the engine ask for the backfill.
    expect((await stage.run('rows')).error).toMatchObject({ code: 'HISTORY_LOST' })
    expect(
      (await stage.store.readCheckpoint({ worker: 'office', sync: 'rows-backfill' })).backfillNeeded,
    ).not.toBeNull()
    expect((await stage.complete('rows-backfill')).counts).toMatchObject({ created: 20 })
    await shop.exec(
      `update ${table} set note = 'changed' where id <= 5; delete from ${table} where id = 6; insert into ${table} (id, note) values (100, 'new'); update ${table} set id = 200 where id = 7`,
    )
    // Touched and not changed: what the log says of a row is what the table said.
    await shop.exec(`update ${table} set note = note where id between 10 and 15`)
    expect((await stage.complete('rows')).counts).toMatchObject({ created: 2, updated: 5, deleted: 2, unchanged: 6 })
    const rows = await truth(table)
    for (const row of Object.values(rows)) delete (row as Record<string, unknown>)['sum']
    expect(await stage.rows('rows')).toEqual(rows)
  })

  test('rows that are copied as bytes are to the last byte what the log says of them later', async () => {
    await shop.exec(`create type mood as enum ('so "so"', 'f\\ine'); create domain label as text`)
    const columns = [
      's int2',
      'i int4',
      'l int8',
      'f float8',
      'r float4',
      'n numeric',
      'b bool',
      't text',
      'c char(5)',
      'v varchar',
      'u uuid',
      'd date',
      'z timetz',
      'a timestamp',
      'at timestamptz',
      'p interval',
      'y bytea',
      'e mood',
      'o label',
      '"quo""ted ü" text',
    ]
    const values = [
      [
        '-32768',
        '2147483647',
        '9223372036854775807',
        '1e-7',
        '3.4e38',
        '1.50',
        'true',
        `E'"it''s" \\\\ \\t\\n\\r\\b\\f\\v \\x01 ü😀'`,
        `'ab'`,
        `''`,
        `'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'`,
        `'2026-01-31'`,
        `'12:00:00.5+02'`,
        `'2026-01-31 12:00:00.123456'`,
        `'2026-01-31 13:00:00.1+01'`,
        `'1 day 02:03:04.5'`,
        `'\\x00ff5c'`,
        `'so "so"'`,
        `E'\\\\N'`,
        `'x'`,
      ],
      [
        '0',
        '-1',
        '-9007199254740993',
        `'NaN'`,
        `'-Infinity'`,
        `'123456789012345678901234567890.000'`,
        'false',
        `''`,
        `''`,
        `E'\\u2028'`,
        `'00000000-0000-0000-0000-000000000000'`,
        `'infinity'`,
        `'00:00:00+00'`,
        `'-infinity'`,
        `'4713-01-01 00:00:00+00 BC'`,
        `'-1 mon'`,
        `''`,
        `'f\\ine'`,
        `'null'`,
        `'tab	bed'`,
      ],
      columns.map(() => 'null'),
      [
        '1',
        '1',
        '1',
        '0.1',
        '-0',
        '0',
        'true',
        `'t'`,
        `'c'`,
        `'v'`,
        'null',
        `'0001-01-01 BC'`,
        'null',
        `'99999-01-01 00:00:00'`,
        `'2026-07-01 00:00:00.000001+00'`,
        `'0'`,
        'null',
        'null',
        'null',
        'null',
      ],
    ]
    const table = await makeTable(
      `id int primary key, ${columns.join(', ')}`,
      `values ${values.map((row, id) => `(${[id, ...row].join(', ')})`).join(', ')}`,
    )
    const source = shop.source({ tables: [{ table, database: 'rows' }] })
    const context = contextOf()
    const start = await source.anchor(context)
    const { changes: copied } = await source.backfill(undefined, context)
    await shop.exec(`update ${table} set id = id`)
    const { changes: told } = await drain(source.delta, start)
    expect(copied).toHaveLength(values.length)
    for (const [index, change] of copied.entries()) {
      expect(getSerializedRecord(change)!.text).toBe(
        stringifyJson((told[index] as Extract<Change, { type: 'upsert' }>).record),
      )
      expect({ ...change }).toEqual(told[index])
    }
    // So that nothing has changed for a reader that lands both.
    const stage = await stageOf({ tables: [{ table }] })
    await stage.complete('rows-backfill')
    await shop.exec(`update ${table} set id = id`)
    expect((await stage.complete('rows')).counts).toMatchObject({ updated: 0, unchanged: values.length })
  })

  test('a page of large rows ends early, and the next one still shows the rows as of the slot', async () => {
    const table = await makeTable(
      'id int primary key, note text',
      "select g, 'n' || repeat('x', 100000) from generate_series(1, 500) g",
    )
    const source = shop.source({ tables: [{ table }] })
    const context = contextOf()
    await source.anchor(context)
    const first = await source.backfill(undefined, context)
    await shop.exec(`update ${table} set note = 'later'`)
    const second = await source.backfill(first.nextState, context)
    expect(first.changes.length).toBeGreaterThan(300)
    expect(first.changes.length).toBeLessThan(400)
    expect(second.hasMore).toBe(false)
    expect([...first.changes, ...second.changes].map(({ key }) => Number(key))).toEqual(
      Array.from({ length: 500 }, (_, index) => index + 1),
    )
    for (const change of second.changes)
      expect((change as Extract<Change, { type: 'upsert' }>).record['note']).toHaveLength(100_001)
  })

  test('R42 nothing is acknowledged before it is landed', async () => {
    const table = await makeTable()
    const names = shop.names()
    const source = postgresCdc({ url: shop.server.url, ...names, tables: [{ table }], pageSize: 10 })
    const start = await startOf(source)
    for (let id = 100; id < 140; id++) await shop.exec(`insert into ${table} values (${id}, 'x')`)
    // As the engine calls it: the second page is asked for while the first is being landed.
    const life = new AbortController()
    const context = { ...contextOf(), signal: life.signal }
    const first = await source.delta(start, context)
    expect(first).toMatchObject({ hasMore: true, changes: { length: 10 } })
    const second = await source.delta(first.nextState, context)
    expect(parseLsn(await shop.confirmed(names.slot))).toBe(parseLsn(start.lsn))
    const third = await source.delta(second.nextState, context)
    await expect.poll(() => shop.confirmed(names.slot)).toBe(first.nextState!.lsn)
    // The process dies here; what it had landed is all that the next one knows.
    life.abort(new Error('killed'))
    const heir = postgresCdc({ url: shop.server.url, ...names, tables: [{ table }], pageSize: 10 })
    const seen = await drain(heir.delta, second.nextState!)
    expect(seen.changes.map(({ key }) => Number(key))).toEqual(Array.from({ length: 20 }, (_, index) => 120 + index))
    expect(third.changes.map(({ key }) => Number(key))).toEqual(seen.changes.slice(0, 10).map(({ key }) => Number(key)))
    // And what was landed last is acknowledged by the next cycle, also when that finds nothing.
    const quiet = await heir.delta(seen.state, { ...contextOf(), cycle: { ...contextOf().cycle, id: 2 } })
    expect(quiet).toMatchObject({ changes: [], hasMore: false })
    expect(parseLsn(await shop.confirmed(names.slot)) >= parseLsn(seen.state.lsn)).toBe(true)
  })

  test('a page ends with a transaction; one larger than ten pages is divided, and its place moves only at its end', async () => {
    const table = await makeTable()
    const readers = []
    for (const isFresh of [false, true]) {
      const names = shop.names()
      const make = () => postgresCdc({ url: shop.server.url, ...names, tables: [{ table }], pageSize: 5 })
      readers.push({ isFresh, make, start: await startOf(make()) })
    }
    for (let n = 0; n < 4; n++)
      await shop.exec(`insert into ${table} select 1000 + ${n} * 3 + g from generate_series(0, 2) g`)
    await shop.exec(`insert into ${table} select 2000 + g, 'large' from generate_series(0, 119) g`)
    await shop.exec(`update ${table} set note = 'last' where id = 2119`)
    for (const { isFresh, make, start } of readers) {
      const kept = make()
      const context = contextOf()
      const pages: { size: number; state: CdcState }[] = []
      const keys: string[] = []
      for (let state = start, hasMore = true; hasMore;) {
        // Also with a process of its own for every page.
        const life = new AbortController()
        const page = await (isFresh
          ? make().delta(state, { ...contextOf(), signal: life.signal })
          : kept.delta(state, context))
        life.abort(new Error('killed'))
        keys.push(...page.changes.map(({ key }) => key!))
        ;({ nextState: state = state, hasMore } = page)
        if (page.changes.length > 0) pages.push({ size: page.changes.length, state })
      }
      expect(keys).toEqual([
        ...Array.from({ length: 12 }, (_, index) => String(1000 + index)),
        ...Array.from({ length: 120 }, (_, index) => String(2000 + index)),
        '2119',
      ])
      expect(
        pages.map(({ size }) => size),
        String(isFresh),
      ).toEqual([6, 6, 50, 50, 20, 1])
      const { commitLsn } = pages[2]!.state.transaction!
      expect(pages.map(({ state }) => state.transaction ?? null)).toEqual([
        null,
        null,
        { commitLsn, done: 50 },
        { commitLsn, done: 100 },
        null,
        null,
      ])
      for (const { state } of pages.slice(0, 4)) expect(parseLsn(state.lsn)).toBeLessThan(parseLsn(commitLsn))
      expect(parseLsn(pages[4]!.state.lsn)).toBeGreaterThan(parseLsn(commitLsn))
    }
  })

  test('a page that is asked for again beside itself is read once more, and the next goes on from it', async () => {
    const table = await makeTable()
    const source = shop.source({ tables: [{ table }], pageSize: 1 })
    const start = await startOf(source)
    for (const id of [31, 32, 33, 34]) await shop.exec(`insert into ${table} values (${id}, 'x')`)
    const context = contextOf()
    const first = await source.delta(start, context)
    const slow = source.delta(first.nextState, context).then(
      () => 'answered',
      () => 'given up',
    )
    const second = await source.delta(first.nextState, context)
    expect(second.changes.map(({ key }) => key)).toEqual(['32'])
    await slow
    expect((await drain(source.delta, second.nextState!)).changes.map(({ key }) => key)).toEqual(['33', '34'])
  })

  test('a large value that did not change is not in the log, and is in the record all the same', async () => {
    const large = "'start ' || repeat(md5(g::text), 300)"
    const columns = 'id int primary key, note text, code text not null unique, big text'
    const rows = `select g, 'n' || g, 'c' || g, ${large} from generate_series(1, 6) g`
    const [plain, full, indexed] = [
      await makeTable(columns, rows),
      await makeTable(columns, rows),
      await makeTable(columns, rows),
    ]
    for (const table of [plain, full, indexed])
      await shop.exec(`alter table ${table} alter big set storage external; update ${table} set big = big || '!'`)
    await shop.exec(
      `alter table ${full} replica identity full; create unique index ${indexed}_both on ${indexed} (id, code); alter table ${indexed} replica identity using index ${indexed}_both; alter table ${indexed} alter code set not null`,
    )
    const stage = await stageOf({
      tables: [
        { table: plain, database: 'plain' },
        { table: full, database: 'full' },
        { table: indexed, database: 'indexed' },
      ],
      pageSize: 1,
    })
    await stage.complete('rows-backfill')
    for (const table of [plain, full, indexed]) {
      // Each a transaction of its own, and so a page of its own.
      for (const statement of [
        "set note = 'first' where id = 1",
        "set id = 20, note = 'moved' where id = 2",
        "set note = 'gone' where id = 3",
      ])
        await shop.exec(`update ${table} ${statement}`)
      await shop.exec(`delete from ${table} where id = 3`)
      await shop.exec(
        `begin; insert into ${table} values (30, 'a', 'x', repeat('y', 9000)); update ${table} set note = 'b' where id = 30; commit`,
      )
      await shop.exec(
        `update ${table} set note = 'before' where id = 4; update ${table} set big = repeat('z', 9000) where id = 4; update ${table} set code = 'C5' where id = 5`,
      )
    }
    await stage.complete('rows')
    for (const [table, database] of [
      [plain, 'plain'],
      [full, 'full'],
      [indexed, 'indexed'],
    ] as const)
      expect(await stage.rows(database), database).toEqual(await truth(table))
    const feed = await stage.store.changes({ after: 0, limit: 1_000 })
    // Not for a moment was there a record without its large value.
    for (const entry of feed)
      if (entry.text !== null) expect(JSON.parse(entry.text)).toMatchObject({ big: expect.stringMatching(/.{9}/) })
  })

  test('several tables go to several databases, in one order', async () => {
    const [a, b] = [
      await makeTable(),
      await makeTable('x int, y text, primary key (x, y)', "values (1, 'p'), (1, 'q')"),
    ]
    const stage = await stageOf({ tables: [{ table: a }, { table: `public.${b}`, database: 'pairs' }], pageSize: 2 })
    expect((await stage.complete('rows-backfill')).counts).toMatchObject({ created: 22 })
    await shop.exec(
      `begin; insert into ${a} values (50, 'x'); update ${b} set y = 'r' where y = 'q'; delete from ${a} where id = 1; commit`,
    )
    expect((await stage.complete('rows')).counts).toMatchObject({ created: 2, deleted: 2 })
    expect(await stage.rows('rows')).toEqual(await truth(a))
    expect(await stage.rows('pairs')).toEqual(await truth(b))
    expect(Object.keys(await stage.rows('pairs'))).toEqual(['["1","p"]', '["1","r"]'])
  })

  test('a new column is followed, also in rows that were not touched since', async () => {
    const table = await makeTable()
    const stage = await stageOf({ tables: [{ table }], pageSize: 1 })
    await stage.complete('rows-backfill')
    await shop.exec(
      `update ${table} set note = 'before' where id = 1; alter table ${table} add column extra int default 7; insert into ${table} values (30, 'after', 8); alter table ${table} drop column note`,
    )
    await stage.complete('rows')
    expect(await stage.rows('rows')).toEqual(await truth(table))
    expect((await stage.rows('rows'))['2']).toEqual({ id: 2, extra: 7 })
    // Once is enough.
    await shop.exec(`update ${table} set extra = 9 where id = 3`)
    expect((await stage.complete('rows')).counts).toMatchObject({ updated: 1, unchanged: 0 })
  })

  test('a truncated table is never passed over: the history is lost, and the backfill sweeps', async () => {
    const table = await makeTable()
    const stage = await stageOf({ tables: [{ table }] })
    await stage.complete('rows-backfill')
    await shop.exec(`truncate ${table}; insert into ${table} values (7, 'new'), (99, 'other')`)
    const { error } = await stage.run('rows')
    expect(error).toMatchObject({ code: 'HISTORY_LOST', message: expect.stringContaining(`${table} was truncated`) })
    expect(await stage.state('rows')).toBeNull()
    // Nineteen of twenty rows would go, and that is asked for first.
    expect((await stage.run('rows-backfill')).error).toMatchObject({ code: 'MASS_DELETE' })
    expect((await stage.complete('rows-backfill', { allowDeletes: true })).counts).toMatchObject({ swept: 19 })
    await shop.exec(`insert into ${table} values (8, 'later')`)
    expect((await stage.complete('rows')).counts).toMatchObject({ created: 1 })
    expect(await stage.rows('rows')).toEqual(await truth(table))
  })

  test.each([
    ['is gone', (slot: string) => `select pg_drop_replication_slot('${slot}')`, /does not exist/],
    [
      'was read by another client',
      (slot: string) => `select pg_replication_slot_advance('${slot}', pg_current_wal_lsn())`,
      /acknowledged beyond the committed state/,
    ],
    ['no longer publishes the table', (slot: string) => `drop publication ${slot}`, /not part of the publication/],
  ])(
    'R42 a slot that %s is noticed: the history is lost, the backfill makes up for it, and then it goes on',
    async (_, spoil, message) => {
      const table = await makeTable()
      const names = shop.names()
      const stage = await stageOf({ tables: [{ table }], ...names })
      await stage.complete('rows-backfill')
      await shop.exec(`insert into ${table} values (50, 'unseen'); delete from ${table} where id = 1`)
      await shop.exec(spoil(names.slot))
      await shop.exec(`insert into ${table} values (51, 'x')`)
      expect((await stage.run('rows')).error).toMatchObject({
        code: 'HISTORY_LOST',
        message: expect.stringMatching(message),
      })
      await stage.complete('rows-backfill')
      await shop.exec(`insert into ${table} values (52, 'y')`)
      expect((await stage.complete('rows')).counts).toMatchObject({ created: 1 })
      expect(await stage.rows('rows')).toEqual(await truth(table))
    },
  )

  test('the log of other tables does not pile up behind a quiet one', async () => {
    const [quiet, busy] = [await makeTable(), await makeTable()]
    const names = shop.names()
    const stage = await stageOf({ tables: [{ table: quiet }], ...names })
    await stage.complete('rows-backfill')
    await stage.complete('rows')
    const before = (await stage.state('rows')).lsn
    await shop.exec(`insert into ${busy} select g, repeat('x', 1000) from generate_series(1000, 2000) g`)
    await stage.complete('rows')
    expect(parseLsn((await stage.state('rows')).lsn) - parseLsn(before)).toBeGreaterThan(1_000_000n)
    await stage.complete('rows')
    expect(parseLsn(await shop.confirmed(names.slot)) - parseLsn(before)).toBeGreaterThan(1_000_000n)
    // How far it is behind is said with every cycle.
    expect(stage.logged.findLast((line) => line.startsWith('replication slot'))).toMatch(/"lagBytes":\d+/)
  })

  test('while the rows are read as of the slot, changes wait; when that reader is gone, they do not', async () => {
    const table = await makeTable()
    const names = shop.names()
    const make = () => postgresCdc({ url: shop.server.url, ...names, tables: [{ table }], pageSize: 1 })
    const reader = make()
    const cycle = new AbortController()
    const context = { ...contextOf(), signal: cycle.signal }
    const start = await reader.anchor(context)
    const first = await reader.backfill(undefined, context)
    await shop.exec(`update ${table} set note = 'later'`)
    expect(await make().delta(start, contextOf())).toMatchObject({
      changes: [],
      hasMore: false,
      endReason: 'snapshot_running',
    })
    const second = await reader.backfill(first.nextState, context)
    expect(second.changes).toMatchObject(
      Array.from({ length: 5 }, (_, index) => ({ key: String(index + 6), record: { note: `n${index + 6}` } })),
    )
    cycle.abort(new Error('killed'))
    // As of now for the process that resumes it.
    expect((await make().backfill(second.nextState, contextOf())).changes[0]).toMatchObject({
      record: { note: 'later' },
    })
    await expect.poll(async () => (await drain(make().delta, start)).changes.length).toBe(20)
  })

  test('what cannot be followed is refused with the statement that helps', async () => {
    const [bare, key] = [await makeTable('x int', 'values (1)'), await makeTable()]
    await shop.exec(
      `create view ${key}_view as select * from ${key}; create role guest_${key} login; grant select on ${key} to guest_${key}; create table ${key}_none (id int primary key); alter table ${key}_none replica identity nothing`,
    )
    const ask = (options: Partial<PostgresCdcOptions> & Pick<PostgresCdcOptions, 'tables'>): Promise<unknown> =>
      shop.source(options).anchor(contextOf())
    await expect(ask({ tables: [{ table: bare }] })).rejects.toMatchObject({
      code: 'SYNC_INVALID',
      message: expect.stringContaining('no primary key'),
    })
    await expect(ask({ tables: [{ table: bare, key: ['x'] }] })).rejects.toMatchObject({
      code: 'SYNC_INVALID',
      message: expect.stringContaining('REPLICA IDENTITY FULL'),
    })
    await expect(ask({ tables: [{ table: `${key}_none` }] })).rejects.toMatchObject({
      code: 'SYNC_INVALID',
      message: expect.stringContaining('REPLICA IDENTITY FULL'),
    })
    await expect(ask({ tables: [{ table: `${key}_view` }] })).rejects.toMatchObject({ code: 'SYNC_INVALID' })
    await expect(ask({ tables: [{ table: 'nowhere' }] })).rejects.toMatchObject({ code: 'SOURCE_NOT_FOUND' })
    const guest = Object.assign(new URL(shop.server.url), { username: `guest_${key}` }).href
    await expect(ask({ url: guest, tables: [{ table: key }] })).rejects.toMatchObject({
      code: 'SOURCE_FORBIDDEN',
      message: expect.stringContaining('CREATE PUBLICATION'),
    })
    await expect(
      ask({ url: inject('postgresUrl'), tables: [{ table: ['pg_catalog', 'pg_class'] }] }),
    ).rejects.toMatchObject({ code: 'SYNC_INVALID', message: expect.stringContaining('wal_level = logical') })
    expect(() => postgresCdc({ url: 'X', tables: [] })).toThrow(/at least one table/)
    expect(() => postgresCdc({ url: 'X', slot: 'No"pe', tables: [{ table: key }] })).toThrow(/slot/)
  })
})

describe.skipIf(inject('postgresUrl') === '')('postgres-cdc on a server short of space', () => {
  test('a slot that the server gave up is noticed', async () => {
    const shop = await CdcFixture.open({ max_slot_wal_keep_size: '1MB', min_wal_size: '32MB', max_wal_size: '32MB' })
    const stage = await DatabaseFixture.open()
    try {
      await shop.exec('create table t (id int primary key); insert into t values (1)')
      stage.track('rows', shop.source({ tables: [{ table: 't' }] }))
      await stage.complete('rows-backfill')
      for (let id = 2; id < 8; id++) await shop.exec(`insert into t values (${id}); select pg_switch_wal()`)
      await shop.exec('checkpoint')
      expect((await stage.run('rows')).error).toMatchObject({
        code: 'HISTORY_LOST',
        message: expect.stringContaining('because its log had grown too large'),
      })
      await stage.complete('rows-backfill')
      expect(Object.keys(await stage.rows('rows'))).toHaveLength(7)
      await shop.exec('delete from t where id = 1')
      expect((await stage.complete('rows')).counts).toMatchObject({ deleted: 1 })
    } finally {
      await stage.close()
      await shop.close()
    }
  })
})

async function drain(
  delta: ReturnType<typeof postgresCdc>['delta'],
  start: CdcState,
): Promise<{ changes: Change[]; state: CdcState }> {
  const changes: Change[] = []
  const context = contextOf()
  for (let state = start; ;) {
    const page = await delta(state, context)
    changes.push(...page.changes)
    state = page.nextState!
    if (!page.hasMore) return { changes, state }
  }
}
