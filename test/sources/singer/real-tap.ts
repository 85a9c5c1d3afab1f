import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { Worker } from '../../../src/worker/worker.ts'
import { runCycle } from '../../../src/worker/run-cycle.ts'
import type { Store } from '../../../src/contract/index.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { discover, singer, type SingerOptions } from '../../../src/sources/singer/source.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import { parseJson } from '../../../src/values/json.ts'
import { createDatabase, dropDatabase } from '../../setup/postgres-server.ts'

/** Beyond what a double can hold. */
const FIRST = 9007199254740993n

/** A tap that others wrote: pipelinewise-tap-postgres, against the server of the tests. */
export function describeRealTap(command: string): void {
  describe('a tap of others', () => {
    const server = inject('postgresUrl')
    let url: string
    let client: pg.Client
    let store: Store
    let options: SingerOptions

    beforeAll(async () => {
      url = await createDatabase(server)
      const { hostname, port, username, password, pathname } = new URL(url)
      client = new pg.Client({ connectionString: url })
      await client.connect()
      await client.query(
        'create table people (id bigint primary key, name text, amount numeric(12, 2), updated_at timestamptz not null)',
      )
      await client.query(
        `insert into people select ${FIRST} + n, 'Person ' || n, n + 0.07, timestamptz '2026-01-01Z' + n * interval '1 minute' from generate_series(0, 2499) n`,
      )
      options = {
        command,
        config: {
          host: hostname,
          port: Number(port),
          user: username,
          password: password || 'none',
          dbname: pathname.slice(1),
          filter_schemas: 'public',
        },
        catalogFlag: '--properties',
        pageSize: 50,
      }
      store = await openSqliteStore({ file: ':memory:' })
    })

    afterAll(async () => {
      await store.close()
      await client.end()
      await dropDatabase(server, url)
    })

    const run = (how: 'stream' | 'listing', limits = {}): ReturnType<typeof runCycle> => {
      const worker = new Worker({ name: 'office' })
      const tap = singer(options)
      worker.sync(how, {
        database: worker.database(how),
        limits,
        ...(how === 'stream'
          ? tap.stream('public-people', { cursor: 'updated_at', key: ['id'] })
          : tap.listing('public-people', { key: ['id'] })),
      })
      return runCycle(worker, how, { store })
    }
    const rows = async (database: string): Promise<unknown[]> =>
      (await store.rows({ database, limit: 10_000 })).map(({ text }) => parseJson(text))

    test('RX2 lists its streams', async () => {
      const found = await discover(options, {
        clock: systemClock,
        log: { debug() {}, info() {}, warn() {}, error() {} },
        signal: new AbortController().signal,
        secrets: { get: (name) => name },
      })
      expect(found).toMatchObject([{ id: 'public-people', key: ['id'] }])
    })

    test('R50 is followed, cycle after cycle, also one that was broken off', async () => {
      expect(await run('stream', { pagesMax: 2 })).toMatchObject({ stopReason: 'max_pages', error: null })
      expect(await run('stream')).toMatchObject({
        stopReason: 'complete',
        resumed: true,
        error: null,
        counts: { quarantined: 0 },
      })
      const landed = await rows('stream')
      expect(landed).toHaveLength(2_500)
      expect(landed[0]).toMatchObject({ id: FIRST, name: 'Person 0', amount: 0.07 })
      expect(await store.changes({ after: 0, limit: 10_000 })).toHaveLength(2_500)
      await client.query(`update people set name = 'Ada', updated_at = '2026-02-01Z' where id = ${FIRST + 1n}`)
      expect(await run('stream')).toMatchObject({ stopReason: 'complete', counts: { updated: 1, created: 0 } })
    })

    test('is read whole, and what is gone is swept', async () => {
      expect(await run('listing')).toMatchObject({ stopReason: 'complete', error: null, counts: { created: 2_500 } })
      await client.query(`delete from people where id < ${FIRST + 3n}`)
      expect(await run('listing')).toMatchObject({ stopReason: 'complete', counts: { swept: 3, created: 0 } })
      expect(await rows('listing')).toHaveLength(2_497)
    })
  })
}
