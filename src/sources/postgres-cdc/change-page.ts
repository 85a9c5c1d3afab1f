import { SyncError, type Change, type JsonObject } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import { quoteName, type PostgresSession } from '../kit/postgres/session.ts'
import { decodeRecord, type TextRow } from '../kit/postgres/decode-values.ts'
import type { ValueDecoder } from '../kit/postgres/decode-values.ts'
import { UNCHANGED_TOAST, type PgoutputMessage, type Relation, type Tuple } from './pgoutput.ts'
import { bindKey, extractKey, formatKey, toUpsert } from './read-table.ts'
import type { ReplicatedTable } from './replicated-tables.ts'

/** A table as last described by the log. */
interface RelationDecoder {
  readonly table: ReplicatedTable
  readonly names: readonly string[]
  readonly decoders: readonly ValueDecoder[]
}

type RowMessage = Extract<PgoutputMessage, { kind: 'insert' | 'update' | 'delete' }>

/**
 * The tables of one stream, as the stream describes them: before a table's first change, and after each change of its
 * columns.
 */
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

  /** Null for a published table that is not followed. */
  get(oid: number): RelationDecoder | null {
    const known = this.#known.get(oid)
    if (known === undefined)
      throw new SyncError('SOURCE_INVALID', 'PostgreSQL sent a change for a table without describing the table first.')
    return known
  }
}

interface IncompleteUpsert {
  readonly relation: RelationDecoder
  readonly key: readonly string[]
  /** Columns whose values were not sent. */
  readonly missing: readonly string[]
  readonly record: JsonObject
  /** Index in the page. */
  readonly index: number
}

/** The changes of one page, in log order. */
export class ChangePage {
  readonly #session: PostgresSession
  readonly #changes: (Change | null)[] = []
  readonly #incomplete: IncompleteUpsert[] = []
  /** The last complete record of each key on this page, which supplies unchanged values. */
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
    if (message.kind === 'delete')
      return this.#delete(table, extractKey(table, decodePartialRow(relation, message.old)))
    const { oldKey: previousKey = null, oldRow = null } = message.kind === 'update' ? message : {}
    const old = previousKey ?? oldRow
    // The full old row supplies every missing value.
    const row =
      oldRow === null
        ? message.row
        : message.row.map((value, index) =>
            value === UNCHANGED_TOAST ? required(oldRow[index], `column ${index} of the old row`) : value,
          )
    const record = decodePartialRow(relation, row)
    const key = extractKey(table, record)
    const oldKey = old === null ? key : extractKey(table, decodePartialRow(relation, old))
    const previous = this.#records.get(`${table.id} ${formatKey(oldKey)}`)
    if (formatKey(oldKey) !== formatKey(key)) this.#delete(table, oldKey)
    this.#upsert(relation, key, record, row, previous)
  }

  /** Returns the changes after fetching missing values. */
  async completeRecords(): Promise<Change[]> {
    const byTable = new Map<string, IncompleteUpsert[]>()
    for (const entry of this.#incomplete)
      byTable.set(entry.relation.table.id, [...(byTable.get(entry.relation.table.id) ?? []), entry])
    for (const entries of byTable.values()) {
      for (let start = 0; start < entries.length; start += LOOKUP_KEYS_MAX)
        await this.#fetchMissing(entries.slice(start, start + LOOKUP_KEYS_MAX))
    }
    return this.#changes.filter((change) => change !== null)
  }

  #upsert(
    relation: RelationDecoder,
    key: readonly string[],
    record: JsonObject,
    row: Tuple,
    previous: JsonObject | undefined,
  ): void {
    const { table, names } = relation
    const missing: string[] = []
    for (const [index, name] of names.entries()) {
      const value = row[index]
      if (value === undefined) continue
      this.bytes += typeof value === 'string' ? value.length : 4
      if (value !== UNCHANGED_TOAST) continue
      if (previous !== undefined && Object.hasOwn(previous, name)) record[name] = previous[name]
      else missing.push(name)
    }
    const index = this.#changes.push(toUpsert(table, key, record)) - 1
    this.#records.set(`${table.id} ${formatKey(key)}`, record)
    if (missing.length > 0) this.#incomplete.push({ relation, key, missing, record, index })
  }

  #delete(table: ReplicatedTable, key: readonly string[]): void {
    const { database } = table
    this.#changes.push({ type: 'delete', key: formatKey(key), ...(database !== undefined && { database }) })
    this.#records.delete(`${table.id} ${formatKey(key)}`)
  }

  /**
   * A large unchanged value is not in the log, but the row still has it. If the row has changed since, a later log
   * entry says so; if it was deleted, its deletion follows, and until then the committed row stays.
   */
  async #fetchMissing(entries: readonly IncompleteUpsert[]): Promise<void> {
    const [first] = entries
    if (first === undefined) return
    const { table } = first.relation
    const missing = [...new Set(entries.flatMap((entry) => entry.missing))]
    const keys = table.key.map(quoteName).join(', ')
    const values = entries.flatMap((entry) => bindKey(table, entry.key))
    const tuples = entries.map(
      (_, at) => `(${table.key.map((__, part) => `$${at * table.key.length + part + 1}`).join(', ')})`,
    )
    const { rows, columns } = await this.#session.query(
      `SELECT ${keys}, ${missing.map(quoteName).join(', ')} FROM ${table.quoted} WHERE (${keys}) IN (${tuples.join(', ')})`,
      values,
    )
    const decoders = await this.#session.loadDecoders(columns.map(({ oid }) => oid))
    const found = new Map(
      rows.map((row: TextRow) => {
        const record = decodeRecord(
          columns.map(({ name }) => name),
          decoders,
          row,
        )
        return [formatKey(extractKey(table, record)), record]
      }),
    )
    for (const entry of entries) {
      const record = found.get(formatKey(entry.key))
      if (record === undefined) this.#changes[entry.index] = null
      else for (const name of entry.missing) entry.record[name] = record[name] ?? null
    }
  }
}

/** Small enough for one statement with any number of key columns. */
const LOOKUP_KEYS_MAX = 500

/** Omits values that were not sent. */
function decodePartialRow({ names, decoders }: RelationDecoder, row: Tuple): JsonObject {
  const record: JsonObject = {}
  for (const [index, name] of names.entries()) {
    const value = row[index]
    const decode = decoders[index]
    if (value === UNCHANGED_TOAST || value === undefined || decode === undefined) continue
    Object.defineProperty(record, name, {
      value: value === null ? null : decode(value),
      writable: true,
      enumerable: true,
      configurable: true,
    })
  }
  return record
}
