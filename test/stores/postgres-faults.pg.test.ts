import pg from 'pg'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import type { LogEntry, Store } from '../../src/contract/index.ts'
import { verifyAuditChain } from '../../src/registry/verify-audit-chain.ts'
import { Connection } from '../../src/stores/postgres/connection.ts'
import { MIGRATIONS, SCHEMA_VERSION, SCHEMA_VERSION_MIN } from '../../src/stores/postgres/schema.ts'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import { readFeed, readLiveRows, readSnapshot, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { createDatabase, dropDatabase, startPostgres } from '../setup/postgres-server.ts'
import { startCuttingProxy, type CuttingProxy } from './cutting-proxy.ts'

const server = inject('postgresUrl')

describe.skipIf(server === '')('postgres store, when the server or the network fails', () => {
  let url: string
  let store: Store
  const closing: Array<() => Promise<unknown>> = []

  async function open(options: Partial<Parameters<typeof openPostgresStore>[0]> = {}): Promise<Store> {
    const opened = await openPostgresStore({ url, ...options })
    closing.push(() => opened.close())
    return opened
  }
  async function connect(as = url): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: as })
    client.on('error', () => {})
    await client.connect()
    closing.push(() => client.end())
    return client
  }
  const asSuperuser = (): string => Object.assign(new URL(server), { pathname: new URL(url).pathname }).href

  beforeEach(async () => {
    url = await createDatabase(server)
    store = await open()
  })
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close()
    await dropDatabase(server, url)
  })

  async function throughProxy(
    options: { statementTimeoutMs?: number } = {},
  ): Promise<{ proxy: CuttingProxy; through: Store }> {
    const proxy = await startCuttingProxy(url)
    closing.push(() => proxy.close())
    return { proxy, through: await open({ url: proxy.url, ...options }) }
  }

  for (const [cut, landed] of [
    ['before COMMIT', false],
    ['after COMMIT', true],
  ] as const) {
    test(`XB4 a connection lost ${cut === 'after COMMIT' ? 'after the server applied COMMIT' : 'as COMMIT was sent'} is COMMIT_UNKNOWN, and a read shows the outcome`, async () => {
      const { proxy, through } = await throughProxy()
      const driver = await SyncDriver.acquire(through)
      await driver.begin()
      await driver.page([upsert('a', { n: 1 })])
      const commit = await driver.draft(driver.nextPage(), [upsert('b', { n: 2 })])
      proxy.cutNext(cut)
      await expect(through.commit(commit)).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' })
      // Uses the same store, whose broken connection is no longer in its pool.
      expect((await through.readCheckpoint(driver.ref)).inflight?.page).toBe(landed ? 2 : 1)
      expect((await readLiveRows(store)).map(([key]) => key)).toEqual(landed ? ['a', 'b'] : ['a'])
      // A commit that was lost can be sent again; a commit that landed is a conflict, not a second landing.
      await expect.poll(async () => (await through.commit(commit)).kind).toBe(landed ? 'conflict' : 'landed')
      expect((await readFeed(store)).map(({ key }) => key)).toEqual(['a', 'b'])
    })
  }

  test('XB4 a server that stops answering times out, and its client does not return to the pool', async () => {
    const { proxy, through } = await throughProxy({ statementTimeoutMs: 1_000 })
    proxy.freeze()
    await expect(through.headSequence()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    // Other connections of the pool may be frozen too; each fails once.
    await expect.poll(() => through.headSequence().catch(() => null)).toBe(0)
  })

  test('XB5 a backend that is terminated in the middle of a commit lands nothing, and the store keeps working', async () => {
    const driver = await SyncDriver.acquire(store)
    await driver.begin()
    const before = await readSnapshot(store)
    const blocker = await connect(asSuperuser())
    await blocker.query('begin; select from tidemark.tenants for update')
    const commit = await driver.draft(driver.nextPage(), [upsert('a', { n: 1 })])
    const answer = store.commit(commit)
    const failed = expect(answer).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect
      .poll(
        async () =>
          (
            await blocker.query(
              "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tidemark' and datname = current_database() and wait_event_type = 'Lock'",
            )
          ).rowCount,
      )
      .toBe(1)
    await failed
    await blocker.query('rollback')
    expect(await readSnapshot(store)).toEqual(before)
    expect((await store.commit(commit)).kind).toBe('landed')
  })

  test('XB8 a commit that waits too long for another writer is STORE_BUSY, lands nothing and can be sent again', async () => {
    const impatient = await open({ lockTimeoutMs: 100 })
    const driver = await SyncDriver.acquire(impatient)
    await driver.begin()
    const blocker = await connect(asSuperuser())
    await blocker.query('begin; select from tidemark.tenants for update')
    const commit = await driver.draft(driver.nextPage(), [upsert('a', { n: 1 })])
    await expect(impatient.commit(commit)).rejects.toMatchObject({ code: 'STORE_BUSY' })
    await blocker.query('rollback')
    expect((await impatient.commit(commit)).kind).toBe('landed')
  })

  test('invariant 1: a statement that the driver cannot send rolls back its transaction', async () => {
    const connection = new Connection({ url })
    closing.push(() => connection.close())
    await connection.write('', (transaction) => transaction.run('create table public.unsent (n integer)'))
    const unsendable = {
      toPostgres: () => {
        throw new Error('not to be sent')
      },
    } as unknown as number
    await expect(
      connection.write('', async (transaction) => {
        transaction.send('insert into public.unsent values ($1)', 1)
        transaction.send('insert into public.unsent values ($1)', unsendable)
        transaction.send('insert into public.unsent values ($1)', 3)
      }),
    ).rejects.toThrow()
    const { rows } = await (await connect()).query<{ n: string }>('select count(*) as n from public.unsent')
    expect(rows).toEqual([{ n: '0' }])
    expect(await connection.write('', (transaction) => transaction.run('insert into public.unsent values (4)'))).toBe(1)
  })

  test('XB9 when every connection of the pool is in use for too long, the answer is STORE_BUSY', async () => {
    const narrow = await open({ poolMax: 1, connectTimeoutMs: 200 })
    const driver = await SyncDriver.acquire(narrow)
    await driver.begin()
    const blocker = await connect(asSuperuser())
    await blocker.query('begin; select from tidemark.tenants for update')
    const waiting = narrow.commit(await driver.draft(driver.nextPage(), [upsert('a', { n: 1 })]))
    await expect(narrow.headSequence()).rejects.toMatchObject({ code: 'STORE_BUSY' })
    await blocker.query('rollback')
    expect((await waiting).kind).toBe('landed')
  })

  test('XB7 a database that became read-only is STORE_READONLY, and can still be read', async () => {
    const driver = await SyncDriver.acquire(store)
    await driver.cycle([upsert('a', { n: 1 })])
    const superuser = await connect(asSuperuser())
    await superuser.query(`alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only = on`)
    const again = await open()
    await expect(again.signalSync(driver.ref, { kind: 'pause', actor: 'ana', at: 1 })).rejects.toMatchObject({
      code: 'STORE_READONLY',
    })
    expect((await readLiveRows(again)).length).toBe(1)
  })

  test('XB5 while the server is down the store reports it; afterwards the same store continues, with every acknowledged commit', async () => {
    const own = await startPostgres({ fsync: true })
    closing.push(() => own.stop())
    const opened = await open({ url: await createDatabase(own.url) })
    const driver = await SyncDriver.acquire(opened)
    await driver.begin()
    for (let n = 0; n < 5; n++) await driver.page([upsert(`k${n}`, { n })])
    await own.kill()
    await expect(opened.headSequence()).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await own.restart()
    expect((await readLiveRows(opened)).length).toBe(5)
    expect((await opened.readCheckpoint(driver.ref)).inflight?.page).toBe(5)
    await driver.page([upsert('k5', { n: 5 })])
  })

  test('an unreachable server and an invalid URL are reported at once', async () => {
    await expect(openPostgresStore({ url: 'postgres://nobody:secret@127.0.0.1:1/x' })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
    await expect(openPostgresStore({ url: 'postgres://nobody:secret@127.0.0.1:1/x' })).rejects.not.toThrow(/secret/)
    await expect(openPostgresStore({ url: 'mysql://x/y' })).rejects.toMatchObject({ code: 'STORE_URL_INVALID' })
    await expect(openPostgresStore({ url: `${url}_not_there` })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })

  test('XF1 invariant 7: while four connections commit for four syncs, readers see every sequence, in order, with no gap', async () => {
    const writers = await Promise.all(
      [1, 2, 3, 4].map(async (n) => await SyncDriver.acquire(await open({ poolMax: 1 }), { sync: `s${n}` })),
    )
    for (const writer of writers) await writer.begin()
    let writing = true
    const read = async (reader: Store, limit: number): Promise<LogEntry[]> => {
      const seen: LogEntry[] = []
      for (let last = false; !last;) {
        last = !writing
        for (let page; (page = await reader.changes({ after: seen.length, limit })).length > 0;) {
          for (const entry of page) expect(entry.sequence).toBe(seen.push(entry))
        }
      }
      return seen
    }
    const reading = [read(await open(), 7), read(await open(), 1_000)]
    await Promise.all(
      writers.map(async (writer, n) => {
        for (let page = 0; page < 25; page++)
          await writer.page(
            Array.from({ length: 1 + ((page * 7 + n) % 20) }, (_, k) => upsert(`${n}-${page}-${k}`, { k })),
          )
      }),
    )
    writing = false
    const [first, second] = await Promise.all(reading)
    expect(first!.length).toBe(await store.headSequence())
    expect(second!.map(({ key }) => key)).toEqual(first!.map(({ key }) => key))
    const times = first!.map(({ committedAt }) => committedAt)
    expect(times).toEqual(times.toSorted((a, b) => a - b))
  })

  // ── creating the tables
  // ─────────────────────────────────────────────────────────────────────────────────────────────

  test('XB17 many processes that open an empty database at once all find its tables', async () => {
    const fresh = await createDatabase(server)
    const opened = await Promise.all([1, 2, 3, 4].map(async () => await open({ url: fresh })))
    for (const each of opened) expect(await each.headSequence()).toBe(0)
    closing.push(() => dropDatabase(server, fresh))
  })

  test('XB17 creating the tables can be interrupted at any statement, and the next process to open completes it', async () => {
    const fresh = await createDatabase(server)
    closing.push(() => dropDatabase(server, fresh))
    const owner = await connect(fresh)
    // oxlint-disable-next-line typescript/no-explicit-any -- a method of many signatures, passed through as it is
    const { query } = pg.Client.prototype as any
    let cuts = 0
    for (let [statement, whole] = [0, false]; !whole; statement++) {
      let left = statement
      pg.Client.prototype.query = function (
        this: pg.Client & { connection: { stream: { destroy(): void } } },
        ...parameters: unknown[]
      ) {
        if (left-- === 0) this.connection.stream.destroy()
        return query.apply(this, parameters)
      } as typeof query
      const opened = await openPostgresStore({ url: fresh }).catch(() => null)
      pg.Client.prototype.query = query
      await opened?.close()
      whole = left >= 0
      if (opened === null) {
        cuts++
        expect(
          (await owner.query("select from pg_namespace where nspname = 'tidemark'")).rowCount,
          `cut before statement ${statement}`,
        ).toBe(0)
      } else if (!whole) await owner.query('drop schema tidemark cascade') // Only the end of the session was cut.
    }
    expect(cuts).toBeGreaterThan(5)
    expect(await (await open({ url: fresh })).headSequence()).toBe(0)
  })

  test('XB13 tables of a newer version are STORE_NEWER, and left alone', async () => {
    const superuser = await connect(asSuperuser())
    await superuser.query(
      "create or replace function tidemark.schema_version() returns integer language sql immutable as 'select 99'",
    )
    await expect(openPostgresStore({ url })).rejects.toMatchObject({ code: 'STORE_NEWER' })
  })

  test.each([1, 2, 3])(
    'XB13 tables of version %i, whose states are not sealed, are STORE_OLDER, and left alone',
    async (version) => {
      const fresh = await createDatabase(server)
      closing.push(() => dropDatabase(server, fresh))
      const client = await connect(fresh)
      for (const text of ['create schema tidemark', ...MIGRATIONS.slice(0, version)]) await client.query(text)
      await client.query(
        `create function tidemark.schema_version() returns integer language sql immutable as 'select ${version}'`,
      )
      await expect(openPostgresStore({ url: fresh })).rejects.toMatchObject({
        code: 'STORE_OLDER',
        message: expect.stringContaining(`version ${version}`),
      })
      expect((await client.query('select tidemark.schema_version() as version')).rows).toEqual([{ version }])
    },
  )

  test('tables of the oldest supported version are upgraded, and keep their content', async () => {
    const fresh = await createDatabase(server)
    closing.push(() => dropDatabase(server, fresh))
    const client = await connect(fresh)
    for (const text of ['create schema tidemark', ...MIGRATIONS.slice(0, SCHEMA_VERSION_MIN)]) await client.query(text)
    await client.query(
      `create function tidemark.schema_version() returns integer language sql immutable as 'select ${SCHEMA_VERSION_MIN}'`,
    )
    await client.query(`set tidemark.tenant = 'default'; insert into tidemark.registry (tenant_id, connector_id, stream_id, version, committed) values ('default', 'w', 's', 1, '7');
      insert into tidemark.audit (tenant_id, sync_id, version, at, actor, action, reason, state) values ('default', 1, 1, 0, 'engine', 'complete', '', '7');
      insert into tidemark.registry (tenant_id, connector_id, stream_id) values ('default', 'w', 't');
      insert into tidemark.pacers (tenant_id, sync_id, pacer, slot_at) values ('default', 1, 'api', 500), ('default', 2, 'api', 700), ('default', 2, 'slow', 600)`)
    const store = await open({ url: fresh })
    expect((await client.query('select tidemark.schema_version() as version')).rows).toEqual([
      { version: SCHEMA_VERSION },
    ])
    expect(await store.readCheckpoint({ worker: 'w', sync: 's' })).toMatchObject({ version: 1, committed: '7' })
    await store.signalSync({ worker: 'w', sync: 's' }, { kind: 'pause', actor: 'ana', at: 1 })
    expect(await verifyAuditChain(store)).toMatchObject({ intact: true, entries: 1 })
    // Since then all syncs share one budget: the slots that any of them took count.
    expect(await store.lastSlotTimes('w')).toEqual({ api: 700, slow: 600 })
    expect(await store.forTenant('other').lastSlotTimes('w')).toEqual({})
  })

  test('XC26 a server whose clock was set back does not delay pacers', async () => {
    const store = await open({ url })
    const request = { worker: 'w', pacer: 'api', count: 1, paceMs: 10, at: 0 }
    await store.takeSlots(request)
    const superuser = await connect(asSuperuser())
    const shift = async (ms: number): Promise<number> => {
      await superuser.query('update tidemark.pacers set slot_at = slot_at + $1, taken_at = taken_at + $1', [ms])
      const { now, firstSlotAt: first } = await store.takeSlots(request)
      return first - now
    }
    expect(await shift(3_600_000)).toBeLessThanOrEqual(20)
    // As far behind as a request that waited for the lock may be.
    expect(await shift(30_000)).toBeGreaterThan(25_000)
  })

  test('a foreign schema of that name is STORE_FOREIGN, and left alone', async () => {
    const fresh = await createDatabase(server)
    closing.push(() => dropDatabase(server, fresh))
    const client = await connect(fresh)
    await client.query('create schema tidemark; create table tidemark.log (theirs text)')
    await expect(openPostgresStore({ url: fresh })).rejects.toMatchObject({ code: 'STORE_FOREIGN' })
    expect(
      (await client.query("select from pg_class where relnamespace = 'tidemark'::regnamespace and relkind = 'r'"))
        .rowCount,
    ).toBe(1)
  })
})
