// The feed over a log of so many entries. The log is written by SQL, as no source would have the patience to fill it.
import { DatabaseSync } from '@photostructure/sqlite'
import { openSqliteStore } from '../dist/stores/sqlite/store.js'
import { createServer } from '../dist/server/server.js'
import { newApiKey } from '../dist/server/api-key.js'
import { Lander } from './lander.mjs'

const PER_COMMIT = 100
const NOTES = 'x'.repeat(230)
const FIRST_AT = Date.UTC(2026, 0, 1)
const [file, entries] = [process.argv[2], Number(process.argv[3])]
const first = await openSqliteStore({ file })
await landFirst(first)
const { text, key } = newApiKey({ name: 'bench', scopes: ['*:read'], rateLimit: 1e12, createdAt: Date.now() })
await first.addApiKey(key)
await first.close()
fill(file, entries)
const store = await openSqliteStore({ file })
const quiet = () => {}
const ports = { clock: { now: Date.now, sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) }, random: { next: Math.random }, log: { debug: quiet, info: quiet, warn: quiet, error: quiet } }
const server = createServer({ store, ports, version: '0.0.0' })
const url = await server.listen(0)
console.log(JSON.stringify({ port: Number(new URL(url).port), key: text, firstAt: FIRST_AT, lastAt: FIRST_AT + Math.floor(entries / PER_COMMIT) }))

/** Makes the table, with a column for every member. */
async function landFirst(store) {
  const lander = await Lander.take(store, 'people')
  const text = JSON.stringify({ id: 0, name: 'Ada', email: 'ada@example.org', city: 'London', notes: NOTES })
  await lander.cycle([{ type: 'upsert', database: 'people', key: 'k000000000', text, hash: '', cursor: null, upstreamAt: null }])
  await lander.release()
}

function fill(file, count) {
  const db = new DatabaseSync(file)
  db.exec('pragma synchronous = off; pragma journal_mode = wal')
  const { tenant_id: tenant, database_id: database } = db.prepare("select tenant_id, database_id from tidemark_databases where name = 'people'").get()
  const { sync_id: sync } = db.prepare('select sync_id from tidemark_registry').get()
  db.exec(`
    begin;
    delete from people;
    delete from tidemark_commits;
    with recursive n(i) as (select 0 union all select i + 1 from n where i < ${Math.ceil(count / PER_COMMIT) - 1})
      insert into tidemark_commits (tenant_id, first_sequence, last_sequence, database_id, sync_id, cycle_id, page, committed_at)
      select ${tenant}, i * ${PER_COMMIT} + 1, min((i + 1) * ${PER_COMMIT}, ${count}), ${database}, ${sync}, 1, i, ${FIRST_AT} + 1 + i from n;
    with recursive n(i) as (select 0 union all select i + 1 from n where i < ${count - 1})
      insert into people (_key, _sequence, _created_sequence, _hash, _synced_at, _writer, _owner, id, name, email, city, notes)
      select printf('k%09d', i), i + 1, i + 1, '', '2026-01-01T00:00:00.000Z', ${sync}, 1, i, 'Ada', 'ada@example.org', 'London', '${NOTES}' from n;
    update tidemark_tenants set sequence = ${count}, committed_at = ${FIRST_AT} + ${Math.ceil(count / PER_COMMIT)} where tenant_id = ${tenant};
    commit;
    pragma wal_checkpoint(truncate)`)
  db.close()
}
