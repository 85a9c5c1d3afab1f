import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DestinationSession, JsonObject, ScalarType } from '../../src/contract/index.ts'
import { mariadb } from '../../src/destinations/mariadb/destination.ts'
import { describeDestination } from '../../src/testing/describe-destination.ts'
import { DestinationBench } from '../../src/testing/destination-cases/harness.ts'
import { required } from '../../src/values/required.ts'
import { stringifyJson } from '../../src/values/json.ts'
import { hasMariadb, startMariadb, type MariadbServer } from '../setup/mariadb-server.ts'
import { openMariadbHarness, type MariadbHarness } from './mariadb-harness.ts'

const suite = hasMariadb ? describe : describe.skip
let server: MariadbServer

beforeAll(async () => {
  if (hasMariadb) server = await startMariadb()
})
afterAll(() => server?.stop())

suite('MariaDB', () => {
  describeDestination('MariaDB', () => openMariadbHarness(server.url), { runner: { describe, test } })

  async function open(): Promise<{ harness: MariadbHarness; bench: DestinationBench } & AsyncDisposable> {
    const harness = await openMariadbHarness(server.url)
    const bench = await DestinationBench.open(harness)
    return {
      harness,
      bench,
      async [Symbol.asyncDispose]() {
        await bench.store.close()
        await harness.close()
      },
    }
  }

  // MariaDB 10.11 itself crashes on a full file system, also within InnoDB's own limit: the server is then unavailable.
  test.each([1021, 1114])('a full disk (error %i) is reported and waited for', async (errno) => {
    await using opened = await open()
    const { harness, bench } = opened
    await bench.commit(['a', { n: 1 }])
    await bench.run()
    const things = `${harness.database}.things`
    await harness.query(
      `create trigger ${harness.database}.full before insert on ${things} for each row
       signal sqlstate 'HY000' set mysql_errno = ${errno}, message_text = 'Disk full'`,
    )
    await bench.commit(['b', { n: 2 }], ['c', { n: 3 }])
    expect((await bench.run()).report?.error).toMatchObject({ code: 'DESTINATION_FULL' })
    expect((await bench.store.destinations())[0]!.databases).toMatchObject([{ state: 'waiting' }])
    expect(await harness.rows('things')).toHaveLength(1)
    await harness.query(`drop trigger ${harness.database}.full`)
    expect((await bench.run()).report?.error).toBeNull()
    expect(await harness.rows('things')).toEqual(await bench.current())
  })

  test.each([1, 0])('every type holds its values exactly, with local_infile = %i', async (allowed) => {
    await using opened = await open()
    const { harness, bench } = opened
    await harness.query(`set global local_infile = ${allowed}`)
    try {
      const records = RECORDS.map((record, n) => [`k${n}`, record] as const)
      await applyTyped(bench, records)
      expect((await harness.rows('things')).map(({ record }) => record)).toEqual(RECORDS)
      const types = await harness.query(`show columns from ${harness.database}.things`)
      expect(Object.fromEntries(types.map(({ Field, Type }) => [Field, Type]))).toMatchObject({
        _key: 'varchar(766)',
        _committed_at: 'datetime(6)',
        decimal: 'decimal(65,30)',
        double: 'double',
        json: 'longtext',
        timestamp: 'datetime(6)',
        bytes: 'longblob',
      })
      // Ordinary values are in their columns alone.
      expect(await harness.query(`select _extra from ${harness.database}.things where _key = 'k0'`)).toEqual([
        { _extra: null },
      ])
    } finally {
      await harness.query('set global local_infile = 1')
    }
  })

  test('keys that differ in case, accents, spaces at the end or after 766 characters are different rows', async () => {
    await using opened = await open()
    const { harness, bench } = opened
    const keys = ['a', 'A', 'á', 'a ', 'a\t', '\u{1f600}', `${'x'.repeat(1_000)}1`, `${'x'.repeat(1_000)}2`]
    await bench.commit(...keys.map((key, n) => [key, { n }] as const))
    expect((await bench.run()).report?.error).toBeNull()
    const numbers = async () =>
      (await harness.rows('things')).map(({ record }) => Number(record?.['n'])).toSorted((a, b) => a - b)
    expect(await numbers()).toEqual(keys.map((_, n) => n))
    await bench.commit(...keys.filter((_, n) => n % 2 === 0).map((key) => [key, null] as const))
    expect((await bench.run()).report?.error).toBeNull()
    expect(await numbers()).toEqual([1, 3, 5, 7])
  })

  test('a table that is not ours stops the destination, and stays', async () => {
    for (const table of ['things', 'things__loading']) {
      await using opened = await open()
      const { harness, bench } = opened
      await harness.query(`create database ${harness.database}`)
      await harness.query(`create table ${harness.database}.${table} (mine int)`)
      await bench.commit(['a', { n: 1 }])
      const { report } = await bench.run()
      expect(report?.error).toMatchObject({ code: 'DESTINATION_FOREIGN', message: expect.stringContaining(table) })
      await harness.query(`select mine from ${harness.database}.${table}`)
    }
  })

  test('a column and a unique index of the user are kept; a row that breaks the index is an error', async () => {
    await using opened = await open()
    const { harness, bench } = opened
    const things = `${harness.database}.things`
    await bench.commit(['a', { n: 1 }], ['b', { n: 2 }])
    await bench.run()
    await harness.query(`alter table ${things} add column later int default 7, add unique index (n)`)
    await bench.commit(['a', { n: 3, later: 'text' }], ['c', { n: 1 }])
    expect((await bench.run()).report?.error).toBeNull()
    expect(await harness.rows('things')).toEqual((await bench.current()).toSorted((a, b) => a.sequence - b.sequence))
    expect(await harness.query(`select distinct later from ${things}`)).toEqual([{ later: 7 }])
    await bench.commit(['d', { n: 3 }])
    expect((await bench.run()).report?.error?.code).toBe('DESTINATION_FAILED')
    expect((await harness.rows('things')).map(({ key }) => key).toSorted()).toEqual(['a', 'b', 'c'])
  })

  test('a row that LOAD DATA would skip is an error, and only the rows before it are applied', async () => {
    await using opened = await open()
    const { harness, bench } = opened
    await bench.commit(['a', { n: 1 }])
    await bench.run({ mode: 'append' })
    const [last] = await harness.query(`select max(_sequence) as n from ${harness.database}.things`)
    await bench.commit(['b', { n: 2 }], ['c', { n: 3 }])
    await harness.query(
      `insert into ${harness.database}.things (_sequence, _key, _action, n) values (${Number(last?.['n']) + 2}, 'x', 'created', 9)`,
    )
    expect((await bench.run({ mode: 'append' })).report?.error?.code).toBe('DESTINATION_FAILED')
    expect(await harness.query(`select n from ${harness.database}.things order by n`)).toEqual([
      { n: '1' },
      { n: '2' },
      { n: '9' },
    ])
  })

  test('a crash while columns are added leaves no second column', async () => {
    await using opened = await open()
    const { harness, bench } = opened
    await bench.commit(['a', { n: 1 }])
    await bench.run()
    const fields = ['n']
    for (let statement = 0; ; statement++) {
      fields.push(`f${statement}`)
      await bench.commit(['a', { n: 1, [`f${statement}`]: 1 }])
      const end = required(harness.interrupt, 'interrupt')({ statement })
      expect((await bench.run()).report?.error).toBeNull()
      if (!end()) break
    }
    const columns = await harness.query(`show columns from ${harness.database}.things`)
    expect(columns.map(({ Field }) => Field).filter((name) => !String(name).startsWith('_'))).toEqual(fields)
  })

  test('a crash while tables are removed leaves nothing that stops the next load', async () => {
    await using opened = await open()
    const { harness, bench } = opened
    await bench.commit(['a', { n: 1, lines: [{ n: 1 }] }])
    for (let statement = 0; ; statement++) {
      expect((await bench.run({ children: ['lines'] })).report?.error).toBeNull()
      expect((await harness.rows('things')).map(({ key }) => key)).toEqual(['a'])
      const end = required(harness.interrupt, 'interrupt')({ statement })
      const signal = new AbortController().signal
      const session = await harness.destination.open({ tenant: 'default', signal }).catch(() => null)
      await session?.remove('things').catch(() => {})
      await session?.close()
      if (!end()) break
    }
    const tables = await harness.query(`show tables from ${harness.database}`)
    expect(tables.flatMap((row) => Object.values(row))).toEqual(['_tidemark_destination'])
  })

  test('databases of two tenants that lead to one table name are refused', async () => {
    await using opened = await open()
    const { harness, bench } = opened
    const signal = new AbortController().signal
    await bench.commit(['a', { n: 1 }])
    await bench.run()
    const other = await harness.destination.open({ tenant: 'a', signal })
    const first = await harness.destination.open({ tenant: 'a__b', signal })
    await applyEmpty(first, 'c')
    await expect(other.position('b__c')).rejects.toMatchObject({ code: 'DESTINATION_FOREIGN' })
    await first.close()
    await other.close()
  })

  test('wrong credentials, an unreachable server and a missing database have their own codes', async () => {
    await using opened = await open()
    const { bench } = opened
    await bench.commit(['a', { n: 1 }])
    const wrong = Object.assign(new URL(server.url), { username: 'no_such_account', password: 'x' }).href
    expect((await bench.run({ destination: mariadb({ url: wrong }) })).report?.error).toMatchObject({
      code: 'DESTINATION_REFUSED',
      message: expect.not.stringContaining('password=x'),
    })
    const closed = mariadb({ url: 'mariadb://a@127.0.0.1:1/b' })
    expect((await bench.run({ destination: closed })).report?.error?.code).toBe('DESTINATION_UNAVAILABLE')
    expect(() => mariadb({ url: 'mariadb://a@127.0.0.1' })).toThrow('has no database')
    expect(() => mariadb({ url: 'postgres://a@127.0.0.1/b' })).toThrow('is not mariadb://')
  })
})

