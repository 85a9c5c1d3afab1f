import { SyncError, type Change, type JsonObject } from '../../contract/index.ts'
import { quoteName, type PostgresSession } from '../kit/postgres/session.ts'
import { decodeRecord, type TextRow } from '../kit/postgres/decode-values.ts'
import type { ValueDecoder } from '../kit/postgres/decode-values.ts'
import { UNCHANGED_TOAST, type PgoutputMessage, type Relation, type Tuple } from './pgoutput.ts'
import { bindKey, extractKey, formatKey, toUpsert } from './read-table.ts'
import type { ReplicatedTable } from './replicated-tables.ts'

/** A table as the log last described it. */
interface RelationDecoder {
  readonly table: ReplicatedTable
  readonly names: readonly string[]
  readonly decoders: readonly ValueDecoder[]
}

type RowMessage = Extract<PgoutputMessage, { kind: 'insert' | 'update' | 'delete' }>

/** The tables of one stream, as it describes them on its way: before its first change, and again after each change of its columns. */
export class RelationCache {
  readonly #tables: ReadonlyMap<string, ReplicatedTable>
  readonly #session: PostgresSession
  readonly #known = new Map<number, RelationDecoder | null>()

  constructor(tables: readonly ReplicatedTable[], session: PostgresSession) {
    this.#tables = new Map(tables.map((table) => [table.id, table]))
    this.#session = session
  }

  async register({ oid, schema, name, columns }: Relation): Promise<void> {
    const table = this.#tables.get(`${schema}.${name}`)
    const decoders = table === undefined ? [] : await this.#session.loadDecoders(columns.map(({ typeOid }) => typeOid))
    this.#known.set(oid, table === undefined ? null : { table, names: columns.map((column) => column.name), decoders })
  }

  /** Null for a table that is published and not followed. */
  get(oid: number): RelationDecoder | null {
    const known = this.#known.get(oid)
    if (known === undefined) throw new SyncError('SOURCE_INVALID', 'PostgreSQL sent a change of a table that it did not describe before.')
    return known
  }
}

interface IncompleteUpsert {
  readonly relation: RelationDecoder
  readonly key: readonly string[]
  /** Columns whose values were not sent. */
  readonly missing: readonly string[]
  readonly record: JsonObject
  /** Where in the page. */
  readonly index: number
}

/** The changes of one page, in the order of the log. */
export class ChangePage {
  readonly #session: PostgresSession
  readonly #changes: (Change | null)[] = []
  readonly #incomplete: IncompleteUpsert[] = []
  /** The last whole record of a key on this page: what is unchanged since is known from there. */
  readonly #records = new Map<string, JsonObject>()
  bytes = 0

  constructor(session: PostgresSession) {
    this.#session = session
  }

  get length(): number {
    return this.#changes.length
  }

  add(message: RowMessage, relation: RelationDecoder): void {
    const { table } = relation
    if (message.kind === 'delete') return this.#delete(table, extractKey(table, decodePartialRow(relation, message.old)))
    const { oldKey: keyBefore = null, oldRow = null } = message.kind === 'update' ? message : {}
    const old = keyBefore ?? oldRow
    // With the whole old row at hand nothing is missing.
    const row = oldRow === null ? message.row : message.row.map((value, index) => (value === UNCHANGED_TOAST ? oldRow[index]! : value))
    const record = decodePartialRow(relation, row)
    const key = extractKey(table, record)
    const oldKey = old === null ? key : extractKey(table, decodePartialRow(relation, old))
    const before = this.#records.get(`${table.id} ${formatKey(oldKey)}`)
    if (formatKey(oldKey) !== formatKey(key)) this.#delete(table, oldKey)
    this.#upsert(relation, key, record, row, before)
  }

  /** With every record whole. */
  async completeRecords(): Promise<Change[]> {
    const byTable = new Map<string, IncompleteUpsert[]>()
    for (const entry of this.#incomplete) byTable.set(entry.relation.table.id, [...(byTable.get(entry.relation.table.id) ?? []), entry])
    for (const entries of byTable.values()) {
      for (let start = 0; start < entries.length; start += LOOKUP_KEYS_MAX) await this.#fetchMissing(entries.slice(start, start + LOOKUP_KEYS_MAX))
    }
    return this.#changes.filter((change) => change !== null)
  }

  #upsert(relation: RelationDecoder, key: readonly string[], record: JsonObject, row: Tuple, before: JsonObject | undefined): void {
    const { table, names } = relation
    const missing: string[] = []
    for (let index = 0; index < row.length; index++) {
      const value = row[index]
      this.bytes += typeof value === 'string' ? value.length : 4
      if (value !== UNCHANGED_TOAST) continue
      const name = names[index]!
      if (before !== undefined && Object.hasOwn(before, name)) record[name] = before[name]
      else missing.push(name)
    }
    const place = this.#changes.push(toUpsert(table, key, record)) - 1
    this.#records.set(`${table.id} ${formatKey(key)}`, record)
    if (missing.length > 0) this.#incomplete.push({ relation, key, missing, record, index: place })
  }

  #delete(table: ReplicatedTable, key: readonly string[]): void {
    const { database } = table
    this.#changes.push({ type: 'delete', key: formatKey(key), ...(database !== undefined && { database }) })
    this.#records.delete(`${table.id} ${formatKey(key)}`)
  }

  /**
   * A large value that did not change is not in the log; the row still has it. If it has another by now, a change further
   * down the log says so; and if the row is gone, so does its deletion, and until then it stays as it was landed.
   */
  async #fetchMissing(entries: readonly IncompleteUpsert[]): Promise<void> {
    const { table } = entries[0]!.relation
    const missing = [...new Set(entries.flatMap((entry) => entry.missing))]
    const keys = table.key.map(quoteName).join(', ')
    const values = entries.flatMap((entry) => bindKey(table, entry.key))
    const tuples = entries.map((_, at) => `(${table.key.map((__, part) => `$${at * table.key.length + part + 1}`).join(', ')})`)
    const { rows, columns } = await this.#session.query(`SELECT ${keys}, ${missing.map(quoteName).join(', ')} FROM ${table.quoted} WHERE (${keys}) IN (${tuples.join(', ')})`, values)
    const read = await this.#session.loadDecoders(columns.map(({ oid }) => oid))
    const found = new Map(rows.map((row: TextRow) => {
      const record = decodeRecord(columns.map(({ name }) => name), read, row)
      return [formatKey(extractKey(table, record)), record]
    }))
    for (const entry of entries) {
      const record = found.get(formatKey(entry.key))
      if (record === undefined) this.#changes[entry.index] = null
      else for (const name of entry.missing) entry.record[name] = record[name] ?? null
    }
  }
}

/** Few enough for one statement, whatever the number of key columns. */
const LOOKUP_KEYS_MAX = 500

/** Without what was not sent. */
function decodePartialRow({ names, decoders }: RelationDecoder, row: Tuple): JsonObject {
  const record: JsonObject = {}
  for (let index = 0; index < names.length; index++) {
    const value = row[index]
    if (value === UNCHANGED_TOAST || value === undefined) continue
    Object.defineProperty(record, names[index]!, { value: value === null ? null : decoders[index]!(value), writable: true, enumerable: true, configurable: true })
  }
  return record
}
