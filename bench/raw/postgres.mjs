import pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { encodeCopyData } from '../../dist/stores/postgres/copy.js'

const COLUMNS = `id text collate "C" primary key, name text, email text, city text, country text,
  balance double precision, active boolean, created_at timestamptz, updated_at timestamptz, notes text`
const TYPES = [
  'text',
  'text',
  'text',
  'text',
  'text',
  'double precision',
  'boolean',
  'timestamptz',
  'timestamptz',
  'text',
]

/** Binary COPY into a keyed table, a transaction per page. A program without guarantees encodes its rows too. */
export class RawPostgres {
  static async open(url) {
    const client = new pg.Client(url)
    await client.connect()
    return new RawPostgres(client)
  }

  constructor(client) {
    this.client = client
  }

  async recreate() {
    await this.client.query(`drop table if exists raw_accounts; create table raw_accounts (${COLUMNS})`)
  }

  prepare(records) {
    return records.map((record) => Object.values(record))
  }

  write(rows) {
    const data = encodeCopyData(TYPES, rows)
    return new Promise((resolve, reject) => {
      const stream = this.client.query(copyFrom('copy raw_accounts from stdin (format binary)'))
      stream.on('error', reject)
      stream.on('finish', resolve)
      stream.end(data)
    })
  }

  async remove(keys) {
    await this.client.query('delete from raw_accounts where id = any($1)', [keys])
  }

  close() {
    return this.client.end()
  }
}
