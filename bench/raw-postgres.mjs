// node bench/raw-postgres.mjs <url> <records>: the limit to measure against: COPY of the same bytes into a keyed table, a
// transaction per page.
import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { keyOf, PAGE, recordOf } from './records.mjs'

const [url, count] = [process.argv[2], Number(process.argv[3])]
const client = new pg.Client(url)
await client.connect()
await client.query('create table raw_accounts (key text collate "C" primary key, record jsonb not null)')
let ms = 0
for (let from = 0; from < count; from += PAGE) {
  let page = ''
  for (let i = from; i < from + PAGE; i++) page += `${keyOf(i)}\t${JSON.stringify(recordOf(i)).replaceAll('\\', '\\\\')}\n`
  const startedAt = performance.now()
  await new Promise((resolve, reject) => {
    const stream = client.query(copyFrom('copy raw_accounts (key, record) from stdin'))
    stream.on('error', reject)
    stream.on('finish', resolve)
    stream.end(page)
  })
  ms += performance.now() - startedAt
}
await client.query('drop table raw_accounts')
await client.end()
console.log(JSON.stringify({ rate: count / (ms / 1000) }))
