// node bench/raw-sqlite.mjs <file> <records>: the limit to measure against: the same bytes, one prepared statement, a keyed
// table, the store's own settings, a transaction per page.
import { DatabaseSync } from '@photostructure/sqlite'
import { keyOf, PAGE, recordOf } from './records.mjs'

const [file, count] = [process.argv[2], Number(process.argv[3])]
const database = new DatabaseSync(file)
database.exec('pragma page_size = 8192; pragma journal_mode = wal; pragma synchronous = full; pragma cache_size = -8192; pragma wal_autocheckpoint = 2000')
database.exec('create table accounts (key text primary key, record text not null) without rowid')
const insert = database.prepare('insert into accounts (key, record) values (?, ?)')
let ms = 0
for (let from = 0; from < count; from += PAGE) {
  const keys = [], texts = []
  for (let i = from; i < from + PAGE; i++) {
    keys.push(keyOf(i))
    texts.push(JSON.stringify(recordOf(i)))
  }
  const startedAt = performance.now()
  database.exec('begin immediate')
  for (let i = 0; i < keys.length; i++) insert.run(keys[i], texts[i])
  database.exec('commit')
  ms += performance.now() - startedAt
}
database.close()
console.log(JSON.stringify({ rate: count / (ms / 1000) }))
