// The feed over a log of so many entries. The log is written by SQL, as no source would have the patience to fill it.
import { DatabaseSync } from '@photostructure/sqlite'
import { openSqliteStore } from '../dist/stores/sqlite/store.js'
import { createServer } from '../dist/server/server.js'
import { newApiKey } from '../dist/server/api-key.js'

const PER_COMMIT = 100
const FIRST_AT = Date.UTC(2026, 0, 1)
const [file, entries] = [process.argv[2], Number(process.argv[3])]
const first = await openSqliteStore({ file })
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

function fill(file, count) {
  const db = new DatabaseSync(file)
  db.exec('pragma synchronous = off; pragma journal_mode = wal')
  const tenant = db.prepare("select tenant_id as id from tidemark_tenants where name = 'default'").get().id
  const base = tenant * 2 ** 40
  const record = JSON.stringify({ id: 0, name: 'Somebody', email: 'somebody@example.org', city: 'Somewhere', notes: 'x'.repeat(230) }).slice(7)
  db.exec(`
    begin;
    insert into tidemark_databases (tenant_id, name, view_name) values (${tenant}, 'people', 'people');
    insert into tidemark_registry (tenant_id, connector_id, stream_id) values (${tenant}, 'bench', 'people');
    with recursive n(i) as (select 1 union all select i + 1 from n where i < ${Math.ceil(count / PER_COMMIT)})
      insert into tidemark_commits (commit_id, tenant_id, sync_id, cycle_id, page, committed_at) select i, ${tenant}, 1, 1, i, ${FIRST_AT} + i from n;
    with recursive n(i) as (select 0 union all select i + 1 from n where i < ${count - 1})
      insert into tidemark_log (position, commit_id, database_id, key, action, record)
      select ${base} + 1 + i, 1 + i / ${PER_COMMIT}, 1, printf('k%09d', i), 1, '{"id":' || i || '${record.replaceAll("'", "''")}' from n;
    update tidemark_tenants set sequence = ${count}, committed_at = ${FIRST_AT} + ${Math.ceil(count / PER_COMMIT)} where tenant_id = ${tenant};
    commit;
    pragma wal_checkpoint(truncate)`)
  db.close()
}