const ORDINARY = {
  bigint: 9007199254740993n,
  boolean: true,
  bytes: Buffer.from([0, 9, 10, 13, 92, 255, 254]).toString('base64'),
  date: '2026-02-28',
  datetime: '2026-02-28T23:59:59.123456',
  decimal: '12.50',
  double: 0.1,
  json: { a: [1, { b: null }] },
  numeric: 12345678901234567890n,
  text: '\0\t\n\r\\\'"\u001a\u{1f600}ü',
  time: '23:59:59.5',
  timestamp: '2026-01-31T12:00:00.123Z',
  uuid: '123e4567-e89b-12d3-a456-426614174000',
}

/** The first one is ordinary; the others are at the limits of their columns, or beyond. */
const RECORDS: readonly JsonObject[] = [
  ORDINARY,
  {
    bigint: -9223372036854775808n,
    boolean: false,
    bytes: '',
    date: '0001-01-01',
    datetime: '0001-01-01T00:00:00.000001',
    decimal: '-0.01',
    double: 5e-324,
    json: 'text',
    numeric: 0.1,
    text: 'a\\b',
    time: '00:00:00',
    timestamp: '0001-01-01T00:00:00.000Z',
    uuid: '00000000-0000-0000-0000-000000000000',
  },
  {
    bigint: 9223372036854775808n,
    bytes: Buffer.alloc(70_000, 255).toString('base64'),
    date: '9999-12-31',
    datetime: '9999-12-31T23:59:59.999999',
    decimal: '123456789012345678901234567890123456.00',
    double: 1.7976931348623157e308,
    json: 1e21,
    numeric: 10n ** 40n,
    text: 'x'.repeat(100_000),
    time: '24:00:00',
    timestamp: '9999-12-31T23:59:59.999Z',
    uuid: '123E4567-E89B-12D3-A456-426614174000',
  },
  {
    bigint: 0.5,
    decimal: '1.5',
    double: 'x',
    json: JSON.parse(`${'['.repeat(60)}${']'.repeat(60)}`) as JsonObject[string],
    numeric: 1e-31,
    text: 5,
    timestamp: '2026-01-31T12:00:00.123456789+02:00',
    datetime: '2026-02-30T00:00:00',
    date: '2026-02-30',
  },
  { decimal: '0.00', numeric: 0, timestamp: null, double: 1e300, json: [], time: null, bigint: 0, text: '' },
]

