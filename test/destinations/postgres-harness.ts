import pg from 'pg'
import { inject } from 'vitest'
import type { JsonObject } from '../../src/contract/index.ts'
import { postgres } from '../../src/destinations/postgres/destination.ts'
import type { TableColumn } from '../../src/stores/kit/tables/column.ts'
import { codecOf } from '../../src/stores/postgres/table.ts'
import type { DestinationHarness, StoredChild, StoredRow } from '../../src/testing/destination-cases/harness.ts'
import { parseJson } from '../../src/values/json.ts'

let schemas = 0

/** A schema of its own on the server of the tests. */
export async function openPostgresHarness(): Promise<DestinationHarness & { client: pg.Client; schema: string }> {
  const url = inject('postgresUrl')
  const schema = `dest "${process.pid}" ${schemas++}`
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query("set timezone = 'UTC'")
  const quoted = pg.escapeIdentifier(schema)
  await client.query(`drop schema if exists ${quoted} cascade`)
  return {
    client,
    schema: quoted,
    destination: postgres({ url, schema }),
    rows: (database) => readRows(client, quoted, database),
    children: (database, member) => readChildren(client, quoted, database, member),
    interrupt: interruptClients,
    backUp: () => backUp(client, quoted),
    async close() {
      await client.query(`drop schema if exists ${quoted} cascade; drop schema if exists backup cascade`)
      await client.end()
    },
  }
}

export async function readRows(
  client: pg.Client,
  schema: string,
  database: string,
  page?: { readonly after: string; readonly limit: number },
): Promise<StoredRow[]> {
  const state = await client.query<{ columns: string; mode: string }>(
    `select columns, mode from ${schema}._tidemark_destination where table_name = $1 and target = 'live'`,
    [database],
  )
  const [found] = state.rows
  if (found === undefined) return []
  const codec = codecOf(JSON.stringify(JSON.parse(found.columns) as TableColumn[]))
  const extra = { mirror: 'null', append: '_action', history: '_is_current::text' }[found.mode]!
  const { rows } = await client.query({
    text: `select _key, _sequence, _extra, ${extra}, ${codec.members.map(({ name }) => name).join(', ') || 'null'}
           from ${schema}.${pg.escapeIdentifier(database)} ${
             page === undefined
               ? 'order by _sequence'
               : `where _key > ${pg.escapeLiteral(page.after)} order by _key limit ${page.limit}`
           }`,
    rowMode: 'array',
    types: { getTypeParser: () => (text: string) => text },
  } as unknown as pg.QueryArrayConfig)
  return (rows as Array<Array<string | null>>).map(([key, sequence, extraText, mark, ...values]) => {
    const isDelete = found.mode === 'append' && mark === 'deleted'
    const record = isDelete ? null : codec.decode(Number(sequence), extraText ?? null, values)
    return {
      key: key!,
      sequence: Number(sequence),
      ...(found.mode === 'append' && { action: mark! }),
      ...(found.mode === 'history' && { isCurrent: mark === 'true' }),
      record: record === null ? null : (parseJson(record) as StoredRow['record']),
    }
  })
}

async function readChildren(
  client: pg.Client,
  schema: string,
  database: string,
  member: string,
): Promise<StoredChild[]> {
  const table = `${schema}.${pg.escapeIdentifier(`${database}__${member}`)}`
  const exists = await client.query<{ oid: string | null }>('select to_regclass($1) as oid', [table])
  if (exists.rows[0]?.oid === null) return []
  const { rows: states } = await client.query<{ children: string }>(
    `select children from ${schema}._tidemark_destination where table_name = $1 and target = 'live'`,
    [database],
  )
  const layouts = new Map(JSON.parse(states[0]?.children ?? '[]') as Array<[string, TableColumn[]]>)
  const codec = codecOf(JSON.stringify(layouts.get(member)))
  const { rows } = await client.query({
    text: `select _parent_key, _index, _sequence, _extra, ${codec.members.map(({ name }) => name).join(', ') || 'null'}
           from ${table} order by _parent_key, _index`,
    rowMode: 'array',
    types: { getTypeParser: () => (text: string) => text },
  } as unknown as pg.QueryArrayConfig)
  return (rows as Array<Array<string | null>>).map(([parentKey, index, sequence, extra, ...values]) => ({
    parentKey: parentKey!,
    index: Number(index),
    record: parseJson(codec.decode(Number(sequence), extra ?? null, values)) as JsonObject,
  }))
}

/** The store of the suite is SQLite, so every statement to a server is one of the destination. */
function interruptClients(fault: { readonly statement: number } | 'commit'): () => boolean {
  // oxlint-disable-next-line typescript/no-explicit-any -- a method of many signatures, passed through as it is
  const { query } = pg.Client.prototype as any
  let [left, happened] = [fault === 'commit' ? Infinity : fault.statement, false]
  pg.Client.prototype.query = function (
    this: pg.Client & { connection: { stream: { destroy(): void } } },
    ...parameters: unknown[]
  ) {
    if (!happened && left-- === 0) {
      happened = true
      this.connection.stream.destroy()
    }
    const result: unknown = query.apply(this, parameters)
    if (fault !== 'commit' || happened || parameters[0] !== 'commit') return result
    happened = true
    return (result as Promise<unknown>).then(() => {
      this.connection.stream.destroy()
      throw new Error('Connection terminated unexpectedly')
    })
  } as typeof query
  return () => {
    pg.Client.prototype.query = query
    return happened
  }
}

async function backUp(client: pg.Client, schema: string): Promise<() => Promise<void>> {
  const { rows } = await client.query<{ name: string }>(
    `select tablename as name from pg_tables where format('%I', schemaname) = $1`,
    [schema],
  )
  const copy = async (from: string, to: string): Promise<void> => {
    await client.query(`drop schema if exists ${to} cascade; create schema ${to}`)
    for (const { name } of rows.map((row) => ({ name: pg.escapeIdentifier(row.name) }))) {
      await client.query(`create table ${to}.${name} (like ${from}.${name} including all)`)
      await client.query(`insert into ${to}.${name} select * from ${from}.${name}`)
    }
  }
  await copy(schema, 'backup')
  return () => copy('backup', schema)
}
