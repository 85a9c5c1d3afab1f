import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { runCycle } from '../../../src/worker/run-cycle.ts'
import { Worker } from '../../../src/worker/worker.ts'
import type { Change, Execute, JsonObject, Mode, Page, Store } from '../../../src/contract/index.ts'
import { RecordShapes } from '../../../src/engine/record-shapes.ts'
import { RowSerializer } from '../../../src/sources/kit/postgres/row-serializer.ts'
import { PostgresSession } from '../../../src/sources/kit/postgres/session.ts'
import { getDecoder } from '../../../src/sources/kit/postgres/decode-values.ts'
import { sql } from '../../../src/sources/sql/source.ts'
import { openPostgresStore } from '../../../src/stores/postgres/store.ts'
import { equalsJson, stringifyJson } from '../../../src/values/json.ts'
import { getSerializedRecord } from '../../../src/values/serialized-upsert.ts'
import { buildPackage } from '../../process/build.ts'
import { Child } from '../../process/child.ts'
import { contextOf } from './cases.ts'
import { SOURCES, type Source } from './servers.ts'

/** Rows that are read as bytes must be what the same rows are when they are decoded: to the last byte, and in the store. */
describe.skipIf(inject('postgresUrl') === '')('sql: rows of PostgreSQL as bytes', () => {
  let source: Source
  let writer: pg.Client
  beforeAll(async () => {
    source = await SOURCES.find(({ name }) => name === 'postgres')!.open(inject('postgresUrl'))
    writer = new pg.Client({ connectionString: source.url })
    await writer.connect()
    await source.exec(`create type mood as enum ('so "so"', 'f\\ine', 'tab\there'); create domain label as text; create domain rank as int8; create domain share as float8;
      create domain cents as numeric(20, 2); create domain moment as timestamptz; create domain deep as label`)
  })
  afterAll(async () => {
    await writer?.end()
    await source?.close()
  })

  /** Every row decoded value by value, by its key. */
  async function decoded(table: string, columns = '*'): Promise<Map<string, JsonObject>> {
    await using session = await PostgresSession.open(source.url, new AbortController().signal)
    await session.query('BEGIN READ ONLY')
    const records = new Map<string, JsonObject>()
    for await (const rows of session.streamRecords(`SELECT ${columns} FROM ${table}`, []))
      for (const { record } of rows) records.set(String(record['id']), record)
    return records
  }

  async function pagesOf<State>(execute: Execute<State>, state?: State): Promise<Page<State>> {
    const changes: Change[] = []
    for (;;) {
      const page = await execute(state, contextOf())
      changes.push(...page.changes)
      state = page.nextState
      if (!page.hasMore) return { ...page, changes }
    }
  }

  async function fill(
    table: string,
    rows: readonly (readonly (string | null)[])[],
    types: readonly string[],
  ): Promise<void> {
    for (const [id, row] of rows.entries()) {
      await writer.query(
        `insert into ${table} values (${id}, ${types.map((type, index) => `$${index + 1}::text::${type}`).join(', ')})`,
        [...row],
      )
    }
  }

  test('R28 the text is that of the decoded record, whatever the types and values; so are its kinds, and the record on access', async () => {
    const types = Object.keys(VALUES)
    await source.exec(
      `create table everything (id int primary key, ${types.map((type, index) => `"c${index} ${type.replaceAll('"', '')}" ${type}`).join(', ')}, "quo""ted \\ \t ü" text, __proto__ int)`,
    )
    const seed = Number(process.env['TIDEMARK_SEED'] ?? 4711)
    const rows = fc.sample(fc.tuple(...Object.values(VALUES).map((value) => fc.option(value, { freq: 6 }))), {
      numRuns: 150,
      seed,
    })
    // Every value of the lists at least once, whatever the sample.
    for (let at = 0; at < 24; at++)
      rows.push(types.map((type) => LISTS[type]?.[at % LISTS[type]!.length] ?? null) as never)
    await fill('everything', rows, types)
    await source.exec(`update everything set "quo""ted \\ \t ü" = 'x' || id, __proto__ = id where id % 2 = 0`)

    const expected = await decoded('everything')
    const { changes } = await pagesOf(sql({ url: source.url }).listing('everything', { pageSize: 50 }).execute)
    expect(changes).toHaveLength(rows.length)
    for (const change of changes) {
      const record = expected.get(change.key!)!
      const written = getSerializedRecord(change)!
      const [told, met] = [new RecordShapes(), new RecordShapes()]
      told.addColumns('d', written.shape.columns, new RecordShapes())
      met.addRecord('d', record, new RecordShapes())
      expect(written.text, `seed ${seed}`).toBe(stringifyJson(record))
      expect(told.columns()).toEqual(met.columns())
      expect((change as Extract<Change, { type: 'upsert' }>).record).toStrictEqual(record)
    }
  })

  test('numbers with more digits than needed, as older servers write them, become the numbers they are', () => {
    const decode = getDecoder(701, new Map())
    const writer = RowSerializer.create(
      [
        { name: 'a', oid: 701, decode },
        { name: 'b', oid: 701, decode },
        { name: 'c', oid: 701, decode },
      ],
      new Map(),
      ['b'],
    )!
    const { serialized: written, record } = writer.serialize(
      Buffer.from('1.1000000000000001\t100000000000000000\t-0\n'),
    )
    expect(written.text).toBe('{"a":1.1,"b":100000000000000000,"c":-0}')
    expect(record).toEqual({ b: 1e17 })
  })

  test('a table whose values may have depth, or whose members have another order, is decoded', async () => {
    await source.exec(`create table bags (id int primary key, tags text[]); insert into bags values (1, '{a}');
      create table papers (id int primary key, body jsonb); insert into papers values (1, '{"a": [1]}');
      create domain body as jsonb; create table sheets (id int primary key, body body); insert into sheets values (1, '{}');
      create table years (id int primary key, "2026" text, "10" text); insert into years values (1, 'a', 'b')`)
    for (const table of ['bags', 'papers', 'sheets', 'years']) {
      const {
        changes: [change],
      } = await sql({ url: source.url }).listing(table).execute(undefined, contextOf())
      expect(getSerializedRecord(change!), table).toBeNull()
      expect(change).toEqual({ type: 'upsert', key: '1', record: (await decoded(table)).get('1') })
    }
    // Without the columns in question it need not be.
    const {
      changes: [change],
    } = await sql({ url: source.url })
      .listing('bags', { columns: ['id'] })
      .execute(undefined, contextOf())
    expect(getSerializedRecord(change!)!.text).toBe('{"id":1}')
  })

  test('cursors in the statement are written as they are bound elsewhere: quotes, backslashes, bytes, moments, and a NUL that no database has', async () => {
    const words = ["it's", 'back\\slash', 'a$1b', '"x"', 'tab\tbed', "\\'; drop table words_; --", '\\N', 'ü😀']
    await source.exec(
      'create table words_ (word text collate "C", at timestamptz, b bytea, n numeric, primary key (word, at, b, n))',
    )
    for (const word of words)
      await writer.query(
        "insert into words_ values ($1, '2026-01-31 13:00:00.123456+01', '\\x00ff5c', 1.50), ($1, '2026-01-31 13:00:00.123457+01', '\\x', 1.5)",
        [word],
      )
    const { execute } = sql({ url: source.url }).listing('words_', { pageSize: 3 })
    const { changes } = await pagesOf(execute)
    expect(changes.map(({ key }) => (JSON.parse(key!) as string[])[0]!)).toEqual(
      words.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))).flatMap((word) => [word, word]),
    )
    await expect(execute({ after: ['a\0b', '2026-01-31T12:00:00Z', '', '1'] }, contextOf())).rejects.toMatchObject({
      code: 'CURSOR_REJECTED',
    })
    await expect(execute({ after: ['a', 'yesterday week', '', '1'] }, contextOf())).rejects.toMatchObject({
      code: 'CURSOR_REJECTED',
    })
  })

  test('while a page is read its columns stay as they are; the next page shows what they have become', async () => {
    await source.exec(
      'create table shifting (id int primary key, v text); insert into shifting select i, i::text from generate_series(1, 60) i',
    )
    const { execute } = sql({ url: source.url }).listing('shifting', { pageSize: 20 })
    const asked = vi.spyOn(pg.Client.prototype, 'query')
    const first = await execute(undefined, contextOf())
    const statements = asked.mock.calls
      .map(([query]) => (query as { text?: string }).text ?? '')
      .filter((text) => /^BEGIN|shifting" .*LIMIT/.test(text))
    asked.mockRestore()
    expect(statements.map((text) => /^BEGIN|LIMIT 0$/.exec(text)?.[0])).toEqual(['BEGIN', 'LIMIT 0'])
    await source.exec('alter table shifting alter v type int8 using v::int8, add w float8 default 0.5')
    const second = await execute(first.nextState, contextOf())
    await source.exec('alter table shifting drop v')
    const third = await execute(second.nextState, contextOf())
    expect([first, second, third].map(({ changes }) => getSerializedRecord(changes[0]!)!.text)).toEqual([
      '{"id":1,"v":"1"}',
      '{"id":21,"v":21,"w":0.5}',
      '{"id":41,"w":0.5}',
    ])

    await using session = await PostgresSession.open(source.url, new AbortController().signal)
    await session.query('BEGIN READ ONLY')
    const rows = (await session.createRowSerializer('SELECT * FROM shifting LIMIT 0', [], ['id']))!
    await expect(
      writer.query("set lock_timeout to '50ms'; alter table shifting alter w type text"),
    ).rejects.toMatchObject({ code: '55P03' })
    for await (const _ of session.streamCopy('SELECT * FROM shifting', (line) => rows.serialize(line)));
    await session.query('COMMIT')
    await writer.query('alter table shifting alter w type text')
  })

  describe('COPY', () => {
    const open = (): Promise<PostgresSession> => PostgresSession.open(source.url, new AbortController().signal)
    const take = (line: Buffer): { bytes: number } => ({ bytes: line.length })

    test('a slow reader is waited for', async () => {
      await using session = await open()
      let taken = 0
      let count = 0
      for await (const rows of session.streamCopy(
        "SELECT repeat('x', 100000) FROM generate_series(1, 400)",
        (line) => (taken++, take(line)),
      )) {
        // Long enough for all of it, were it not held back.
        if (count === 0)
          await expect
            .poll(() => taken, { timeout: 300 })
            .toBeGreaterThan(300)
            .catch(() => {})
        if (count === 0) expect(taken).toBeLessThan(100)
        count += rows.length
      }
      expect([count, taken]).toEqual([400, 400])
    })

    test('to leave early leaves the connection as it was, and with much to come ends it', async () => {
      await using session = await open()
      for await (const _ of session.streamCopy('SELECT * FROM generate_series(1, 1000)', take)) break
      expect((await session.query('SELECT 1')).rows).toEqual([['1']])
      let taken = 0
      for await (const _ of session.streamCopy(
        "SELECT repeat('x', 1000000) FROM generate_series(1, 1000)",
        (line) => (taken++, take(line)),
      ))
        break
      expect(taken).toBeLessThan(100)
      await expect(session.query('SELECT 1')).rejects.toMatchObject({ code: 'SOURCE_UNAVAILABLE' })
    })

    test('what goes wrong in the middle comes after the rows before it, and a broken row ends nothing but the statement', async () => {
      await using session = await open()
      let count = 0
      const failing = async (): Promise<void> => {
        for await (const rows of session.streamCopy('SELECT 1 / (1000 - i) FROM generate_series(1, 2000) i', take))
          count += rows.length
      }
      await expect(failing()).rejects.toMatchObject({ message: expect.stringContaining('22012') })
      expect(count).toBeLessThanOrEqual(999)
      const breaking = async (): Promise<void> => {
        for await (const _ of session.streamCopy('SELECT 1', () => {
          throw new RangeError('broken')
        }));
      }
      await expect(breaking()).rejects.toMatchObject({
        code: 'SOURCE_UNAVAILABLE',
        message: expect.stringContaining('broken'),
      })
    })

    test('a server that ends it is not taken for the end of the rows', async () => {
      await using session = await open()
      const {
        rows: [pid],
      } = await session.query('SELECT pg_backend_pid()')
      const reading = async (): Promise<void> => {
        for await (const _ of session.streamCopy(
          "SELECT repeat('x', 10000), pg_sleep(0.01) FROM generate_series(1, 100000) i",
          take,
        ))
          await source.query(`select pg_terminate_backend(${pid![0]})`)
      }
      await expect(reading()).rejects.toMatchObject({ code: 'SOURCE_UNAVAILABLE' })
    })
  })

  describe('in the store', () => {
    let store: Store
    beforeAll(async () => {
      store = await openPostgresStore({ url: source.url, poolMax: 4 })
    })
    afterAll(async () => {
      await store?.close()
    })

    /** The same pages, each record replaced by the decoded one. */
    function ordinary<State>(execute: Execute<State>, table: string): Execute<State> {
      return async (state, context) => {
        const page = await execute(state, context)
        const records = await decoded(table)
        return {
          ...page,
          changes: page.changes.map((change) =>
            change.type !== 'upsert' ? change : { ...change, record: records.get(change.key)! },
          ),
        }
      }
    }

    async function complete(
      tenant: string,
      sync: string,
      mode: Mode,
      execute: Execute<any>,
      options: { schema?: object; recordBytesMax?: number } = {},
    ): Promise<unknown> {
      const worker = new Worker({ name: 'office' })
      const { schema, recordBytesMax } = options
      worker.sync(sync, {
        database: worker.database('things', schema === undefined ? {} : { schema: schema as never }),
        mode,
        execute,
        limits: { retriesMax: 0, ...(recordBytesMax !== undefined && { recordBytesMax }) },
      })
      const { stopReason, counts, error } = await runCycle(worker, sync, { store: store.forTenant(tenant) })
      return { stopReason, counts, error }
    }

    /** All that is kept of a tenant but the times of the clock, and ids that the tables gave. */
    async function kept(tenant: string): Promise<unknown> {
      const admin = new pg.Client({
        connectionString: Object.assign(new URL(inject('postgresUrl')), { pathname: new URL(source.url).pathname })
          .href,
      })
      await admin.connect()
      const all = async (text: string): Promise<unknown[]> => (await admin.query(text, [tenant])).rows
      const inTable = async (name: string): Promise<unknown[]> =>
        (
          await admin.query(
            `select to_jsonb(t) - array['_synced_at', '_until_at', '_writer', '_owner'] as row, _extra::text from "${tenant}".${name} t order by _sequence`,
          )
        ).rows
      const result = {
        rows: await inTable('things'),
        history: await inTable('things_history'),
        tombstones: await all(
          'select key, sequence, status, upstream_at from tidemark.tombstones where tenant_id = $1 order by key',
        ),
        databases: await all('select name, columns, layout from tidemark.databases where tenant_id = $1'),
        quarantine: await all(
          'select identity, key, code, message, text from tidemark.quarantine where tenant_id = $1 order by identity',
        ),
        cycles: await all(
          'select mode, pages, created, updated, deleted, swept, unchanged, stale, missing, quarantined, stop_reason from tidemark.cycles where tenant_id = $1 order by cycle_id',
        ),
        drift: await all(
          "select action, reason from tidemark.audit where tenant_id = $1 and action = 'drift' order by reason",
        ),
      }
      await admin.end()
      const own = store.forTenant(tenant)
      const why = await Promise.all(
        (await own.rows({ database: 'things', limit: 10_000 })).map(async ({ key }) =>
          (await own.history('things', key)).map((entry) => ({ ...entry, committedAt: 0, cycle: 0 })),
        ),
      )
      const feed = (await own.feed({ after: 0, limit: 10_000, scanMax: 1_000_000 })).entries.map((entry) => ({
        ...entry,
        committedAt: 0,
      }))
      return { ...result, why, feed }
    }

    const TYPES = ['text', 'float8', 'numeric', 'bytea', 'bool', 'timestamp']
    const randomRow = fc.tuple(...TYPES.map((type) => fc.option(VALUES[type]!, { freq: 5 })))

    /** A table that changes between cycles, as the seed says. */
    async function change(table: string, round: number): Promise<void> {
      const rows = fc.sample(randomRow, { numRuns: 40, seed: round })
      for (const [at, row] of rows.entries()) {
        const id = (at * 7 + round * 11) % 60
        if (at % 9 === 8) await writer.query(`delete from ${table} where id = ${id}`)
        else {
          await writer.query(
            `insert into ${table} values (${id}, now(), false, ${TYPES.map((type, index) => `$${index + 1}::text::${type}`).join(', ')})
            on conflict (id) do update set updated_at = now(), gone = ${at % 7 === 6}, ${TYPES.map((_, index) => `v${index} = excluded.v${index}`).join(', ')}`,
            [...row],
          )
        }
      }
    }
    const makeTable = (table: string): Promise<void> =>
      source.exec(
        `create table ${table} (id int primary key, updated_at timestamptz not null, gone bool, ${TYPES.map((type, index) => `v${index} ${type}`).join(', ')})`,
      )

    test('replace only: both ways leave the same rows, hashes, columns, history and feed, and to change the way changes nothing', async () => {
      await makeTable('replaced')
      const { execute } = sql({ url: source.url }).listing('replaced', { pageSize: 16, deleted: 'gone' })
      for (let round = 0; round < 3; round++) {
        await change('replaced', round)
        if (round === 2) await source.exec('alter table replaced alter v1 type text, add extra int default 3, drop v4')
        expect(await complete('bytes', 'all', 'replace', execute)).toEqual(
          await complete('decoded', 'all', 'replace', ordinary(execute, 'replaced')),
        )
        expect(await kept('bytes')).toEqual(await kept('decoded'))
      }
      const before = await store.forTenant('bytes').headSequence()
      expect(await complete('bytes', 'all', 'replace', ordinary(execute, 'replaced'))).toMatchObject({
        stopReason: 'complete',
        counts: { created: 0, updated: 0, swept: 0 },
      })
      expect(await complete('decoded', 'all', 'replace', execute)).toMatchObject({
        stopReason: 'complete',
        counts: { created: 0, updated: 0, swept: 0 },
      })
      expect([await store.forTenant('bytes').headSequence(), await store.forTenant('decoded').headSequence()]).toEqual([
        before,
        before,
      ])
    })

    test.each(['delta', 'mixed'])('%s: the same', async (kind) => {
      const table = `followed_${kind}`
      await makeTable(table)
      const { delta, backfill } = sql({ url: source.url }).table(table, {
        cursor: 'updated_at',
        lagMs: 0,
        pageSize: 16,
        deleted: 'gone',
      })
      for (let round = 0; round < 3; round++) {
        await change(table, 10 + round)
        const [mode, execute]: [Mode, Execute<any>] =
          kind === 'mixed' && round % 2 === 0 ? ['replace', backfill] : ['incremental', delta]
        expect(await complete(`${kind}-bytes`, mode, mode, execute)).toEqual(
          await complete(`${kind}-decoded`, mode, mode, ordinary(execute, table)),
        )
        const [bytes, decodedKept] = [await kept(`${kind}-bytes`), await kept(`${kind}-decoded`)] as [
          { rows: unknown[]; history: unknown[] },
          unknown,
        ]
        expect(bytes).toEqual(decodedKept)
        expect(bytes.rows.length + bytes.history.length).toBeGreaterThan(20)
      }
    })

    test('R50 from PostgreSQL to PostgreSQL, a reader killed inside a cycle: the next one ends it, and every record stands once, as it is decoded', async () => {
      await makeTable('moving')
      await change('moving', 21)
      const build = await buildPackage()
      try {
        const input = { url: source.url, source: source.url, table: 'moving', pageSize: 4 }
        const victim = new Child(build, 'run-sql.mjs', { input: { ...input, holdAt: 5 } })
        await victim.until('landed', (said) => said['page'] === 3)
        expect((await victim.kill()).signal).toBe('SIGKILL')
        const heir = await new Child(build, 'run-sql.mjs', { input }).ended
        expect(heir.said.at(-1)).toMatchObject({ event: 'result', stopReason: 'complete', resumed: true })
      } finally {
        build.remove()
      }
      const log = await store.forTenant('default').changes({ after: 0, limit: 1_000 })
      const records = await decoded('moving')
      expect(log.map(({ key }) => key).toSorted()).toEqual([...records.keys()].toSorted())
      for (const { key, text } of log) expect(equalsJson(text!, stringifyJson(records.get(key)!))).toBe(true)
    })

    test('what a schema, a size or a person who looks asks for is the same', async () => {
      await source.exec(
        `create table judged (id int primary key, v text, f float8); insert into judged values (1, 'a', 1e17), (2, repeat('x', 2000), 1.5), (3, null, 'NaN'), (4, 'b' || chr(1), -0.0), (5, 'c', 2)`,
      )
      const { execute } = sql({ url: source.url }).listing('judged')
      const schema = {
        type: 'object',
        properties: { id: { type: 'integer' }, v: { type: 'string' }, f: { type: ['number', 'string'] } },
        required: ['v'],
      }
      for (const [name, options] of Object.entries({ schema: { schema }, size: { recordBytesMax: 1_000 } })) {
        expect(await complete(`${name}-bytes`, 'all', 'replace', execute, options)).toEqual(
          await complete(`${name}-decoded`, 'all', 'replace', ordinary(execute, 'judged'), options),
        )
        const bytes = (await kept(`${name}-bytes`)) as { quarantine: unknown[] }
        expect(bytes).toEqual(await kept(`${name}-decoded`))
        expect(bytes.quarantine).toHaveLength(1)
      }
      const changed: Execute<any> = async (state, context) => {
        const page = await execute(state, context)
        for (const each of page.changes) if (each.type === 'upsert') each.record['seen'] = typeof each.record['f']
        return page
      }
      await complete('changed', 'all', 'replace', changed)
      expect(
        (await store.forTenant('changed').rows({ database: 'things', limit: 10 })).map(
          ({ text }) => (JSON.parse(text) as JsonObject)['seen'],
        ),
      ).toEqual(['number', 'number', 'string', 'number', 'number'])
    })
  })
})

