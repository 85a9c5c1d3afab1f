import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test, vi } from 'vitest'
import { openStore } from '../../src/stores/open-store.ts'
import type { Store } from '../../src/contract/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import { seededRandom, remove, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { Project } from '../cli/project.ts'
import { createDatabase, startPostgres, type PostgresServer } from '../setup/postgres-server.ts'
import { Stream } from './feed-cases.ts'
import { apply, Order, page, write, type Replica } from './no-gap-cases.ts'
import { addKey, ServerFixture, type Body } from './server-fixture.ts'

const CHANGES = '/agents/v1/changes'
const LIST = '/agents/v1/things'
const SECONDS = Number(process.env['TIDEMARK_CAMPAIGN_SECONDS'] ?? 4)

describe.skipIf(inject('postgresUrl') === '')('the feed, served from a streaming replica', () => {
  let primary: PostgresServer
  let replica: PostgresServer
  let url: string

  beforeAll(async () => {
    primary = await startPostgres()
    url = await createDatabase(primary.url)
    await (await openPostgresStore({ url })).close()
    replica = await primary.replica()
  })
  afterAll(async () => {
    await replica?.stop()
    await primary?.stop()
  })

  test(
    'XF1 XF8 A9 A10 no gap, no reorder while it lags and catches up: readers of the replica, or of both in turn, end with exactly the current rows',
    { timeout: SECONDS * 10_000 + 120_000 },
    async () => {
      const { store, copy, onPrimary, onReplica } = await serve('no-gap')
      const both = [onPrimary, onReplica]
      const reading = [
        byCursor([onReplica]),
        byCursor([onReplica], '&wait=1'),
        byCursor(both),
        byCursor(both, '&wait=1'),
        byStream([onReplica]),
        byStream(both),
      ]
      const written = new AbortController()
      const falling = (async () => {
        const [random, behind] = [seededRandom(7), [0]]
        while (!written.signal.aborted) {
          await ask(replica, 'select pg_wal_replay_pause()')
          await systemClock.sleep(random() * 300)
          behind.push((await store.headSequence()) - (await copy.headSequence()))
          await ask(replica, 'select pg_wal_replay_resume()')
          await systemClock.sleep(random() * 100)
        }
        return Math.max(...behind)
      })()
      const until = Date.now() + SECONDS * 1_000
      try {
        await Promise.all(Array.from({ length: 4 }, async (_, n) => write(await open(url, 'no-gap'), n, until)))
        await (await SyncDriver.acquire(store, { sync: 'end' })).cycle([upsert(LAST, {})])
      } finally {
        written.abort()
      }
      expect(await falling).toBeGreaterThan(0)
      const copies = await Promise.all(reading)
      const rows = (await store.rows({ database: 'things', limit: 1_000_000 })).map(({ key, text }) => [
        key,
        JSON.stringify(JSON.parse(text)),
      ])
      expect(rows.length).toBeGreaterThan(5)
      expect(await store.headSequence()).toBeGreaterThan(100)
      for (const [n, kept] of copies.entries())
        expect(
          [...kept].toSorted(([a], [b]) => (a < b ? -1 : 1)),
          `reader ${n}`,
        ).toEqual(rows)
    },
  )

  test('A10 A11 a position ahead of the replica gives an empty page and the same cursor, and continues once it has caught up', async () => {
    const { onPrimary, onReplica, driver } = await serve('behind')
    await driver.cycle([upsert('a', { n: 1 })])
    await caughtUp()
    await pause()
    await driver.cycle([upsert('b', { n: 2 })])
    const cursor = async (path: string): Promise<string> => (await onPrimary.get(path)).body.page.nextCursor
    const places = [`${CHANGES}?`, `${CHANGES}?types=things&`, `${LIST}?`]
    const cursors = await Promise.all(places.map(cursor))
    const isStill = async (): Promise<void> => {
      for (const [n, path] of places.entries()) {
        const { status, body } = await onReplica.get(`${path}cursor=${cursors[n]}`)
        expect([status, body.data, body.page.hasMore, body.page.nextCursor]).toEqual([200, [], false, cursors[n]])
      }
    }
    await isStill()
    // By a time that it has not reached either: no changes yet, and the cursor continues to all that follow.
    const { updatedAt } = (await onPrimary.get(CHANGES)).body.data.at(-1)
    const byTime = (await onReplica.get(`${CHANGES}?updatedSince=${updatedAt}`)).body
    expect([byTime.data, byTime.page.hasMore]).toEqual([[], false])
    expect((await onReplica.get(CHANGES)).body.data.map(keyOf)).toEqual(['a'])
    // A cursor that is held for days is reissued with the same content.
    onReplica.shift.ms = 2 * 86_400_000
    const renewed = (await onReplica.get(`${CHANGES}?cursor=${cursors[0]}`)).body.page.nextCursor
    expect(renewed).not.toBe(cursors[0])
    onReplica.shift.ms = 0
    // A long poll returns nothing known, and nothing before there is a change.
    const waiting = onReplica.get(`${CHANGES}?wait=30&cursor=${cursors[0]}`)
    const stream = await Stream.open(onReplica, CHANGES, { 'last-event-id': cursors[0]! })
    const streamed = stream.take(1)
    await resume()
    await caughtUp()
    await isStill()
    await driver.cycle([upsert('c', { n: 3 }), remove('a')])
    expect((await waiting).body.data.map(keyOf)).toEqual(['a', 'c'])
    expect((await streamed).map(({ data }) => keyOf(data))).toEqual(['a'])
    stream.close()
    await caughtUp()
    for (const [path, keys] of [
      [`${places[0]}cursor=${cursors[0]}`, 'a c'],
      [`${places[0]}cursor=${renewed}`, 'a c'],
      [`${places[1]}cursor=${cursors[1]}`, 'a c'],
      [`${places[2]}cursor=${cursors[2]}`, 'c'],
      [`${places[0]}cursor=${byTime.page.nextCursor}`, 'b a c'],
    ] as const) {
      expect((await onReplica.get(path)).body.data.map(keyOf).join(' ')).toBe(keys)
    }
  })

  test('A10 a change that its primary does not show yet, because it waits for a replica, is waited for by a reader that saw it on one', async () => {
    const { store, copy, onPrimary, onReplica, driver } = await serve('ahead')
    await driver.cycle([upsert('a', { n: 1 })])
    await driver.begin()
    onTestFinished(stopWaiting)
    await reload("alter system set synchronous_standby_names = 'absent'")
    const committing = driver.complete([upsert('b', { n: 2 })])
    await expect.poll(() => copy.headSequence(), { timeout: 30_000, interval: 20 }).toBe(2)
    expect(await store.headSequence()).toBe(1)
    const { nextCursor } = (await onReplica.get(CHANGES)).body.page
    const answered = onPrimary.get(`${CHANGES}?cursor=${nextCursor}`)
    await expect
      .poll(
        () =>
          ask(
            primary,
            "select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query like '%for update%'",
          ),
        { timeout: 30_000, interval: 20 },
      )
      .toEqual({ n: 1 })
    await stopWaiting()
    expect(await answered).toMatchObject({ status: 200, body: { data: [], page: { hasMore: false, nextCursor } } })
    await committing
  })

  test('A10 a restored primary still rejects the cursors of its lost changes', async () => {
    const { onPrimary, onReplica, driver, store } = await serve('set-back')
    await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 2 })])
    await caughtUp()
    const { nextCursor } = (await onReplica.get(CHANGES)).body.page
    // Like a promoted replica that never received the last changes.
    for (const sql of ['delete from tidemark.commits', 'update tidemark.tenants set sequence = 0'])
      await ask(primary, `${sql} where tenant_id = 'set-back'`, url)
    await ask(primary, 'delete from "set-back".things', url)
    expect((await onPrimary.get(`${CHANGES}?cursor=${nextCursor}`)).body.details).toEqual({
      reason: 'cursor_expired',
      restart: 'backfill',
    })
    await (await SyncDriver.acquire(store, { sync: 'again' })).cycle([upsert('c', { n: 3 }), upsert('d', { n: 4 })])
    await caughtUp()
    // The replica cannot distinguish lag from a restore until its sequence has advanced again on another history.
    expect((await onReplica.get(`${CHANGES}?cursor=${nextCursor}`)).body.details).toEqual({
      reason: 'cursor_expired',
      restart: 'backfill',
    })
  })

  test('A10 a read that started on one side of a compaction does not continue on the other, where deletions may be lost', async () => {
    const { store, onPrimary, onReplica, driver } = await serve('compacted')
    await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 2 }), upsert('c', { n: 3 })])
    await driver.cycle([remove('a')])
    await driver.cycle([upsert('d', { n: 4 })])
    await caughtUp()
    await pause()
    await store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 })
    const next = async (stand: ServerFixture, cursor = ''): Promise<Body> =>
      (await stand.get(`${CHANGES}?limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`)).body
    const expired = { reason: 'cursor_expired', restart: 'backfill' }
    // Started there it has read `a`, whose deletion is no longer in the log here.
    const there = await next(onReplica)
    expect(there.data.map(keyOf)).toEqual(['a'])
    expect((await next(onPrimary, there.page.nextCursor)).details).toEqual(expired)
    // Started here it may continue there; rows read there may be deleted here.
    const here = await next(onPrimary)
    expect(here.data.map(keyOf)).toEqual(['b'])
    const further = await next(onReplica, here.page.nextCursor)
    expect(further.data.map(keyOf)).toEqual(['c'])
    expect((await next(onPrimary, further.page.nextCursor)).details).toEqual(expired)
  })

  test('XB7 writes are rejected and not offered', async () => {
    const { store, copy, onReplica, driver } = await serve('refused')
    await driver.cycle([upsert('a', { n: 1 })])
    const admin = await addKey(store, ['admin'])
    await caughtUp()
    expect(copy.isReplica).toBe(true)
    expect(copy.forTenant('other').isReplica).toBe(true)
    expect(store.isReplica).toBe(false)
    await expect(copy.signalSync(driver.ref, { kind: 'pause', actor: 'ana', at: 1 })).rejects.toMatchObject({
      code: 'STORE_READONLY',
    })
    const checkpoint = '/agents/v1/sync-state/checkpoint'
    for (const [method, path, allow] of [
      ['POST', checkpoint, 'GET, HEAD'],
      ['DELETE', checkpoint, 'GET, HEAD'],
      ['POST', '/api/syncs/worker/delta/trigger', ''],
      ['POST', '/webhooks/worker/name', ''],
    ] as const) {
      const { status, headers, body } = await onReplica.get(path, { method, key: admin })
      expect([status, headers.get('allow'), body.error], path).toEqual([405, allow, 'METHOD_NOT_ALLOWED'])
      expect(body.message).toMatch(/replica.*primary/)
    }
    const {
      body: { paths },
    } = await onReplica.get('/openapi.json')
    expect(new Set(Object.values(paths as Record<string, object>).flatMap((methods) => Object.keys(methods)))).toEqual(
      new Set(['get']),
    )
    // Everything readable is available there, including the status of syncs and the metrics.
    for (const path of ['/api/syncs', '/metrics', '/console/api/session', '/agents/v1/sync-state/lag', '/readiness'])
      expect((await onReplica.get(path, { key: admin })).status, path).toBe(200)
  })

  test('its requests are counted where they are served', async () => {
    const { store, copy, onReplica } = await serve('counted')
    const key = await addKey(store, ['*:read'], { rateLimit: 2 })
    await caughtUp()
    const shared = vi.spyOn(copy, 'countRequests')
    const { status, headers } = await onReplica.get(CHANGES, { key })
    expect([status, headers.get('x-ratelimit-remaining')]).toEqual([200, '1'])
    expect(shared).not.toHaveBeenCalled()
  })

  test('without a cursor secret it reports what to do, and continues once there is one; an old one is sufficient', async () => {
    const [store, copy] = [
      await openStore(url, { tenant: 'secretless' }),
      await openStore(there(), { tenant: 'secretless' }),
    ]
    onTestFinished(async () => void (await Promise.all([store.close(), copy.close()])))
    const onReplica = await ServerFixture.open(
      async () => ({ store, reopen: async () => store, close: async () => {} }),
      { store: copy },
    )
    await caughtUp()
    const offer = { secret: 'ab'.repeat(32), rotateAfterMs: 1_000, retainMs: 1_000 }
    await expect(copy.cursorSecrets({ ...offer, createdAt: Date.now() })).rejects.toMatchObject({
      code: 'STORE_READONLY',
      message: expect.stringMatching(/tenant secretless.*keys create/) as string,
    })
    expect(await onReplica.get(CHANGES)).toMatchObject({
      status: 503,
      body: { error: 'SERVICE_UNAVAILABLE', message: expect.stringContaining('primary') as string },
    })
    await store.cursorSecrets({ ...offer, createdAt: 1 })
    await caughtUp()
    expect((await onReplica.get(CHANGES)).status).toBe(200)
    expect(await copy.cursorSecrets({ ...offer, secret: 'cd', createdAt: Date.now() })).toEqual([
      { secret: offer.secret, createdAt: 1 },
    ])
  })

  test('its tables come from the primary: it reports when they are outdated or missing', async () => {
    const empty = await createDatabase(primary.url)
    const older = await createDatabase(primary.url)
    await (await openPostgresStore({ url: older })).close()
    await ask(
      primary,
      "create or replace function tidemark.schema_version() returns integer language sql immutable as 'select 16'",
      older,
    )
    await caughtUp()
    await expect(openPostgresStore({ url: there(empty) })).rejects.toMatchObject({
      code: 'STORE_READONLY',
      message: expect.stringMatching(/replica.*not been replicated.*primary/) as string,
    })
    await expect(openPostgresStore({ url: there(older) })).rejects.toMatchObject({
      code: 'STORE_READONLY',
      message: expect.stringMatching(/replica.*version 16.*primary/) as string,
    })
  })

  test('`tidemark start` serves the feed there and runs nothing', async () => {
    const project = Project.withWorker()
    const database = await createDatabase(primary.url)
    const env = { TIDEMARK_KEY: randomBytes(32).toString('base64'), TIDEMARK_STORE: database }
    expect(await project.run('run', { env })).toMatchObject({ code: 0 })
    const {
      key: { text: key },
    } = JSON.parse(
      (await project.run('keys', 'create', 'reader', '--scopes', '*:read', '--json', { env })).stdout,
    ) as Body
    await caughtUp()
    const copied = { env: { ...env, TIDEMARK_STORE: there(database) } }
    expect(await project.run('start', '--no-api', copied)).toMatchObject({
      code: 3,
      stderr: expect.stringMatching(/STORE_READONLY.*replica/) as string,
    })
    const service = project.start('start', '--port', '0', '--json', copied)
    await service.says('"event":"serving"')
    const { api, replica: isReplica } = JSON.parse(service.stdout) as Body
    expect(isReplica).toBe(true)
    // No page was read from the primary: the cursor secret was created with the key.
    const answer = await fetch(`${api}${CHANGES}?limit=200`, { headers: { authorization: `Bearer ${key}` } })
    expect([answer.status, ((await answer.json()) as Body).data.length]).toEqual([200, 6])
    service.process.kill('SIGTERM')
    expect(await service.ended).toMatchObject({
      code: 0,
      stdout: expect.not.stringContaining('"event":"started"') as string,
    })
  })

  // ── the two ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** The same database on the replica. */
  function there(database = url): string {
    return Object.assign(new URL(database), { port: new URL(replica.url).port }).href
  }

  async function open(at: string, tenant: string): Promise<Store> {
    const store = await openPostgresStore({ url: at, tenant, poolMax: 4 })
    onTestFinished(() => store.close())
    return store
  }

  /** One server on each of the two. */
  async function serve(
    tenant: string,
  ): Promise<{ store: Store; copy: Store; onPrimary: ServerFixture; onReplica: ServerFixture; driver: SyncDriver }> {
    const [store, copy] = [await open(url, tenant), await open(there(), tenant)]
    const harness = async () => ({ store, reopen: async () => store, close: async () => {} })
    const onPrimary = await ServerFixture.open(harness)
    // The first page creates the cursor secret.
    expect((await onPrimary.get(CHANGES)).status).toBe(200)
    const onReplica = await ServerFixture.open(harness, { store: copy })
    const driver = await onPrimary.driver()
    await caughtUp()
    return { store, copy, onPrimary, onReplica, driver }
  }

  async function ask<Row extends object>(server: PostgresServer, sql: string, database = server.url): Promise<Row> {
    const client = new pg.Client(Object.assign(new URL(server.url), { pathname: new URL(database).pathname }).href)
    await client.connect()
    try {
      return (await client.query<Row>(sql)).rows[0]!
    } finally {
      await client.end()
    }
  }

  async function caughtUp(): Promise<void> {
    const { lsn } = await ask<{ lsn: string }>(primary, 'select pg_current_wal_lsn()::text as lsn')
    await expect
      .poll(() => ask(replica, `select pg_last_wal_replay_lsn() >= '${lsn}' as is`), { timeout: 30_000, interval: 20 })
      .toEqual({ is: true })
  }

  async function pause(): Promise<void> {
    onTestFinished(resume)
    await ask(replica, 'select pg_wal_replay_pause()')
    await expect
      .poll(() => ask(replica, 'select pg_get_wal_replay_pause_state() as is'), { timeout: 30_000, interval: 10 })
      .toEqual({ is: 'paused' })
  }

  async function resume(): Promise<void> {
    await ask(replica, 'select pg_wal_replay_resume()')
  }

  async function reload(sql: string): Promise<void> {
    await ask(primary, sql)
    await ask(primary, 'select pg_reload_conf()')
    await expect
      .poll(() => ask(primary, "select current_setting('synchronous_standby_names') as is"), {
        timeout: 30_000,
        interval: 20,
      })
      .toEqual({ is: sql.includes('absent') ? 'absent' : '' })
  }

  async function stopWaiting(): Promise<void> {
    await reload('alter system reset synchronous_standby_names')
  }
})

