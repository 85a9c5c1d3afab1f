import { describe, expect, test } from 'vitest'
import type { Store } from '../../../src/contract/index.ts'
import { MIGRATIONS as POSTGRES } from '../../../src/stores/postgres/schema.ts'
import { MIGRATIONS as SQLITE } from '../../../src/stores/sqlite/schema.ts'
import { readSnapshot, SyncDriver, upsert } from '../../../src/testing/store-cases/harness.ts'
import { STORE_FIXTURES } from '../tables/store-fixture.ts'

/** The first version with a typed table per database. */
const TYPED = 17

interface Kind {
  readonly migrations: readonly string[]
  readonly setVersion: (version: number) => string
  readonly version: string
  /** User objects that only this database supports, and a query that checks them. */
  readonly own: readonly string[]
  readonly found: string
  readonly expected: Readonly<Record<string, unknown>>
}

const KINDS: Readonly<Record<string, Kind>> = {
  sqlite: {
    migrations: SQLITE,
    setVersion: (version) => `pragma user_version = ${version}`,
    version: 'select user_version as version from pragma_user_version',
    own: [
      "create trigger touch after update of name on things begin update things set mine = 'touched' where _key = new._key; end",
    ],
    found: "select count(*) as objects from sqlite_master where name in ('by_mine', 'touch', 'notes')",
    expected: { objects: 3 },
  },
  postgres: {
    migrations: POSTGRES,
    setVersion: (version) =>
      `create or replace function tidemark.schema_version() returns integer language sql immutable as 'select ${version}'`,
    version: 'select tidemark.schema_version() as version',
    own: [
      "create function touched() returns trigger language plpgsql as 'begin new.mine := ''touched''; return new; end'",
      'create trigger touch before update on things for each row execute function touched()',
      "comment on column things.name is 'as it is written'",
      "comment on table things is 'mine'",
      'grant select on things to pg_monitor',
    ],
    found: `select to_regclass('by_mine') is not null as indexed, obj_description('things'::regclass, 'pg_class') as comment, has_table_privilege('pg_monitor', 'things', 'select') as granted,
      (select col_description(attrelid, attnum) from pg_attribute where attrelid = 'things'::regclass and attname = 'name') as described`,
    expected: { indexed: true, comment: 'mine', granted: true, described: 'as it is written' },
  },
}

describe.each(Object.entries(KINDS))(
  'a %s store of an earlier version with typed tables',
  (kind, { migrations, setVersion, version, own, found, expected }) => {
    test.each(Array.from({ length: migrations.length - TYPED }, (_, n) => TYPED + n))(
      'of version %d: rows, feed and the user’s additions are kept by the upgrade',
      async (from) => {
        const place = await STORE_FIXTURES[kind]!()
        try {
          const before = await SyncDriver.acquire(place.store)
          await before.cycle([upsert('a', { name: 'x', n: 1 }), upsert('b', { name: 'y', n: 2 })])
          await before.cycle([upsert('a', { name: 'z', n: 1 })])
          await before.begin()
          await before.complete([], { endReason: 'reached_since' })
          await addWebhook(place.store)
          const shown = await readSnapshot(place.store)
          const webhooks = await readWebhooks(place.store)
          await place.reopen(async () => {
            const objects = [
              "alter table things add column mine text default 'own'",
              'create index by_mine on things (mine)',
              'create table notes (thing text references things (_key))',
              "insert into notes values ('b')",
              ...own,
            ]
            for (const statement of [
              ...objects,
              ...migrations.slice(from).toReversed().flatMap(undone),
              setVersion(from),
            ])
              await place.sql(statement)
          })
          expect(await place.sql(version)).toEqual([{ version: migrations.length }])
          expect(await readSnapshot(place.store)).toEqual(shown)
          expect((await place.store.cycles(null))[0]).toMatchObject({ endReason: 'reached_since' })
          expect(await readWebhooks(place.store)).toEqual(webhooks)
          expect(await place.store.countRequests(1, [['caller', 1]])).toEqual([4])
          const after = await SyncDriver.acquire(place.store, { evict: 'runner-1' })
          await after.cycle([upsert('a', { name: 'changed', n: 1 })])
          expect(await place.sql('select _key as key, name, mine from things order by _key')).toEqual([
            { key: 'a', name: 'changed', mine: 'touched' },
            { key: 'b', name: 'y', mine: 'own' },
          ])
          expect(await place.sql(found)).toEqual([expected])
          expect(await place.sql('select thing from notes')).toEqual([{ thing: 'b' }])
        } finally {
          await place.close()
        }
      },
    )
  },
)