/** Applies a load with these records, in the types that their fields are named for. */
async function applyTyped(
  bench: DestinationBench,
  records: ReadonlyArray<readonly [string, JsonObject]>,
): Promise<void> {
  const session = await bench.harness.destination.open({ tenant: 'default', signal: new AbortController().signal })
  const first = { storeId: 's', epoch: 1, sequence: 10, committedAt: 1, after: '' }
  const schema = {
    database: 'things',
    mode: 'mirror' as const,
    columns: (Object.keys(ORDINARY) as ScalarType[]).map((type) => ({ member: type, type })),
  }
  const batch = { schema, target: 'loading' as const, isFirst: false, isLast: false, changes: [] }
  await session.apply({ ...batch, isFirst: true }, { previous: null, next: first })
  const changes = records.map(([key, record], at) => ({
    key,
    action: 'created' as const,
    sequence: at + 1,
    committedAt: 1_700_000_000_000,
    record,
    text: stringifyJson(record),
  }))
  const next = { ...first, after: null }
  // Once as rows of a load, and once merged.
  await session.apply({ ...batch, changes: changes.slice(0, 3) }, { previous: first, next })
  await session.apply({ ...batch, changes, isLast: true }, { previous: next, next })
  await session.close()
}

async function applyEmpty(session: DestinationSession, database: string): Promise<void> {
  const schema = { database, mode: 'mirror' as const, columns: [] }
  const next = { storeId: 's', epoch: 1, sequence: 1, committedAt: 1, after: null }
  await session.apply({ schema, target: 'loading', isFirst: true, isLast: true, changes: [] }, { previous: null, next })
}