const TEXTS = [
  '',
  '\\N',
  '\\',
  '\\\\N',
  'N',
  '"',
  'a\tb',
  'a\nb\r',
  '\b\f\v',
  '\u0001\u001f\u007f\u0080',
  '\u2028',
  '😀ü',
  'null',
  '{"a":1}',
  "it's",
  '\\v',
  '\\u0000',
]
const FLOATS = [
  '0',
  '-0',
  '1.5',
  '-1.5',
  '1e15',
  '1e16',
  '123456789012345680',
  '1e20',
  '1e21',
  '1e-4',
  '1e-5',
  '1e-7',
  '0.0001',
  '5e-324',
  '1.7976931348623157e308',
  'NaN',
  'Infinity',
  '-Infinity',
  '0.1',
  '100000',
  '9007199254740993',
  '999999999999999.9',
  '2.2250738585072014e-308',
  '9.5367431640625e-07',
]
const MOMENTS = [
  'infinity',
  '-infinity',
  '0044-03-15 12:00:00 BC',
  '0001-01-01 00:00:00',
  '9999-12-31 23:59:59.999999',
  '10000-01-01 00:00:00',
  '294276-12-31 23:59:59',
  '2026-01-31 13:00:00.123456+01',
  '2026-01-31 13:00:00.1',
  '2026-01-31 00:00:00',
]
const LISTS: Readonly<Record<string, readonly string[]>> = {
  text: TEXTS,
  varchar: TEXTS,
  label: TEXTS,
  deep: TEXTS,
  'char(8)': ['a', '', '"', 'ü'],
  name: ['n', '"', '\\'],
  '"char"': ['a', '\\', '"', ''],
  int2: ['-32768', '32767', '0'],
  int4: ['-2147483648', '7'],
  int8: ['-9223372036854775808', '9223372036854775807', '9007199254740993', '9007199254740991', '0'],
  rank: ['9223372036854775807', '-1'],
  oid: ['4294967295', '0'],
  float8: FLOATS,
  share: FLOATS,
  float4: ['0', '-0', '0.1', '1.1', '3.4028235e38', '1e-45', 'NaN', '16777216', '1e15', '123456.78'],
  numeric: ['123456789012345678901234567890.123456789', 'NaN', 'Infinity', '1.10', '-0.00'],
  cents: ['1.1', 'NaN'],
  money: ['12.3', '-1234567.89'],
  bool: ['t', 'f'],
  timestamptz: MOMENTS,
  moment: MOMENTS,
  timestamp: MOMENTS.map((text) => text.replace('+01', '')),
  date: ['infinity', '0044-03-15 BC', '2026-01-31'],
  time: ['23:59:59.999999', '24:00:00'],
  timetz: ['13:00:00+01'],
  interval: ['1 day 2 hours', '-1 month', '1 microsecond'],
  uuid: ['7d444840-9dc0-11d1-b245-5ffdce74fad2'],
  bytea: ['\\x', '\\x00ff5c22', '\\xdeadbeef'],
  inet: ['10.0.0.1/8', '::1'],
  mood: ['so "so"', 'f\\ine', 'tab\there'],
  int4range: ['[1,3)', 'empty'],
  point: ['(1,2)'],
  'bit varying': ['10110', ''],
  tsvector: ["'a':1 'b\\\\':2"],
  xml: ['<a b="c">\\ \t</a>'],
  int2vector: ['1 2 3'],
}
const anyText = fc
  .string({ unit: 'binary', maxLength: 12 })
  .filter((text) => !text.includes('\0') && text.isWellFormed())
/** As texts that PostgreSQL reads. */
const VALUES: Readonly<Record<string, fc.Arbitrary<string>>> = Object.fromEntries(
  Object.entries(LISTS).map(([type, list]) => {
    const listed = fc.constantFrom(...list)
    if (list === TEXTS) return [type, fc.oneof(listed, anyText)]
    if (list === FLOATS)
      return [type, fc.oneof(listed, fc.double().map(String), fc.integer().map(String), fc.float().map(String))]
    if (type === 'bytea')
      return [
        type,
        fc.oneof(
          listed,
          fc.uint8Array({ maxLength: 20 }).map((bytes) => `\\x${Buffer.from(bytes).toString('hex')}`),
        ),
      ]
    return [type, listed]
  }),
)