/** A webhook with progress, a pending and a failed delivery, and the requests of a caller. */
async function addWebhook(store: Store): Promise<void> {
  const settings = { url: 'https://example.com/hook', databases: null, actions: null, allow: [], secrets: '[]' }
  await store.putWebhook({ id: 'w', ...settings, createdAt: 1 }, { sequence: 0, floor: 0 })
  const claim = (await store.claimWebhook('w', { holder: 'here', ttlMs: 1_000, at: 1 }))!
  const delivery = { database: 'things', key: 'a', body: '{}', attempts: 1, firstAt: 1, nextAt: 2, lastStatus: 500 }
  const last = { retryAt: 9, succeededAt: 3, failedAt: 4, lastStatus: 500, lastResponse: 'no', disabledReason: null }
  await store.recordDeliveries(claim, {
    progress: { sequence: 2, floor: 0, failureStreak: 2, ...last },
    delivered: [],
    undelivered: [
      { ...delivery, sequence: 1, messageId: 'm1', failed: true, lastResponse: 'no' },
      { ...delivery, sequence: 2, messageId: 'm2', failed: false, lastResponse: 'not yet' },
    ],
  })
  await store.countRequests(1, [['caller', 3]])
}

async function readWebhooks(store: Store): Promise<unknown[]> {
  const list = (failed: boolean): Promise<unknown[]> => store.deliveries({ webhook: 'w', failed, limit: 9 })
  return [await store.webhooks(), await list(true), await list(false)]
}

/**
 * Reverts a migration that only adds or renames columns, tables and functions of the store. Any other needs its own way
 * back here.
 */
function undone(migration: string): string[] {
  const created = new Set<string>()
  return migration
    .replaceAll(/\$\$.*?\$\$/gs, '')
    .split(';')
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
    .flatMap((statement) => {
      const [, added] = /^create table (tidemark[._]\w+) /.exec(statement) ?? []
      if (added !== undefined) {
        created.add(added)
        return [`drop table ${added}`]
      }
      const [, called] = /^create function (tidemark\.\w+)\(/.exec(statement) ?? []
      if (called !== undefined) return [`drop function ${called}`]
      const [, indexed, of] = /^create index (\w+) on (tidemark[._]\w+)\s/.exec(statement) ?? []
      if (indexed !== undefined)
        return created.has(of!) ? [] : [`drop index ${of!.includes('.') ? 'tidemark.' : ''}${indexed}`]
      // The rules of a new table go with it.
      const [, ruled] = /^(?:alter table|create policy \w+ on) (tidemark[._]\w+)\s/.exec(statement) ?? []
      if (ruled !== undefined && created.has(ruled)) return []
      const [, owner, before, after] =
        /^alter table (tidemark[._]\w+) rename column (\w+) to (\w+)$/.exec(statement) ?? []
      if (owner !== undefined) return [`alter table ${owner} rename column ${after!} to ${before!}`]
      const [, table] = /^alter table (tidemark[._]\w+) add column /.exec(statement) ?? []
      if (table === undefined || statement.includes(' drop ')) throw new Error(`No way back from: ${statement}`)
      return [...statement.matchAll(/add column (\w+)/g)].map(
        ([, column]) => `alter table ${table} drop column ${column!}`,
      )
    })
    .toReversed()
}