/** Marks the end of the writers. */
const LAST = 'zzz-last'

function keyOf({ resourceId, id }: Body): string {
  return (resourceId ?? id) as string
}

/** Sends each request to a random one of them. */
async function byCursor(stands: readonly ServerFixture[], more = ''): Promise<Replica> {
  const [replica, order, random] = [new Map() as Replica, new Order(), seededRandom(11)]
  for (let cursor = ''; ;) {
    const {
      data,
      page: { nextCursor },
    } = await page(
      stands[Math.floor(random() * stands.length)]!,
      `limit=${1 + Math.floor(random() * 60)}${more}${cursor}`,
    )
    for (const item of data) {
      order.note(item)
      apply(replica, item)
      if (item.resourceId === LAST) return replica
    }
    cursor = `&cursor=${nextCursor}`
  }
}

/** Disconnects now and then, and resumes on a random one with its last event id. */
async function byStream(stands: readonly ServerFixture[]): Promise<Replica> {
  const [replica, order, random] = [new Map() as Replica, new Order(), seededRandom(12)]
  for (let id = ''; ;) {
    const stream = await Stream.open(
      stands[Math.floor(random() * stands.length)]!,
      CHANGES,
      id === '' ? {} : { 'last-event-id': id },
    )
    for (let left = 1 + Math.floor(random() * 40); left > 0; left--) {
      const [event] = await stream.take(1)
      order.note(event!.data)
      apply(replica, event!.data)
      id = event!.id
      if (event!.data.resourceId === LAST) {
        stream.close()
        return replica
      }
    }
    stream.close()
  }
}
