import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { VerificationReport } from '../../src/contract/index.ts'
import { sql, type CursorOptions } from '../../src/sources/sql/source.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { planVerification } from '../../src/verify/verification-plan.ts'
import { verifyDatabase, type VerifyOptions } from '../../src/verify/verify-database.ts'
import { runCycle } from '../../src/worker/run-cycle.ts'
import { Worker } from '../../src/worker/worker.ts'
import { HALF } from '../engine/engine-fixture.ts'
import { SOURCES, type Source } from '../sources/sql/servers.ts'

const log = { debug() {}, info() {}, warn() {}, error() {} }

export interface VerifiedTable {
  report(options?: Partial<VerifyOptions>): Promise<VerificationReport>
  close(): Promise<void>
}

/** A copy of a table. */
export async function copyTable(
  url: string,
  table: string,
  options: Partial<CursorOptions> = {},
): Promise<VerifiedTable> {
  const store = await openSqliteStore({ file: ':memory:' })
  const worker = new Worker({ name: 'office' })
  const items = worker.database('items')
  const source = sql({ url })
  if (options.cursor === undefined)
    worker.sync('items-backfill', { database: items, ...source.listing(table, options) })
  else
    worker.track('items', {
      database: items,
      source: source.table(table, { cursor: options.cursor, lagMs: 0, ...options }),
    })
  const result = await runCycle(worker, 'items-backfill', { store, log })
  if (result.stopReason !== 'complete') throw new Error(JSON.stringify(result.error))
  return {
    report: async (given = {}) => {
      const { verification } = await verifyDatabase(planVerification(worker.plans(), 'items'), {
        store,
        runtime: {
          ports: { clock: systemClock, random: HALF, log },
          fetch: () => Promise.reject(new Error('no network here')),
          secrets: { get: (name) => name },
        },
        holder: 'verifier',
        actor: 'ana',
        scope: { kind: 'auto' },
        budget: null,
        repair: false,
        signal: new AbortController().signal,
        ...given,
      })
      return verification.report
    },
    close: () => store.close(),
  }
}

const TYPES = {
  postgres:
    'name text, price numeric(20, 4), big int8, small int2, yes bool, day date, at timestamptz not null, plain timestamp, ref uuid, tag varchar(20), j jsonb, f float8, b bytea',
  mariadb:
    'name varchar(100), price decimal(20, 4), big bigint unsigned, small smallint, yes tinyint(1), day date, at timestamp(6) not null, plain datetime(3), ref uuid, tag char(20), j json, f double, b varbinary(10)',
}

const VALUES = {
  postgres: `('Zoë 😀 "x"', 10.5000, 9223372036854775807, -3, true, '2026-01-31', '2026-01-31 12:00:00.120001+00', '2026-01-31 12:00:00.5', '7d444840-9dc0-11d1-b245-5ffdce74fad2', 'a ', '{"n": 1}', 0.1, '\\x00ff'),
    (null, null, null, null, null, null, '2026-01-01 00:00:00+00', null, null, null, null, null, null),
    (E't1:n\\n', 0, 0, 0, false, '0999-01-01', '2026-06-30 23:59:59+00', '1999-12-31 23:59:59', null, '', '[]', 'NaN', '')`,
  mariadb: `('Zoë 😀 "x"', 10.5000, 18446744073709551615, -3, 1, '2026-01-31', '2026-01-31 12:00:00.120001', '2026-01-31 12:00:00.5', '7d444840-9dc0-11d1-b245-5ffdce74fad2', 'a ', '{"n": 1}', 0.1, x'00ff'),
    (null, null, null, null, null, null, '2026-01-01 00:00:00', null, null, null, null, null, null),
    ('t1:n\\n', 0, 0, 0, 0, '0999-01-01', '2026-06-30 23:59:59', '1999-12-31 23:59:59', null, '', '[]', 1e300, '')`,
}

