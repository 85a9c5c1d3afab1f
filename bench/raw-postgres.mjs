// node bench/raw-postgres.mjs <url> <records>: the limit to measure against: binary COPY of the same typed columns into a keyed
// table, a transaction per page.
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { copyData } from '../dist/stores/postgres/copy.js'
import { PAGE, recordOf } from './records.mjs'

const TYPES = ['text', 'text', 'text', 'text', 'text', 'text', 'double precision', 'boolean', 'timestamptz', 'timestamptz', 'text']

const [url, count] = [process.argv[2], Number(process.argv[3])]
const client = new pg.Client(url)
await client.connect()
await client.query(`create table raw_accounts (key text collate "C" primary key, id text, name text, email text, city text, country text,
  balance double precision, active boolean, created_at timestamptz, updated_at timestamptz, notes text)`)
let ms = 0
for (let from = 0; from < count; from += PAGE) {
  const rows = Array.from({ length: PAGE }, (_, i) => recordOf(from + i)).map((record) => [record.id, ...Object.values(record)])
  const data = copyData(TYPES, rows)
  const startedAt = performance.now()
  await new Promise((resolve, reject) => {
    const stream = client.query(copyFrom('copy raw_accounts from stdin (format binary)'))
    stream.on('error', reject)
    stream.on('finish', resolve)
    stream.end(data)
  })
  ms += performance.now() - startedAt
}
await client.query('drop table raw_accounts')
await client.end()
console.log(JSON.stringify({ rate: count / (ms / 1000) }))
