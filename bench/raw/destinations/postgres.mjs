import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { postgres } from '../../../dist/destinations/postgres/destination.js'
import { encodeCopyData } from '../../../dist/stores/postgres/copy.js'

const COLUMNS = `_key text collate "C" not null, _sequence bigint not null, _committed_at timestamptz, _extra json,
  id text, name text, email text, city text, country text, balance double precision, active boolean,
  created_at timestamptz, updated_at timestamptz, notes text`
const TYPES = ['text', 'bigint', 'timestamptz', 'json', 'text', 'text', 'text', 'text', 'text']
TYPES.push('double precision', 'boolean', 'timestamptz', 'timestamptz', 'text')

/** Binary COPY into a table of the same columns, a transaction per batch, and the primary key at the end. */
export async function openDestination(url) {
  const client = new pg.Client(url)
  await client.connect()
  await client.query('create schema if not exists raw')
  const { rows } = await client.query('show data_directory')
  return {
    destination: postgres({ url, schema: 'bench' }),
    pid: Number(readFileSync(join(rows[0].data_directory, 'postmaster.pid'), 'utf8').split('\n')[0]),
    begin: () => client.query(`drop table if exists raw.accounts; create table raw.accounts (${COLUMNS})`),
    prepare: (batch) => encodeCopyData(TYPES, batch),
    write: (data) => copy(client, data),
    end: () => client.query('alter table raw.accounts add primary key (_key)'),
    count: async () => Number((await client.query('select count(*) from bench.accounts')).rows[0].count),
    close: () => client.end(),
  }
}

async function copy(client, data) {
  const { CopyQuery } = await import('../../../dist/stores/postgres/copy.js')
  await new Promise((resolve, reject) => {
    const sql = 'copy raw.accounts from stdin (format binary)'
    client.query(new CopyQuery(sql, data, (error) => (error === null ? resolve() : reject(error))))
  })
}