/** Digests that the database of the source and the copy both compute. */
export function describeVerifiedTables(name: 'postgres' | 'mariadb'): void {
  const kind = SOURCES.find((source) => source.name === name)!
  describe.skipIf(!kind.isHere(inject('postgresUrl')))(`verify: tables of ${name}`, () => {
    let source: Source
    beforeAll(async () => {
      source = await kind.open(inject('postgresUrl'))
    })
    afterAll(() => source?.close())

    /** A table with rows of every type under these keys, which are SQL. */
    async function makeTable(table: string, keyType: string, keys: readonly string[]): Promise<void> {
      const rows = VALUES[name].split(/,\n\s*(?=\()/)
      await source.exec(`create table ${table} (id ${keyType} not null primary key, ${TYPES[name]})`)
      for (const [at, key] of keys.entries())
        await source.exec(`insert into ${table} values (${key}, ${rows[at % rows.length]!.slice(1)}`)
    }

    const KEYS: Array<[string, string, string[]]> = [
      ['ints', 'int', [-2147483648, -100, -10, -9, -1, 0, 1, 9, 10, 11, 99, 100, 101, 1000, 2147483647].map(String)],
      ['bigs', 'bigint', ['-9223372036854775808', '5', '50', '500', '9223372036854775807']],
      ...(name === 'postgres'
        ? ([
            ['uuids', 'uuid', [1, 2, 3].map((n) => `'${n}d444840-9dc0-11d1-b245-5ffdce74fad2'`)],
            ['texts', 'text', ['a', 'B', 'é', '😀', '\uFFFD', 'a b', '10', '9'].map((text) => `'${text}'`)],
          ] satisfies Array<[string, string, string[]]>)
        : []),
    ]

    test.each(KEYS)('a copy of %s with the type %s has the digests of its table', async (table, type, keys) => {
      await makeTable(table, type, keys)
      const copy = await copyTable(source.url, table)
      const report = await copy.report()
      // Floating point, JSON and bytes are not part of the digests.
      expect(report).toMatchObject({
        method: 'digests',
        unsettled: 0,
        rows: keys.length,
        requests: 1,
        incomplete: 'fields',
      })
      expect(report.differences).toEqual({ missing: 0, stale: 0, extra: 0 })
      const [first, second, third] = keys
      await source.exec(`update ${table} set name = 'changed' where id = ${first}`)
      await source.exec(`delete from ${table} where id = ${second}`)
      const changed = await copy.report()
      expect(changed.found.map(({ kind }) => kind).toSorted()).toEqual(['extra', 'stale'])
      expect(await copy.report({ repair: true, allowDeletes: true })).toMatchObject({ repaired: 2, error: null })
      expect((await copy.report()).found).toEqual([])
      // A column that has no digest: only the listing of every record shows it.
      await source.exec(`update ${table} set f = 7.5 where id = ${third}`)
      expect((await copy.report()).found).toEqual([])
      expect((await copy.report({ scope: { kind: 'full' } })).found).toMatchObject([{ kind: 'stale' }])
      await copy.close()
    })

    test('planted differences in a large table are bisected to their rows', async () => {
      const series =
        name === 'postgres' ? 'select n from generate_series(1, 20000) n' : 'select seq as n from seq_1_to_20000'
      await source.exec(
        `create table large (id int not null primary key, v int, at ${kind.stampType} not null);
         insert into large select n, n * 7, ${kind.ago(100)} from (${series}) s`,
      )
      const copy = await copyTable(source.url, 'large', { cursor: 'at' })
      expect(await copy.report()).toMatchObject({ incomplete: null, found: [], rows: 20_000 })
      await source.exec(
        `update large set v = -1 where id in (77, 12345); delete from large where id = 500; insert into large values (20001, 1, ${kind.ago(1)})`,
      )
      const report = await copy.report({ repair: true })
      expect(report.found.map(({ key, kind: difference }) => `${key} ${difference}`).toSorted()).toEqual([
        '12345 stale',
        '20001 missing',
        '500 extra',
        '77 stale',
      ])
      expect(report).toMatchObject({ repaired: 4, method: 'digests' })
      expect(report.requests).toBeLessThan(60)
      expect(await copy.report()).toMatchObject({ found: [] })
      await copy.close()
    })
  })
}
