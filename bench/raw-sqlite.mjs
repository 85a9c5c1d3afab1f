// node bench/raw-sqlite.mjs <file> <records>: the limit to measure against: the same typed columns, one prepared statement,
// a keyed table, the store's own settings, a transaction per page.
import { DatabaseSync } from '@photostructure/sqlite'
import { PAGE, recordOf } from './records.mjs'

const [file, count] = [process.argv[2], Number(process.argv[3])]
const database = new DatabaseSync(file)
database.exec('pragma page_size = 8192; pragma journal_mode = wal; pragma synchronous = full; pragma cache_size = -8192; pragma wal_autocheckpoint = 2000')
database.exec(`create table accounts (key text not null primary key, id text, name text, email text, city text, country text, balance real,
  active boolean, created_at datetime, updated_at datetime, notes text) without rowid`)
const insert = database.prepare('insert into accounts values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
let ms = 0
for (let from = 0; from < count; from += PAGE) {
  const records = Array.from({ length: PAGE }, (_, i) => recordOf(from + i))
  const startedAt = performance.now()
  database.exec('begin immediate')
  for (const { id, name, email, city, country, balance, active, created_at, updated_at, notes } of records) {
    insert.run(id, id, name, email, city, country, balance, active ? 1 : 0, created_at, updated_at, notes)
  }
  database.exec('commit')
  ms += performance.now() - startedAt
}
database.close()
console.log(JSON.stringify({ rate: count / (ms / 1000) }))
