import { describe, expect, inject, test } from 'vitest'
import { postgres } from '../../src/destinations/postgres/destination.ts'
import { describeDestination } from '../../src/testing/describe-destination.ts'
import { DestinationBench } from '../../src/testing/destination-cases/harness.ts'
import { openPostgresHarness } from './postgres-harness.ts'

const server = inject('postgresUrl')
const suite = server === '' ? describe.skip : describe

suite('PostgreSQL', () => {
  describeDestination('PostgreSQL', openPostgresHarness, { runner: { describe, test } })

  test('columns have the types of the store, and the table is an ordinary one', async () => {
    const harness = await openPostgresHarness()
    const bench = await DestinationBench.open(harness)
    await bench.commit(['a', { n: 1, at: '2026-01-31T12:00:00.123Z', ok: true, x: 0.5, list: { a: 1 }, t: 'x' }])
    await bench.run()
    const { rows } = await harness.client.query<{ name: string; type: string }>(
      `select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute
       where attrelid = '${harness.schema}.things'::regclass and attnum > 0 order by attnum`,
    )
    expect(Object.fromEntries(rows.map(({ name, type }) => [name, type]))).toEqual({
      _key: 'text',
      _sequence: 'bigint',
      _committed_at: 'timestamp with time zone',
      _extra: 'json',
      n: 'bigint',
      at: 'timestamp with time zone',
      ok: 'boolean',
      x: 'double precision',
      list: 'jsonb',
      t: 'text',
    })
    await bench.store.close()
    await harness.close()
  })

  test('a table that is not ours stops the destination, and stays', async () => {
    const harness = await openPostgresHarness()
    const bench = await DestinationBench.open(harness)
    await harness.client.query(`create schema ${harness.schema}; create table ${harness.schema}.things (mine integer)`)
    await bench.commit(['a', { n: 1 }])
    const { report } = await bench.run()
    expect(report?.error).toMatchObject({ code: 'DESTINATION_FOREIGN', message: expect.stringContaining('things') })
    await harness.client.query(`select mine from ${harness.schema}.things`)
    await bench.store.close()
    await harness.close()
  })

  test('wrong credentials and an unreachable server have their own codes', async () => {
    const harness = await openPostgresHarness()
    const bench = await DestinationBench.open(harness)
    await bench.commit(['a', { n: 1 }])
    const wrong = Object.assign(new URL(server), { username: 'no_such_role', password: 'x' }).href
    expect((await bench.run({ destination: postgres({ url: wrong }) })).report?.error?.code).toBe('DESTINATION_REFUSED')
    const closed = postgres({ url: 'postgres://a@127.0.0.1:1/b' })
    expect((await bench.run({ destination: closed })).report?.error?.code).toBe('DESTINATION_UNAVAILABLE')
    await bench.store.close()
    await harness.close()
  })
})
