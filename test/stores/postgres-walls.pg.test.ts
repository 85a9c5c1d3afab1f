import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { JsonObject, JsonValue, Landing, Store } from '../../src/contract/index.ts'
import { verifyAuditChain } from '../../src/registry/verify-audit-chain.ts'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import {
  readLiveRows,
  makeQuarantined,
  remove,
  readSnapshot,
  SyncDriver,
  upsert,
} from '../../src/testing/store-cases/harness.ts'
import { equalsJson, stringifyJson } from '../../src/values/json.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { query } from './postgres-harness.ts'

const server = inject('postgresUrl')

describe.skipIf(server === '')('postgres store, tenant isolation and tables', () => {
  let url: string
  let store: Store
  /** The tables' owner, which is not a superuser. */
  let role: pg.Client

  beforeAll(async () => {
    url = await createDatabase(server)
    store = await openPostgresStore({ url })
    role = new pg.Client({ connectionString: url })
    await role.connect()
    for (const tenant of [store, store.forTenant('acme')]) {
      await tenant.cursorSecrets({ secret: 's', createdAt: 1, rotateAfterMs: 1, retainMs: 1 })
      await tenant.offerColumnKey({ id: 'c00000000', secret: 's' }, { actor: 'test', at: 1 })
      const rules = await tenant.acquire({ worker: 'w', sync: 'rules' }, { holder: 'p', ttlMs: 1_000, at: 1 })
      if (rules.kind === 'acquired') {
        await tenant.beginCycle(rules.lease, {
          at: 1,
          mode: 'replace',
          trigger: 'test',
          fresh: false,
          databases: [],
          rules: { sync: 'rules', fingerprints: { people: 'f' } },
        })
        await tenant.release(rules.lease)
      }
      await tenant.addApiKey({
        id: tenant.tenant,
        name: '',
        hash: '',
        scopes: [],
        rateLimit: 1,
        createdAt: 1,
        endsAt: null,
      })
      await tenant.putWebhook(
        { id: 'w', url: '', databases: null, actions: null, allow: [], secrets: '', createdAt: 1 },
        { sequence: 0, floor: 0 },
      )
      await tenant.recordDeliveries((await tenant.claimWebhook('w', { holder: 'h', ttlMs: 1, at: 1 }))!, {
        progress: {
          sequence: 1,
          floor: 0,
          failureStreak: 0,
          retryAt: null,
          succeededAt: null,
          failedAt: null,
          lastStatus: null,
          lastResponse: null,
          disabledReason: null,
        },
        delivered: [],
        undelivered: [
          {
            sequence: 1,
            messageId: 'm',
            database: 'd',
            key: 'k',
            body: '',
            attempts: 0,
            firstAt: null,
            nextAt: 1,
            failed: false,
            lastStatus: null,
            lastResponse: null,
          },
        ],
      })
      await tenant.putConsumer(
        {
          owner: 'o',
          name: 'n',
          resource: 'changes',
          databases: null,
          sequence: 1,
          cursor: null,
          checkpointAt: 1,
          reportedAt: 1,
          metadata: null,
        },
        { ownedMax: 1 },
      )
      await tenant.countRequests(1, [['w', 1]])
      await tenant.takeSlots({ worker: 'w', pacer: 'p', count: 1, paceMs: 1, at: 1 })
      await tenant.recordPause({ worker: 'w', pacers: ['p'], origin: 'o', ms: 3_600_000, at: 1 })
      await tenant.putConnection(
        {
          name: 'c',
          provider: 'p',
          status: 'active',
          statusReason: null,
          settings: {},
          scopes: [],
          account: null,
          replaces: null,
          credentials: 'x',
        },
        { actor: 'test', at: 1 },
      )
      await tenant.addConnectSession(
        { id: `session of ${tenant.tenant}`, browser: 'b', createdAt: 1, expiresAt: 2 ** 50 },
        'secrets',
      )
      await tenant.beginVerification('more', { holder: 'w', ttlMs: 1, at: 1, actor: 'test' })
      await tenant.signalDestination('copy', { kind: 'pause' }, { actor: 'test', at: 1 })
      await tenant.claimInbound({ source: 's', id: 'i' }, { at: 1, claimTtlMs: 1, purgeBefore: 0 })
      const driver = await SyncDriver.acquire(tenant, { mode: 'replace' })
      await driver.begin()
      await driver.page([upsert('a', { of: tenant.tenant })], {
        quarantined: [makeQuarantined('q')],
        partitions: [{ key: 'p', state: '1' }],
      })
      await driver.page([upsert('a', { of: tenant.tenant })])
      const other = await SyncDriver.acquire(tenant, { mode: 'replace', sync: 'other' })
      await other.begin()
      await other.page([upsert('a', { of: tenant.tenant })])
      await other.abandon()
      const third = await SyncDriver.acquire(tenant, { sync: 'third' })
      await third.cycle([
        upsert('gone', { n: 1 }, { at: 10, database: 'more' }),
        upsert('still', { n: 1 }, { at: 10, database: 'more' }),
      ])
      await third.cycle([remove('gone', { at: 20, database: 'more' })])
      await contest(await SyncDriver.acquire(tenant, { mode: 'replace', sync: 'fourth' }), 'still')
      await tenant.putDataKey({ id: 'd1', wrappedBy: 'k1', wrapped: 'x' }, { actor: 'ana', at: 1 })
    }
  })
  afterAll(async () => {
    await role.end()
    await store.close()
    await dropDatabase(server, url)
  })

  async function rows<Row extends object>(sql: string, client = role): Promise<Row[]> {
    return (await client.query<Row>(sql)).rows
  }
  async function tables(): Promise<string[]> {
    return (
      await rows<{ name: string }>("select tablename as name from pg_tables where schemaname = 'tidemark' order by 1")
    ).map(({ name }) => name)
  }

  // ── tenant isolation
  // ────────────────────────────────────────────────────────────────────────────────────────────────

  test('Z9 every primary key and every unique index of the catalog starts with the tenant', async () => {
    const keys = await rows<{ index: string; first: string }>(
      `select i.indexrelid::regclass::text as index, a.attname as first from pg_index i join pg_class c on c.oid = i.indrelid
         join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
       where c.relnamespace = 'tidemark'::regnamespace and (i.indisprimary or i.indisunique)`,
    )
    expect(keys.length).toBeGreaterThanOrEqual((await tables()).length)
    expect(keys.filter(({ first }) => first !== 'tenant_id')).toEqual([])
    const primary = await rows(
      "select from pg_index i join pg_class c on c.oid = i.indrelid where c.relnamespace = 'tidemark'::regnamespace and i.indisprimary",
    )
    expect(primary.length).toBe((await tables()).length)
  })

  test('Z10 row level security is enabled and forced on every table, with a policy for reading and for writing', async () => {
    const open = await rows<{ name: string }>(
      `select c.relname as name from pg_class c where c.relnamespace = 'tidemark'::regnamespace and c.relkind = 'r'
       and not (c.relrowsecurity and c.relforcerowsecurity and exists (select from pg_policy p where p.polrelid = c.oid and p.polqual is not null and p.polwithcheck is not null))`,
    )
    expect(open).toEqual([])
  })

  test('Z10 Z11 XF14 without a tenant, with an empty one or with another, the tables show no rows and accept none', async () => {
    const names = await tables()
    // After a setting that a transaction made for itself, the session's is '' and not null.
    const leftOver = "begin; select set_config('tidemark.tenant', 'acme', true); commit"
    for (const prepare of [
      'reset tidemark.tenant',
      "set tidemark.tenant = ''",
      leftOver,
      "set tidemark.tenant = 'absent'",
    ]) {
      await role.query(prepare)
      for (const name of names)
        expect(await rows(`select from tidemark.${name}`), `${name} after ${prepare}`).toEqual([])
      for (const tenant of ['default', 'acme', '']) {
        await expect(role.query(`insert into tidemark.tenants (tenant_id) values ('${tenant}')`)).rejects.toMatchObject(
          { code: expect.stringMatching(/42501|23514/) },
        )
        await expect(
          role.query(
            `insert into tidemark.pacers (tenant_id, connector_id, pacer, slot_at, taken_at) values ('${tenant}', 'w', 'x', 1, 1)`,
          ),
        ).rejects.toMatchObject({ code: expect.stringMatching(/42501|23514/) })
      }
    }
    await role.query("set tidemark.tenant = 'acme'")
    for (const name of names.filter((name) => name !== 'claims' && name !== 'seen')) {
      const tenants = await rows<{ tenant_id: string }>(`select distinct tenant_id from tidemark.${name}`)
      expect(tenants, name).toEqual([{ tenant_id: 'acme' }])
    }
    await expect(role.query("update tidemark.tombstones set tenant_id = 'default'")).rejects.toMatchObject({
      code: '42501',
    })
  })

  test('Z24 the audit log accepts new entries and refuses changes and deletions, even by the role that owns it', async () => {
    await role.query("set tidemark.tenant = 'acme'")
    for (const statement of ["update tidemark.audit set actor = 'eve'", 'delete from tidemark.audit']) {
      await expect(role.query(statement)).rejects.toThrow('only ever added to')
    }
    expect(await verifyAuditChain(store.forTenant('acme'))).toMatchObject({ intact: true })
  })

  test('Z14 an erased tenant leaves no rows and no tables; a dependent view stops the erasure before it begins', async () => {
    const canary = store.forTenant('canary-91')
    const driver = await SyncDriver.acquire(canary)
    await driver.cycle([upsert('canary-key', { of: 'canary' })], { quarantined: [makeQuarantined('canary-bad')] })
    await driver.cycle([upsert('canary-key', { of: 'canary 2' }), remove('canary-gone')])
    await driver.set('"canary"', 'canary', 'canary')
    await driver.release()
    const hits = async (): Promise<string[]> => {
      const found = await Promise.all(
        (await tables()).map(async (name) =>
          (await query(url, `select from tidemark.${name} t where t::text like '%canary%'`)).length > 0 ? [name] : [],
        ),
      )
      return found.flat()
    }
    await role.query('create view report_on_canary as select * from "canary-91".things')
    const before = await hits()
    expect(before).toEqual(
      expect.arrayContaining(['audit', 'commits', 'holdings', 'quarantine', 'registry', 'tenants', 'tombstones']),
    )
    await expect(canary.eraseTenant({ actor: 'ana', at: 1 })).rejects.toMatchObject({
      code: 'STORE_FOREIGN',
      message: expect.stringContaining('"canary-91".things'),
    })
    expect(await hits()).toEqual(before)
    await role.query('drop view report_on_canary')
    expect(await canary.eraseTenant({ actor: 'ana', at: 1 })).toMatchObject({ kind: 'erased', syncs: 1 })
    // The tenant's name, and the record of the erasure.
    expect(await hits()).toEqual(['audit', 'tenants'])
    expect(await query(url, "select action, reason from tidemark.audit where tenant_id = 'canary-91'")).toMatchObject([
      { action: 'erase' },
    ])
    expect(await rows('select from pg_class where relnamespace = \'"canary-91"\'::regnamespace')).toEqual([])
  })

  test('Z11 XF15 one pooled connection serves tenants in turn and keeps no state between them', async () => {
    const narrow = await openPostgresStore({ url, poolMax: 1 })
    for (let n = 0; n < 3; n++) {
      expect(await readLiveRows(narrow)).toEqual([['a', { of: 'default' }]])
      expect(await readLiveRows(narrow.forTenant('acme'))).toEqual([['a', { of: 'acme' }]])
      expect(await readLiveRows(narrow.forTenant('nobody'))).toEqual([])
    }
    await narrow.close()
  })

  test("XF14 a tenant's name that contains SQL is treated as a name", async () => {
    const evil = store.forTenant("x', true); drop table tidemark.commits; --")
    expect(await evil.headSequence()).toBe(0)
    await evil.signalSync({ worker: "'; --", sync: '"' }, { kind: 'pause', actor: '', at: 1 })
    expect(await evil.syncs()).toEqual([{ worker: "'; --", sync: '"' }])
    expect((await readLiveRows(store)).length).toBe(1)
  })

  test('Z12 no function runs with the rights of its owner', async () => {
    expect(
      await rows("select oid::regprocedure from pg_proc where pronamespace = 'tidemark'::regnamespace and prosecdef"),
    ).toEqual([])
  })

  test("Z12 a tenant's tables are in a schema of its own: a role that may read one tenant's tables reads no other tenant's, and none of the store's own", async () => {
    const name = `reader_${new URL(url).pathname.slice(1)}`
    const reader = new pg.Client({ connectionString: Object.assign(new URL(url), { username: name }).href })
    await query(
      url,
      `create role ${name} login; grant usage on schema acme to ${name}; grant select on acme.things to ${name}`,
    )
    await reader.connect()
    expect(await rows('select "of" from acme.things where _key = \'a\'', reader)).toEqual([{ of: 'acme' }])
    for (const sql of [
      'select * from acme.things_history',
      'select * from public.things',
      'select * from tidemark.tombstones',
      'delete from acme.things',
    ]) {
      await expect(reader.query(sql), sql).rejects.toMatchObject({ code: '42501' })
    }
    await reader.end()
    await query(url, `drop owned by ${name}; drop role ${name}`)
  })

  // ── tables ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  async function types(view: string): Promise<Record<string, string>> {
    const found = await rows<{ name: string; type: string }>(
      `select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute where attrelid = '${view}'::regclass and attnum > 0 order by attnum`,
    )
    return Object.fromEntries(found.map(({ name, type }) => [name, type]))
  }

  const OWN = {
    _key: 'text',
    _sequence: 'bigint',
    _created_sequence: 'bigint',
    _hash: 'text',
    _upstream_at: 'timestamp with time zone',
    _synced_at: 'timestamp with time zone',
    _cursor: 'text',
    _writer: 'integer',
    _owner: 'integer',
    _extra: 'json',
  }

  test("a table's columns have PostgreSQL's own types, and so has its history", async () => {
    const driver = await SyncDriver.acquire(store, { sync: 'types' })
    await driver.begin({ databases: ['typed'] })
    const [one, two] = [
      {
        i: 1,
        f: 1.5,
        i_f: 1,
        big: 2n ** 70n,
        i_big: 1,
        t: true,
        s: 'x',
        o: { a: 1 },
        l: [1],
        none: null,
        mixed: 1,
        huge: 1.5e300,
        small: 5e-324,
        at: '2026-01-02T03:04:05.678Z',
        on: '2026-01-02',
      },
      {
        i: -(2n ** 63n),
        f: 2.5,
        i_f: 1.5,
        big: 2n ** 71n,
        i_big: -(2n ** 70n),
        t: false,
        s: '',
        o: null,
        l: null,
        none: null,
        mixed: 'x',
        huge: -1.7976931348623157e308,
        small: 0.1,
        at: '0001-01-02T03:04:05.670Z',
        on: '9999-12-31',
      },
    ]
    await driver.complete([
      upsert('a', one!, { database: 'typed', at: -60_000_000_000 }),
      upsert('b', two!, { database: 'typed' }),
    ])
    const members = {
      i: 'bigint',
      f: 'double precision',
      i_f: 'double precision',
      big: 'numeric',
      i_big: 'numeric',
      t: 'boolean',
      s: 'text',
      o: 'jsonb',
      l: 'jsonb',
      mixed: 'text',
      huge: 'double precision',
      small: 'double precision',
      at: 'timestamp with time zone',
      on: 'date',
    }
    expect(await types('typed')).toEqual({ ...OWN, ...members })
    expect(await types('typed_history')).toEqual({
      _until_sequence: 'bigint',
      _until_at: 'timestamp with time zone',
      ...OWN,
      ...members,
    })
    const [a, b] = await rows<Record<string, unknown>>(
      'select *, "on"::text as "on", "at"::text as "at" from typed order by _key',
    )
    expect(a).toMatchObject({
      i: '1',
      f: 1.5,
      i_f: 1,
      big: String(2n ** 70n),
      i_big: '1',
      t: true,
      s: 'x',
      o: { a: 1 },
      l: [1],
      mixed: '1',
      huge: 1.5e300,
      small: 5e-324,
      on: '2026-01-02',
    })
    expect(b).toMatchObject({
      i: String(-(2n ** 63n)),
      i_f: 1.5,
      i_big: String(-(2n ** 70n)),
      t: false,
      s: '',
      o: null,
      l: null,
      mixed: 'x',
      huge: -1.7976931348623157e308,
      on: '9999-12-31',
    })
    for (const [key, record] of [
      ['a', one!],
      ['b', two!],
    ] as const) {
      expect(equalsJson((await store.row('typed', key))!.text, stringifyJson(record)), key).toBe(true)
    }
  })

  test('every JSON value is returned exactly, whatever the columns are', async () => {
    const driver = await SyncDriver.acquire(store, { sync: 'exact' })
    const values: JsonValue[] = [
      1,
      1.5,
      'x',
      '',
      null,
      true,
      { a: 1 },
      [1],
      2n ** 200n,
      -(2n ** 63n),
      2n ** 63n,
      1.5e300,
      5e-324,
      -0,
      1e21,
      123456.000001,
      [1e21, { n: -0 }],
      '2026-01-02',
      '2026-01-02T03:04:05Z',
      '2026-01-02T03:04:05.123456Z',
      '2016-12-31T23:59:60Z',
      '2026-01-02T03:04:05+02:00',
      'a\\b\n"',
      '0000-01-01T00:00:00Z',
    ]
    const names = [...values.keys()].map((n) => `m${n}`)
    for (let round = 0; round < 3; round++) {
      const records = names.map(
        (_, at) =>
          Object.fromEntries(
            names.flatMap((name, n) => ((n + at) % 7 === 0 ? [] : [[name, values[(n + at * round) % values.length]!]])),
          ) as JsonObject,
      )
      await driver.begin({ databases: ['exact'] })
      await driver.complete(records.map((record, at) => upsert(`k${at}`, record, { database: 'exact' })))
      for (const [at, record] of records.entries()) {
        const text = (await store.row('exact', `k${at}`))!.text
        expect(equalsJson(text, stringifyJson(record)), `k${at} of round ${round}`).toBe(true)
      }
    }
    const longest = `{"m0":1${'0'.repeat(140_000)},"m6":1}`
    await driver.begin({ databases: ['exact'] })
    await driver.complete([upsert('longest', longest, { database: 'exact' })])
    expect(equalsJson((await store.row('exact', 'longest'))!.text, longest)).toBe(true)
  })

  test('invariant 14: the user’s additions to a table survive: an index, a grant, a trigger, a foreign key, a view, columns', async () => {
    const driver = await SyncDriver.acquire(store, { sync: 'mine' })
    const land = async (...landings: Landing[]): Promise<void> => {
      await driver.begin({ databases: ['base'] })
      await driver.complete(landings)
    }
    const row = (key: string, record: JsonObject): Landing => upsert(key, record, { database: 'base' })
    await land(row('a', { n: 1 }), row('b', { n: 1 }))
    await role.query(`create view report as select n from base; grant select on base to public; create index base_by_n on base (n);
      alter table base add column added text default 'mine', add column noted integer not null default 7; comment on table base is 'theirs';
      create table orders (base_key text references base); insert into orders values ('a');
      create table seen_by_trigger (key text); create function note() returns trigger language plpgsql as 'begin insert into public.seen_by_trigger values (new._key); return new; end';
      create trigger noting after insert or update on base for each row execute function note(); update base set noted = 8 where _key = 'a'`)
    await land(row('a', { n: 2, added: 'x' }), row('c', { n: 'text', added: 'y' }))
    expect(await rows('select _key, n, added, noted, added_2 from base order by _key')).toEqual([
      { _key: 'a', n: '2', added: 'mine', noted: 8, added_2: 'x' },
      { _key: 'b', n: '1', added: 'mine', noted: 7, added_2: null },
      { _key: 'c', n: null, added: 'mine', noted: 7, added_2: 'y' },
    ])
    expect(await rows('select n from report order by n')).toEqual([{ n: '1' }, { n: '2' }, { n: null }])
    expect(await rows('select distinct key from seen_by_trigger order by key')).toEqual([{ key: 'a' }, { key: 'c' }])
    expect(
      await rows(
        "select from pg_class c, aclexplode(c.relacl) a where c.oid = 'base'::regclass and a.grantee = 0 and a.privilege_type = 'SELECT'",
      ),
    ).toHaveLength(1)
    expect(
      await rows("select obj_description('base'::regclass) as note, to_regclass('base_by_n') is not null as indexed"),
    ).toEqual([{ note: 'theirs', indexed: true }])
    expect((await store.rows({ database: 'base', limit: 10 })).map(({ text }) => JSON.parse(text) as unknown)).toEqual([
      { n: 2, added: 'x' },
      { n: 1 },
      { n: 'text', added: 'y' },
    ])
    // A row that an order refers to cannot be deleted: the commit reports that, and lands nothing.
    await expect(land(remove('a', { database: 'base' }))).rejects.toMatchObject({
      code: 'STORE_FOREIGN',
      message: expect.stringContaining('orders'),
    })
    await role.query('drop view report; drop table orders; drop trigger noting on base')
  })

  test('a long query on a table does not delay the landing: a new field waits in _extra and gets its column with a later page', async () => {
    const driver = await SyncDriver.acquire(store, { sync: 'held' })
    await driver.begin({ databases: ['held'] })
    await driver.page([upsert('a', { n: 1 }, { database: 'held' })])
    await role.query('begin; select * from held')
    await driver.page([upsert('b', { n: 2, added: 1 }, { database: 'held' })])
    await role.query('commit')
    expect(Object.keys(await types('held'))).not.toContain('added')
    expect(await rows("select _extra from held where _key = 'b'")).toEqual([{ _extra: { values: { added: 1 } } }])
    await driver.page([
      upsert('c', { n: 3, added: 2 }, { database: 'held' }),
      upsert('a', { n: 4 }, { database: 'held' }),
    ])
    expect(await rows('select _key, added from held order by _key')).toEqual([
      { _key: 'a', added: null },
      { _key: 'b', added: null },
      { _key: 'c', added: '2' },
    ])
    expect((await store.rows({ database: 'held', limit: 10 })).map(({ text }) => JSON.parse(text) as unknown)).toEqual([
      { n: 4 },
      { n: 2, added: 1 },
      { n: 3, added: 2 },
    ])
  })

  test('with soft deletes, the user’s columns of a row and references to it stay while the record is deleted', async () => {
    const driver = await SyncDriver.acquire(store, { sync: 'kept' })
    const deletes = { kept: 'soft' } as const
    const land = async (landings: Landing[], mode: 'hard' | 'soft' = 'soft'): Promise<void> => {
      await driver.begin({ databases: ['kept'] })
      await driver.complete(landings, { deletes: { ...deletes, kept: mode } })
    }
    await land([upsert('a', { n: 1 }, { database: 'kept' }), upsert('b', { n: 1 }, { database: 'kept' })])
    await role.query(`alter table kept add column note text; update kept set note = 'mine' where _key = 'a';
      create table parcels (kept_key text references kept); insert into parcels values ('a')`)
    await land([remove('a', { database: 'kept' }), remove('b', { database: 'kept' })])
    expect(
      await rows('select _key, note, _deleted_at is not null as gone from parcels join kept on _key = kept_key'),
    ).toEqual([{ _key: 'a', note: 'mine', gone: true }])
    await land([upsert('a', { n: 2 }, { database: 'kept' })])
    expect(await rows('select _key, n, note, _deleted_at from kept where _deleted_at is null')).toEqual([
      { _key: 'a', n: '2', note: 'mine', _deleted_at: null },
    ])
    expect(await types('kept')).toMatchObject({ _deleted_at: 'timestamp with time zone' })
    // With hard deletes again, a row that a parcel refers to cannot be deleted: as with any hard delete the commit
    // reports that, and lands nothing.
    await land([remove('a', { database: 'kept' })])
    await land([], 'hard')
    await expect(land([], 'hard')).rejects.toMatchObject({
      code: 'STORE_FOREIGN',
      message: expect.stringContaining('parcels'),
    })
    await role.query('drop table parcels')
    const again = await SyncDriver.acquire(store, { sync: 'kept', evict: 'runner-1' })
    await again.complete([], { deletes: { kept: 'hard' } })
    expect(await rows('select _key from kept')).toEqual([])
  })

  test('a column _deleted_at of the user is left alone: soft deletes are refused, and nothing changes', async () => {
    const driver = await SyncDriver.acquire(store, { sync: 'own' })
    await driver.begin({ databases: ['own'] })
    await driver.page([upsert('a', { n: 1 }, { database: 'own' })])
    await role.query("alter table own add column _deleted_at text default 'mine'")
    const commit = await driver.draft(driver.nextPage(), [remove('a', { database: 'own' })], {
      deletes: { own: 'soft' },
    })
    await expect(store.commit(commit)).rejects.toMatchObject({
      code: 'STORE_FOREIGN',
      message: expect.stringContaining('_deleted_at'),
    })
    expect(await rows('select _key, _deleted_at from own')).toEqual([{ _key: 'a', _deleted_at: 'mine' }])
    expect((await store.schema('own'))!.ownColumns).toEqual(['_deleted_at'])
    expect(
      (await driver.complete([remove('a', { database: 'own' })], { deletes: { own: 'hard' } })).counts.deleted,
    ).toBe(1)
  })

  test('a long query on a table delays the first soft delete, and no other change', async () => {
    const driver = await SyncDriver.acquire(store, { sync: 'reader', mode: 'replace' })
    const deletes = { reader: 'soft' } as const
    await driver.begin({ databases: ['reader'] })
    await driver.complete(['a', 'b', 'c', 'd'].map((key) => upsert(key, { n: 1 }, { database: 'reader' })))
    await role.query('begin; select * from reader')
    await driver.begin({ databases: ['reader'] })
    await driver.page([upsert('a', { n: 2 }, { database: 'reader' }), upsert('b', { n: 1 }, { database: 'reader' })], {
      deletes,
    })
    const swept = await driver.draft(driver.lastPage(), [], { deletes })
    await expect(store.commit(swept)).rejects.toMatchObject({
      code: 'STORE_BUSY',
      message: expect.stringContaining('_deleted_at'),
    })
    const deleted = await driver.draft(driver.nextPage(), [remove('c', { database: 'reader' })], { deletes })
    await expect(store.commit(deleted)).rejects.toMatchObject({ code: 'STORE_BUSY' })
    await role.query('commit')
    await driver.page([remove('c', { database: 'reader' })], { deletes })
    expect((await driver.complete([], { deletes })).counts.swept).toBe(1)
    expect(await rows('select _key, _deleted_at is not null as gone from reader order by 1')).toEqual([
      { _key: 'a', gone: false },
      { _key: 'b', gone: false },
      { _key: 'c', gone: true },
      { _key: 'd', gone: true },
    ])
  })

  test('a database may have the name of a history table: each gets its own tables', async () => {
    const driver = await SyncDriver.acquire(store, { sync: 'names' })
    await driver.begin({ databases: ['name', 'name_history', 'name_history_history'] })
    await driver.complete(
      ['name', 'name_history', 'name_history_history'].map((database) => upsert('k', { of: database }, { database })),
    )
    const found = (await store.databases()).filter(({ name }) => name.startsWith('name'))
    for (const { name, table } of found) expect(await rows(`select "of" from ${table}`)).toEqual([{ of: name }])
    expect(found.length).toBe(3)
  })

  test('a foreign relation with the name of a table is STORE_FOREIGN; nothing is changed', async () => {
    await role.query('create table public.theirs (n integer)')
    const driver = await SyncDriver.acquire(store, { sync: 'foreign' })
    const before = await readSnapshot(store)
    const begin = store.beginCycle(driver.lease, {
      at: 1,
      mode: 'incremental',
      trigger: 'x',
      fresh: false,
      databases: ['theirs'],
    })
    await expect(begin).rejects.toMatchObject({
      code: 'STORE_FOREIGN',
      message: expect.stringContaining('public.theirs'),
    })
    expect(await readSnapshot(store)).toEqual(before)
    expect(await types('public.theirs')).toEqual({ n: 'integer' })
  })

  /** Lists an older version than the stored one. */
  async function contest(driver: SyncDriver, key: string): Promise<void> {
    await driver.begin()
    await driver.page([upsert(key, { n: 0 }, { at: 5, database: 'more' })], { listing: { settledSequence: 0 } })
    await driver.release()
  }
})
