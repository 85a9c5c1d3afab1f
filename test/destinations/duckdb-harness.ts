import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { duckdb } from '../../src/destinations/duckdb/destination.ts'
import { decodeRecord } from './duckdb-decoder.ts'
import type { TableColumn } from '../../src/stores/kit/tables/column.ts'
import type { DestinationHarness, StoredChild, StoredRow } from '../../src/testing/destination-cases/harness.ts'

const SCHEMA = 'dest "x"'

/** In memory where possible: every run opens the file, writes it to the disk and closes it. */
export function makeFolder(): string {
  return mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'tidemark-duckdb-'))
}

/** A file of its own. */
export async function openDuckdbHarness(): Promise<DestinationHarness & { file: string; folder: string }> {
  const folder = makeFolder()
  const file = join(folder, 'copy.duckdb')
  return {
    folder,
    file,
    destination: duckdb({ file, schema: SCHEMA }),
    rows: (database) => readRows(file, database, SCHEMA),
    children: (database, member) => readChildren(file, database, member),
    interrupt: interruptConnections,
    async backUp() {
      copyFileSync(file, `${file}.backup`)
      return async () => copyFileSync(`${file}.backup`, file)
    },
    close: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** Runs a query in a connection of its own, as a user would. */
export async function queryFile(file: string, sql: string): Promise<Array<Record<string, unknown>>> {
  const instance = await DuckDBInstance.fromCache(file)
  const connection = await instance.connect()
  try {
    return (await connection.runAndReadAll(sql)).getRowObjectsJson()
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/** All rows in order of sequence, or a page of them in order of key. */
export async function readRows(
  file: string,
  database: string,
  schema: string,
  page?: { readonly after: string; readonly limit: number },
): Promise<StoredRow[]> {
  const quoted = `"${schema.replaceAll('"', '""')}"`
  const [state] = (await queryFile(
    file,
    `select columns, mode from ${quoted}._tidemark_destination where table_name = '${database}' and target = 'live'`,
  )) as Array<{ columns: string; mode: 'mirror' | 'append' | 'history' }>
  if (state === undefined) return []
  const columns = JSON.parse(state.columns) as TableColumn[]
  const rows = await queryFile(
    file,
    `select *, _sequence::varchar as _sequence_text from ${quoted}."${database}" ${
      page === undefined
        ? 'order by _sequence'
        : `where _key > '${page.after.replaceAll("'", "''")}' order by _key limit ${page.limit}`
    }`,
  )
  return rows.map((row) => {
    const sequence = Number(row['_sequence_text'])
    const isDelete = state.mode === 'append' && row['_action'] === 'deleted'
    return {
      key: row['_key'] as string,
      sequence,
      ...(state.mode === 'append' && { action: row['_action'] as string }),
      ...(state.mode === 'history' && { isCurrent: row['_is_current'] as boolean }),
      record: isDelete ? null : decodeRecord(columns, sequence, row),
    }
  })
}

async function readChildren(file: string, database: string, member: string): Promise<StoredChild[]> {
  const schema = `"${SCHEMA.replaceAll('"', '""')}"`
  const table = `${database}__${member}`
  if ((await queryFile(file, `from duckdb_tables() where table_name = '${table}'`)).length === 0) return []
  const [state] = await queryFile(
    file,
    `select children from ${schema}._tidemark_destination where table_name = '${database}' and target = 'live'`,
  )
  const columns = new Map(JSON.parse(state?.['children'] as string) as Array<[string, TableColumn[]]>).get(member) ?? []
  const rows = await queryFile(file, `from ${schema}."${table}" order by _parent_key, _index`)
  return rows.map((row) => ({
    parentKey: row['_parent_key'] as string,
    index: Number(row['_index']),
    record: decodeRecord(columns, Number(row['_sequence']), row),
  }))
}

/** The store of the suite is SQLite, so every statement of DuckDB is one of the destination. */
function interruptConnections(fault: { readonly statement: number } | 'commit'): () => boolean {
  const { run, createAppender } = DuckDBConnection.prototype
  const broken = new WeakSet<DuckDBConnection>()
  let [left, happened] = [fault === 'commit' ? Infinity : fault.statement, false]
  const fail = (): never => {
    throw new Error('Connection Error: the test ended the connection')
  }
  /** A process that crashes sends nothing more, not even a rollback. */
  const count = (connection: DuckDBConnection): void => {
    if (!happened && left-- === 0) {
      happened = true
      broken.add(connection)
    }
    if (broken.has(connection)) fail()
  }
  DuckDBConnection.prototype.run = async function (...parameters) {
    count(this)
    const result = await run.apply(this, parameters)
    if (fault === 'commit' && !happened && parameters[0] === 'commit') {
      happened = true
      fail()
    }
    return result
  }
  DuckDBConnection.prototype.createAppender = async function (...parameters) {
    count(this)
    return createAppender.apply(this, parameters)
  }
  return () => {
    Object.assign(DuckDBConnection.prototype, { run, createAppender })
    return happened
  }
}
