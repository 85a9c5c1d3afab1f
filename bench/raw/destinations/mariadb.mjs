import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import { createConnection } from 'mysql2/promise'
import { mariadb } from '../../../dist/destinations/mariadb/destination.js'
import { RowWriter } from '../../../dist/destinations/mariadb/row-writer.js'

const COLUMNS = `_key varchar(766) collate utf8mb4_nopad_bin primary key, _sequence bigint not null, _committed_at datetime(6),
  _extra longtext, id longtext, name longtext, email longtext, city longtext, country longtext, balance double,
  active boolean, created_at datetime(6), updated_at datetime(6), notes longtext`

/** LOAD DATA LOCAL INFILE into a table of the same columns, a transaction per batch. */
export async function openDestination(url) {
  const client = await createConnection({ uri: url.replace(/^mariadb:/, 'mysql:') })
  await client.query("set sql_mode = 'STRICT_ALL_TABLES'")
  const [[{ pidFile }]] = await client.query('select @@pid_file as pidFile')
  return {
    destination: mariadb({ url, database: 'bench' }),
    pid: Number(readFileSync(pidFile, 'utf8')),
    async begin() {
      await client.query('drop table if exists raw_accounts')
      await client.query(`create table raw_accounts (${COLUMNS}) character set utf8mb4 collate utf8mb4_nopad_bin`)
    },
    prepare(batch) {
      const writer = new RowWriter()
      for (const row of batch) {
        const last = row.length - 1
        for (let at = 0; at <= last; at++) writer.field(textOf(row[at]), at === last)
      }
      return writer.toChunks(1 << 20)
    },
    write: (chunks) =>
      client.query({
        sql: "load data local infile 'raw' into table raw_accounts character set utf8mb4",
        infileStreamFactory: () => Readable.from(chunks),
      }),
    async end() {},
    count: async () => (await client.query('select count(*) as n from bench.accounts'))[0][0].n,
    close: () => client.end(),
  }
}

function textOf(value) {
  if (value === null) return null
  if (typeof value === 'boolean') return value ? '1' : '0'
  return typeof value === 'string' && value.endsWith('Z') ? value.slice(0, -1) : String(value)
}
