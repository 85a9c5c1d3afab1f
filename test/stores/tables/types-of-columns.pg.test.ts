import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { z } from 'zod'
import { runCycle } from '../../../src/worker/run-cycle.ts'
import type { Schema } from '../../../src/worker/schema.ts'
import { Worker } from '../../../src/worker/worker.ts'
import type { Change, Execute, JsonObject } from '../../../src/contract/index.ts'
import { sql } from '../../../src/sources/sql/source.ts'
import { createDatabase, dropDatabase } from '../../setup/postgres-server.ts'
import { STORE_FIXTURES, type StoreFixture } from './store-fixture.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }

describe.each(Object.keys(STORE_FIXTURES))('where the types of columns come from, on the %s store', (kind) => {
  let place: StoreFixture
  let worker: Worker
  beforeEach(async () => {
    place = await STORE_FIXTURES[kind]!()
    worker = new Worker({ name: 'types' })
  })
  afterEach(() => place.close())

  const onBoth = (postgres: Record<string, string>, sqlite: Record<string, string>): Record<string, string> =>
    kind === 'postgres' ? postgres : sqlite

  async function complete(sync: string): Promise<void> {
    const { stopReason, error } = await runCycle(worker, sync, { store: place.store, log })
    expect({ stopReason, error }).toEqual({ stopReason: 'complete', error: null })
  }

  const JSON_SCHEMA: Schema = {
    type: 'object',
    required: ['id', 'price'],
    properties: {
      id: { type: 'integer' },
      name: { type: ['string', 'null'] },
      at: { type: 'string', format: 'date-time' },
      on: { type: 'string', format: 'date' },
      uid: { $ref: '#/$defs/uid' },
      price: { type: 'string', format: 'decimal' },
      total: { type: 'number', format: 'decimal' },
      ratio: { anyOf: [{ type: 'number' }, { type: 'null' }] },
      file: { type: 'string', contentEncoding: 'base64' },
      tags: { type: 'array', items: { type: 'string' } },
      ids: { type: 'array', items: { type: 'integer' } },
      lines: { type: 'array', items: { type: 'object' } },
      address: { type: 'object' },
      active: { type: 'boolean' },
      state: { enum: ['on', 'off', null] },
      any: {},
      mixed: { type: ['string', 'integer'] },
      clock: { type: 'string', format: 'time-local' },
      local: { type: 'string', format: 'date-time-local' },
      opens: { type: 'string', format: 'time' },
    },
    $defs: { uid: { type: 'string', format: 'uuid' } },
  }
  const ZOD = z.object({
    id: z.int(),
    name: z.string().nullable(),
    at: z.iso.datetime(),
    on: z.iso.date(),
    uid: z.uuid(),
    ratio: z.number(),
    file: z.base64(),
    tags: z.array(z.string()),
    active: z.boolean(),
    address: z.object({ city: z.string() }),
    state: z.enum(['on', 'off']),
  })

  test('a JSON Schema declares them, before the first record and regardless of it', async () => {
    const database = worker.database('things', { schema: JSON_SCHEMA })
    worker.sync('none', { database, mode: 'incremental', execute: pageOf([]) })
    await complete('none')
    expect(await place.columns()).toEqual(
      onBoth(
        {
          id: 'bigint',
          name: 'text',
          at: 'timestamp with time zone',
          on: 'date',
          uid: 'uuid',
          price: 'numeric',
          total: 'numeric',
          ratio: 'double precision',
          file: 'bytea',
          tags: 'text[]',
          ids: 'int8[]',
          lines: 'jsonb',
          address: 'jsonb',
          active: 'boolean',
          state: 'text',
          clock: 'time without time zone',
          local: 'timestamp without time zone',
          opens: 'text',
        },
        {
          id: 'INTEGER',
          name: 'TEXT',
          at: 'datetime',
          on: 'date',
          uid: 'uuid',
          price: 'TEXT',
          total: 'TEXT',
          ratio: 'REAL',
          file: 'BLOB',
          tags: 'json',
          ids: 'json',
          lines: 'json',
          address: 'json',
          active: 'boolean',
          state: 'TEXT',
          clock: 'time',
          local: 'datetime',
          opens: 'TEXT',
        },
      ),
    )
    const record = {
      id: 1,
      price: '1.50',
      ratio: 2,
      name: '2026-01-31',
      total: 1.5,
      at: '2026-01-31T12:00:00.5Z',
      any: 5,
      mixed: 'x',
      tags: ['a', 'b'],
      local: '2026-01-31T12:00:00',
    }
    worker.sync('some', { database, mode: 'incremental', execute: pageOf([record]) })
    await complete('some')
    expect(await place.columns()).toMatchObject(
      onBoth({ name: 'text', any: 'bigint', mixed: 'text' }, { name: 'TEXT', any: 'INTEGER', mixed: 'TEXT' }),
    )
    expect(JSON.parse((await place.store.row('things', '1'))!.text)).toEqual(record)
    expect(await place.sql('select 1 from things where _extra is not null')).toEqual([])
  })

  test('a Standard Schema that converts to JSON Schema declares them', async () => {
    const database = worker.database('things', { schema: ZOD, key: ['id'] })
    worker.sync('none', { database, mode: 'incremental', execute: pageOf([]) })
    await complete('none')
    expect(await place.columns()).toEqual(
      onBoth(
        {
          id: 'bigint not null',
          name: 'text',
          at: 'timestamp with time zone',
          on: 'date',
          uid: 'uuid',
          ratio: 'double precision',
          file: 'bytea',
          tags: 'text[]',
          active: 'boolean',
          address: 'jsonb',
          state: 'text',
        },
        {
          id: 'INTEGER not null',
          name: 'TEXT',
          at: 'datetime',
          on: 'date',
          uid: 'uuid',
          ratio: 'REAL',
          file: 'BLOB',
          tags: 'json',
          active: 'boolean',
          address: 'json',
          state: 'TEXT',
        },
      ),
    )
  })

  test('a Standard Schema that does not convert leaves them to the values', async () => {
    const schema: Schema = {
      '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) as object },
    }
    worker.sync('some', {
      database: worker.database('things', { schema }),
      mode: 'incremental',
      execute: pageOf([{ id: 1 }]),
    })
    await complete('some')
    expect(await place.columns()).toEqual(onBoth({ id: 'bigint' }, { id: 'INTEGER' }))
  })

  test('a record without a part of its declared key is quarantined, and the others land', async () => {
    worker.sync('some', {
      database: worker.database('things', { key: ['shop', 'id'] }),
      mode: 'incremental',
      execute: pageOf([{ shop: 1, id: 1 }, { shop: null, id: 2 }, { shop: 1 }]),
    })
    await complete('some')
    expect(await place.columns()).toEqual(
      onBoth({ shop: 'bigint not null', id: 'bigint not null' }, { shop: 'INTEGER not null', id: 'INTEGER not null' }),
    )
    expect(
      (await place.store.quarantineEntries())
        .map(({ code, message }) => `${code} ${message}`)
        .toSorted((a, b) => (a < b ? -1 : 1)),
    ).toEqual([
      'SCHEMA_MISMATCH id: it is part of the key, but the record has no value for it',
      'SCHEMA_MISMATCH shop: it is part of the key, but the record has no value for it',
    ])
  })

  test('the metadata of the source applies where no schema does, for fields that records have', async () => {
    const tables = [
      {
        columns: [
          { name: 'id', type: 'text' },
          { name: 'price', type: 'decimal' },
          { name: 'dropped', type: 'text' },
        ],
        key: ['id'],
      },
    ] as const
    const execute: Execute = async () => ({
      changes: changesOf([{ id: 1, price: null }]),
      hasMore: false,
      tables,
      nextState: {},
    })
    worker.sync('some', {
      database: worker.database('things', { schema: { type: 'object', properties: { id: { type: 'integer' } } } }),
      mode: 'incremental',
      execute,
    })
    await complete('some')
    expect(await place.columns()).toEqual(
      onBoth({ id: 'bigint not null', price: 'numeric' }, { id: 'INTEGER not null', price: 'TEXT' }),
    )
  })

  test.each([
    ['no array', {}],
    ['an unknown type', [{ columns: [{ name: 'a', type: 'money' }] }]],
    ['a key of numbers', [{ columns: [], key: [1] }]],
    ['another database', [{ database: 'others', columns: [] }]],
  ])('invalid metadata fails the cycle: %s', async (_, tables) => {
    worker.sync('some', {
      database: worker.database('things'),
      mode: 'incremental',
      execute: async () => ({ changes: [], hasMore: false, tables: tables as never, nextState: {} }),
    })
    const { error } = await runCycle(worker, 'some', { store: place.store, log })
    expect(['PAGE_INVALID', 'DATABASE_UNKNOWN']).toContain(error?.code)
  })

  test('a copy of a PostgreSQL table has the types of the table, and every value of it', async () => {
    const url = await createDatabase(inject('postgresUrl'))
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      await client.query(`create table things (shop int4, id uuid, price numeric(20, 2), exact numeric, at timestamptz, local timestamp, file bytea, "on" date, yes boolean, tags text[], ids int8[],
          doc jsonb, text_doc json, ratio float8, clock time, name varchar(20), moods text[], primary key (shop, id));
        insert into things select n, gen_random_uuid(), n * 1.1, n::numeric / 7, '2026-01-31 12:00:00.1+00'::timestamptz + n * interval '1.000001 s', '2026-01-31 12:00:00'::timestamp + n * interval '0.1 s',
          decode(md5(n::text), 'hex'), date '2026-01-31' + n, n % 2 = 0, array['a', null, 'x' || n], array[n, 9223372036854775807], jsonb_build_object('n', n), '[1]', n / 3.0, '12:00:00'::time + n * interval '0.5 s',
          'name ' || n, null from generate_series(1, 300) n`)
      const shop = sql({ url })
      worker.sync('things', { database: worker.database('things'), ...shop.listing('public.things') })
      await complete('things')
      expect(await place.columns()).toEqual(
        onBoth(
          {
            shop: 'bigint not null',
            id: 'uuid not null',
            price: 'numeric',
            exact: 'numeric',
            at: 'timestamp with time zone',
            local: 'timestamp without time zone',
            file: 'bytea',
            on: 'date',
            yes: 'boolean',
            tags: 'text[]',
            ids: 'int8[]',
            doc: 'jsonb',
            text_doc: 'jsonb',
            ratio: 'double precision',
            clock: 'time without time zone',
            name: 'text',
            moods: 'text[]',
          },
          {
            shop: 'INTEGER not null',
            id: 'uuid not null',
            price: 'TEXT',
            exact: 'TEXT',
            at: 'datetime',
            local: 'datetime',
            file: 'BLOB',
            on: 'date',
            yes: 'boolean',
            tags: 'json',
            ids: 'json',
            doc: 'json',
            text_doc: 'json',
            ratio: 'REAL',
            clock: 'time',
            name: 'TEXT',
            moods: 'json',
          },
        ),
      )
      expect(await place.sql('select _extra from things where _extra is not null')).toEqual([])
      if (kind === 'postgres') {
        const columns =
          'shop::int4 as shop, id, price, exact, at, local, file, "on", yes, tags, ids, doc, text_doc::jsonb as text_doc, ratio, clock, name, moods'
        expect(await place.sql(`select ${columns} from things order by shop`)).toEqual(
          (await client.query(`select ${columns} from things order by shop`)).rows,
        )
      }
      await client.query("update things set price = price + 1, tags = '{}' where shop <= 20")
      await complete('things')
      expect(await place.sql('select count(*) as n from things_history').then(([row]) => Number(row!['n']))).toBe(20)
      expect(await place.sql('select _extra from things where _extra is not null')).toEqual([])
    } finally {
      await client.end()
      await dropDatabase(inject('postgresUrl'), url)
    }
  })
})

function changesOf(records: readonly JsonObject[]): Change[] {
  return records.map((record, n) => ({ type: 'upsert', key: String(n + 1), record }))
}

function pageOf(records: readonly JsonObject[]): Execute {
  return async () => ({ changes: changesOf(records), hasMore: false, nextState: {} })
}
