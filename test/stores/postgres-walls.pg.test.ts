import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Store } from '../../src/contract/index.ts'
import { verifyTrail } from '../../src/registry/trail.ts'
import { openPostgresStore } from '../../src/stores/postgres/store.ts'
import { live, poison, snapshot, SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { query } from './postgres-harness.ts'

const server = inject('postgresUrl')

describe.skipIf(server === '')('postgres store, its walls and views', () => {
  let url: string
  let store: Store
  /** The tables' owner, who is no superuser. */
  let role: pg.Client

  beforeAll(async () => {
    url = await createDatabase(server)
    store = await openPostgresStore({ url })
    role = new pg.Client({ connectionString: url })
    await role.connect()
    for (const tenant of [store, store.forTenant('acme')]) {
      await tenant.cursorSecrets({ secret: 's', createdAt: 1, renewMs: 1, keepMs: 1 })
      await tenant.addApiKey({ id: tenant.tenant, name: '', hash: '', scopes: [], rateLimit: 1, createdAt: 1, endsAt: null })
      await tenant.putWebhook({ id: 'w', url: '', databases: null, actions: null, allow: [], secrets: '', createdAt: 1 }, { position: 0, floor: 0 })
      await tenant.noteDeliveries((await tenant.claimWebhook('w', { holder: 'h', ttlMs: 1, at: 1 }))!, {
        standing: { position: 1, floor: 0, streak: 0, retryAt: null, succeededAt: null, failedAt: null, lastStatus: null, lastAnswer: null, disabled: null }, delivered: [],
        kept: [{ sequence: 1, messageId: 'm', database: 'd', key: 'k', body: '', attempts: 0, firstAt: null, nextAt: 1, dead: false, lastStatus: null, lastAnswer: null }],
      })
      await tenant.putConsumer({ owner: 'o', name: 'n', resource: 'changes', databases: null, sequence: 1, cursor: null, checkpointAt: 1, reportedAt: 1, metadata: null }, { ownedMax: 1 })
      await tenant.countRequests(1, [['w', 1]])
      await tenant.takeSlots({ worker: 'w', pacer: 'p', count: 1, paceMs: 1, at: 1 })
      await tenant.claimInbound({ source: 's', id: 'i' }, { at: 1, busyMs: 1, forgetBefore: 0 })
      const driver = await SyncDriver.take(tenant, { mode: 'replace' })
      await driver.begin()
      await driver.page([upsert('a', { of: tenant.tenant })], { quarantined: [poison('q')] })
      await driver.page([upsert('a', { of: tenant.tenant })])
      const other = await SyncDriver.take(tenant, { mode: 'replace', sync: 'other' })
      await other.begin()
      await other.page([upsert('a', { of: tenant.tenant })])
      await other.abandon()
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
    return (await rows<{ name: string }>("select tablename as name from pg_tables where schemaname = 'tidemark' order by 1")).map(({ name }) => name)
  }

  // ── the wall between tenants ───────────────────────────────────────────────────────────────────────────────────────

  test('Z9 every primary key and every unique index of the catalog starts with the tenant', async () => {
    const keys = await rows<{ index: string; first: string }>(
      `select i.indexrelid::regclass::text as index, a.attname as first from pg_index i join pg_class c on c.oid = i.indrelid
         join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
       where c.relnamespace = 'tidemark'::regnamespace and (i.indisprimary or i.indisunique)`,
    )
    expect(keys.length).toBeGreaterThanOrEqual((await tables()).length)
    expect(keys.filter(({ first }) => first !== 'tenant_id')).toEqual([])
    const primary = await rows("select from pg_index i join pg_class c on c.oid = i.indrelid where c.relnamespace = 'tidemark'::regnamespace and i.indisprimary")
    expect(primary.length).toBe((await tables()).length)
  })

  test('Z10 row level security is enabled and forced on every table, with a policy for reading and for writing', async () => {
    const open = await rows<{ name: string }>(
      `select c.relname as name from pg_class c where c.relnamespace = 'tidemark'::regnamespace and c.relkind = 'r'
       and not (c.relrowsecurity and c.relforcerowsecurity and exists (select from pg_policy p where p.polrelid = c.oid and p.polqual is not null and p.polwithcheck is not null))`,
    )
    expect(open).toEqual([])
  })

  test('Z10 Z11 XF14 without a tenant, with a blank one or with another, the tables show nothing of ours and take nothing', async () => {
    const names = await tables()
    // After a setting that a transaction made for itself, the session's is '' and not null.
    const leftOver = "begin; select set_config('tidemark.tenant', 'acme', true); commit"
    for (const prepare of ['reset tidemark.tenant', "set tidemark.tenant = ''", leftOver, "set tidemark.tenant = 'nobody'"]) {
      await role.query(prepare)
      for (const name of names) expect(await rows(`select from tidemark.${name}`), `${name} after ${prepare}`).toEqual([])
      for (const tenant of ['default', 'acme', '']) {
        await expect(role.query(`insert into tidemark.tenants (tenant_id) values ('${tenant}')`)).rejects.toMatchObject({ code: expect.stringMatching(/42501|23514/) })
        await expect(role.query(`insert into tidemark.pacers (tenant_id, connector_id, pacer, slot_at, taken_at) values ('${tenant}', 'w', 'x', 1, 1)`)).rejects.toMatchObject({ code: expect.stringMatching(/42501|23514/) })
      }
    }
    await role.query("set tidemark.tenant = 'acme'")
    for (const name of names.filter((name) => name !== 'claims' && name !== 'seen')) {
      const tenants = await rows<{ tenant_id: string }>(`select distinct tenant_id from tidemark.${name}`)
      expect(tenants, name).toEqual([{ tenant_id: 'acme' }])
    }
    await expect(role.query("update tidemark.rows set tenant_id = 'default'")).rejects.toMatchObject({ code: '42501' })
  })

  test('Z24 the audit takes new entries and lets none be changed or removed, also by the role that owns it', async () => {
    await role.query("set tidemark.tenant = 'acme'")
    for (const statement of ["update tidemark.audit set actor = 'eve'", 'delete from tidemark.audit']) {
      await expect(role.query(statement)).rejects.toThrow('only ever added to')
    }
    expect(await verifyTrail(store.forTenant('acme'))).toMatchObject({ intact: true })
  })

  test('Z14 an erased tenant is in no table any more, nor is its view; a view that others built upon stops the erasure before it begins', async () => {
    const canary = store.forTenant('canary-91')
    const driver = await SyncDriver.take(canary)
    await driver.cycle([upsert('canary-key', { of: 'canary' })], { quarantined: [poison('canary-bad')] })
    await driver.set('"canary"', 'canary', 'canary')
    await driver.release()
    const hits = async (): Promise<string[]> => {
      const found = await Promise.all((await tables()).map(async (name) => ((await query(url, `select from tidemark.${name} t where t::text like '%canary%'`)).length > 0 ? [name] : [])))
      return found.flat()
    }
    await role.query('create view report_on_canary as select * from "canary-91".things')
    const before = await hits()
    expect(before).toEqual(expect.arrayContaining(['audit', 'log', 'quarantine', 'registry', 'rows', 'tenants']))
    await expect(canary.erase({ actor: 'ana', at: 1 })).rejects.toMatchObject({ code: 'STORE_FOREIGN', message: expect.stringContaining('"canary-91".things') })
    expect(await hits()).toEqual(before)
    await role.query('drop view report_on_canary')
    expect(await canary.erase({ actor: 'ana', at: 1 })).toMatchObject({ kind: 'erased', syncs: 1 })
    // Its name, and that it was erased.
    expect(await hits()).toEqual(['audit', 'tenants'])
    expect(await query(url, "select action, reason from tidemark.audit where tenant_id = 'canary-91'")).toMatchObject([{ action: 'erase' }])
    expect(await rows("select from pg_class where relkind = 'v' and relnamespace = '\"canary-91\"'::regnamespace")).toEqual([])
  })

  test('Z11 XF15 one pooled connection serves tenants in turn and carries nothing over', async () => {
    const narrow = await openPostgresStore({ url, poolMax: 1 })
    for (let n = 0; n < 3; n++) {
      expect(await live(narrow)).toEqual([['a', { of: 'default' }]])
      expect(await live(narrow.forTenant('acme'))).toEqual([['a', { of: 'acme' }]])
      expect(await live(narrow.forTenant('nobody'))).toEqual([])
    }
    await narrow.close()
  })

  test("XF14 a tenant's name that is SQL is a name", async () => {
    const evil = store.forTenant("x', true); drop table tidemark.log; --")
    expect(await evil.position()).toBe(0)
    await evil.signal({ worker: "'; --", sync: '"' }, { kind: 'pause', actor: '', at: 1 })
    expect(await evil.syncs()).toEqual([{ worker: "'; --", sync: '"' }])
    expect((await live(store)).length).toBe(1)
  })

  test('Z12 every view reads with the rights of whoever asks, and no function lends those of its owner', async () => {
    expect(await rows("select oid::regclass from pg_class where relkind = 'v' and relowner = current_user::regrole and not coalesce('security_invoker=true' = any(reloptions), false)")).toEqual([])
    expect(await rows("select oid::regprocedure from pg_proc where pronamespace = 'tidemark'::regnamespace and prosecdef")).toEqual([])
  })

  test('Z12 a role behind the wall that selects from a view without saying whose rows it wants is told what to set', async () => {
    await role.query('reset tidemark.tenant')
    await expect(role.query('select * from public.things')).rejects.toMatchObject({ code: '42501', hint: "Run: set tidemark.tenant = 'default'" })
    await role.query("set tidemark.tenant = 'default'")
    expect(await rows('select "of" from public.things')).toEqual([{ of: 'default' }])
    await expect(role.query('select * from acme.things')).rejects.toMatchObject({ code: '42501' })
  })

  // ── views ──────────────────────────────────────────────────────────────────────────────────────────────────────────

  async function types(view: string): Promise<Record<string, string>> {
    const found = await rows<{ name: string; type: string }>(
      `select attname as name, format_type(atttypid, atttypmod) as type from pg_attribute where attrelid = '${view}'::regclass and attnum > 0 order by attnum`,
    )
    return Object.fromEntries(found.map(({ name, type }) => [name, type]))
  }

  test("a view's columns have PostgreSQL's own types", async () => {
    const driver = await SyncDriver.take(store, { sync: 'types' })
    await driver.begin({ databases: ['typed'] })
    const [one, two] = [
      { i: 1, f: 1.5, i_f: 1, big: 2n ** 70n, i_big: 1, f_big: 1.5, t: true, s: 'x', o: { a: 1 }, l: [1], none: null, mixed: 1, huge: 1.5e300, small: 5e-324 },
      { i: -(2n ** 63n), f: 2.5, i_f: 1.5, big: 2n ** 71n, i_big: 2n ** 70n, f_big: 2n ** 70n, t: false, s: '', o: null, l: null, none: null, mixed: 'x', huge: -1.7976931348623157e308, small: 0.1 },
    ]
    await driver.complete([upsert('a', one!, { database: 'typed' }), upsert('b', two!, { database: 'typed' })])
    expect(await types('typed')).toEqual({
      _key: 'text', _sequence: 'bigint', _committed_at: 'timestamp with time zone', _record: 'jsonb',
      i: 'bigint', f: 'double precision', i_f: 'double precision', big: 'numeric', i_big: 'numeric', f_big: 'numeric', t: 'boolean', s: 'text',
      o: 'jsonb', l: 'jsonb', none: 'text', mixed: 'text', huge: 'double precision', small: 'double precision',
    })
    const [a, b] = await rows<Record<string, unknown>>('select * from typed order by _key')
    expect(a).toMatchObject({ i: '1', f: 1.5, i_f: 1, big: String(2n ** 70n), i_big: '1', t: true, s: 'x', o: { a: 1 }, l: [1], none: null, mixed: '1', huge: 1.5e300, small: 5e-324 })
    expect(b).toMatchObject({ i: String(-(2n ** 63n)), i_f: 1.5, t: false, s: '', o: null, l: null, mixed: 'x', huge: -1.7976931348623157e308 })
  })

  test('a view never fails on a landed row, even where the kinds that were told are wrong', async () => {
    const driver = await SyncDriver.take(store, { sync: 'wrong' })
    await driver.begin({ databases: ['wrong'] })
    const values = [1, 1.5, 'x', '', null, true, { a: 1 }, [1], 2n ** 200n, -(2n ** 63n), 2n ** 63n, 1.5e300, 5e-324]
    const columns = { wrong: (['integer', 'number', 'bigint', 'boolean', 'json', 'string'] as const).map((kind) => ({ name: kind, kinds: [kind] })) }
    await driver.complete(values.map((value, n) => upsert(`k${n}`, { integer: value, number: value, bigint: value, boolean: value, json: value, string: value }, { database: 'wrong' })), { columns })
    expect((await rows('select * from wrong')).length).toBe(values.length)
    const [half] = await rows<Record<string, unknown>>("select * from wrong where _key = 'k1'")
    expect(half).toMatchObject({ integer: null, number: 1.5, bigint: '1.5', boolean: null, json: 1.5, string: '1.5' })
  })

  test('a view on which others were built stays as it is, and the rows land all the same; who may read it may still', async () => {
    const driver = await SyncDriver.take(store, { sync: 'dependents' })
    const land = async (key: string, record: Parameters<typeof upsert>[1]): Promise<unknown> => {
      await driver.begin({ databases: ['base'] })
      return await driver.complete([upsert(key, record, { database: 'base' })])
    }
    await land('a', { n: 1 })
    await role.query('create view report as select n from base; grant select on base to public')
    await land('b', { n: 2, added: 'x' })
    expect(Object.keys(await types('base'))).toContain('added')
    await land('c', { n: 'text' })
    expect((await types('base'))['n']).toBe('bigint')
    expect(await rows('select n from report order by n')).toEqual([{ n: '1' }, { n: '2' }, { n: null }])
    await role.query('drop view report')
    await driver.begin({ databases: ['base'] })
    expect((await types('base'))['n']).toBe('text')
    expect(await rows("select from pg_class c, aclexplode(c.relacl) a where c.oid = 'base'::regclass and a.grantee = 0 and a.privilege_type = 'SELECT'")).toHaveLength(1)
  })

  test('a long query on a view does not hold up the landing; the view follows at the next begin', async () => {
    const driver = await SyncDriver.take(store, { sync: 'held' })
    await driver.begin({ databases: ['held'] })
    await driver.page([upsert('a', { n: 1 }, { database: 'held' })])
    await role.query("begin; set local tidemark.tenant = 'default'")
    await role.query('select * from held')
    await driver.page([upsert('b', { n: 2, added: 1 }, { database: 'held' })])
    await role.query('commit')
    expect(Object.keys(await types('held'))).not.toContain('added')
    await driver.begin({ databases: ['held'] })
    expect(Object.keys(await types('held'))).toContain('added')
  })

  test('a relation that is not ours, where a view belongs, is STORE_FOREIGN; it and everything else stay as they were', async () => {
    await role.query('create table public.theirs (n integer)')
    const driver = await SyncDriver.take(store, { sync: 'foreign' })
    const before = await snapshot(store)
    const begin = store.begin(driver.lease, { at: 1, mode: 'incremental', trigger: 'x', fresh: false, databases: ['theirs'] })
    await expect(begin).rejects.toMatchObject({ code: 'STORE_FOREIGN', message: expect.stringContaining('public.theirs') })
    expect(await snapshot(store)).toEqual(before)
    expect(await types('public.theirs')).toEqual({ n: 'integer' })
  })
})
