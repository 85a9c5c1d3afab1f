import { rmSync } from 'node:fs'
import { DuckDBInstance, timestampTZValue } from '@duckdb/node-api'
import { duckdb } from '../../../dist/destinations/duckdb/destination.js'

/** The Appender as its documentation uses it: one call per value, one transaction per batch, closed at the end. */
export async function openDestination(file) {
  const raw = `${file}.raw`
  let [instance, connection] = [null, null]
  const micros = (text) => timestampTZValue(BigInt(Date.parse(text)) * 1_000n)
  return {
    destination: duckdb({ file }),
    pid: null,
    async begin() {
      for (const name of [raw, `${raw}.wal`]) rmSync(name, { force: true })
      instance = await DuckDBInstance.create(raw)
      connection = await instance.connect()
      await connection.run("set memory_limit = '1GB'")
      await connection.run(`create table accounts (_key varchar not null, _sequence bigint not null, _committed_at timestamptz,
        _extra json, id varchar, name varchar, email varchar, city varchar, country varchar, balance double, active boolean,
        created_at timestamptz, updated_at timestamptz, notes varchar)`)
    },
    prepare: (rows) => rows,
    async write(rows) {
      await connection.run('begin')
      const appender = await connection.createAppender('accounts')
      for (const [
        key,
        sequence,
        at,
        ,
        id,
        name,
        email,
        city,
        country,
        balance,
        active,
        created,
        updated,
        notes,
      ] of rows) {
        appender.appendVarchar(key)
        appender.appendBigInt(BigInt(sequence))
        appender.appendTimestampTZ(micros(at))
        appender.appendNull()
        for (const text of [id, name, email, city, country]) appender.appendVarchar(text)
        appender.appendDouble(balance)
        appender.appendBoolean(active)
        appender.appendTimestampTZ(micros(created))
        appender.appendTimestampTZ(micros(updated))
        appender.appendVarchar(notes)
        appender.endRow()
      }
      appender.closeSync()
      await connection.run('commit')
    },
    async end() {
      connection.closeSync()
      instance.closeSync()
    },
    async count() {
      const opened = await DuckDBInstance.fromCache(file)
      const reader = await opened.connect()
      const rows = (await reader.runAndReadAll('select count(*) from accounts')).getRows()
      reader.closeSync()
      opened.closeSync()
      return Number(rows[0][0])
    },
    close: async () => {},
  }
}
