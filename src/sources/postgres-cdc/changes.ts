import { SyncError, type Change, type JsonObject } from '../../contract/index.ts'
import { quoteName, type PostgresSession } from '../kit/postgres/session.ts'
import { recordOf, type TextRow } from '../kit/postgres/values.ts'
import type { Decode } from '../kit/postgres/values.ts'
import { UNCHANGED, type Message, type Relation, type Tuple } from './pgoutput.ts'
import { boundKey, keyParts, keyText, upsertOf } from './read-table.ts'
import type { FollowedTable } from './tables.ts'

/** A table as the log last described it. */
interface KnownRelation {
  readonly table: FollowedTable
  readonly names: readonly string[]
  readonly decoders: readonly Decode[]
}

type RowMessage = Extract<Message, { kind: 'insert' | 'update' | 'delete' }>

/** The tables of one stream, as it describes them on its way: before its first change, and again after each change of its columns. */
export class Relations {
  readonly #tables: ReadonlyMap<string, FollowedTable>
  readonly #session: PostgresSession
  readonly #known = new Map<number, KnownRelation | null>()

  constructor(tables: readonly FollowedTable[], session: PostgresSession) {
    this.#tables = new Map(tables.map((table) => [table.id, table]))
    this.#session = session
  }

  async describe({ oid, schema, name, columns }: Relation): Promise<void> {
    const table = this.#tables.get(`${schema}.${name}`)
    const decoders = table === undefined ? [] : await this.#session.decodersOf(columns.map(({ typeOid }) => typeOid))
    this.#known.set(oid, table === undefined ? null : { table, names: columns.map((column) => column.name), decoders })
  }

  /** Null for a table that is published and not followed. */
  get(oid: number): KnownRelation | null {
    const known = this.#known.get(oid)
    if (known === undefined) throw new SyncError('SOURCE_INVALID', 'PostgreSQL sent a change of a table that it did not describe before.')
    return known
  }
}

interface Incomplete {
  readonly relation: KnownRelation
  readonly key: readonly string[]
  /** Columns whose values were not sent. */
  readonly missing: readonly string[]
  readonly record: JsonObject
  /** Where in the page. */
  readonly at: number
}

/** The changes of one page, in the order of the log. */
export class ChangePage {
  readonly #session: PostgresSession
  readonly #changes: (Change | null)[] = []
  readonly #incomplete: Incomplete[] = []
  /** The last whole record of a key on this page: what is unchanged since is known from there. */
  readonly #records = new Map<string, JsonObject>()
  bytes = 0

  constructor(session: PostgresSession) {
    this.#session = session
  }

  get length(): number {
    return this.#changes.length
  }

  add(message: RowMessage, relation: KnownRelation): void {
    const { table } = relation
    if (message.kind === 'delete') return this.#delete(table, keyParts(table, partial(relation, message.old)))
    const { oldKey: keyBefore = null, oldRow = null } = message.kind === 'update' ? message : {}
    const old = keyBefore ?? oldRow
    // With the whole old row at hand nothing is missing.
    const row = oldRow === null ? message.row : message.row.map((value, index) => (value === UNCHANGED ? oldRow[index]! : value))
    const record = partial(relation, row)
    const key = keyParts(table, record)
    const oldKey = old === null ? key : keyParts(table, partial(relation, old))
    const before = this.#records.get(`${table.id} ${keyText(oldKey)}`)
    if (keyText(oldKey) !== keyText(key)) this.#delete(table, oldKey)
    this.#upsert(relation, key, record, row, before)
  }

  /** With every record whole. */
  async complete(): Promise<Change[]> {
    const byTable = new Map<string, Incomplete[]>()
    for (const entry of this.#incomplete) byTable.set(entry.relation.table.id, [...(byTable.get(entry.relation.table.id) ?? []), entry])
    for (const entries of byTable.values()) {
      for (let start = 0; start < entries.length; start += LOOKUP_MAX) await this.#lookUp(entries.slice(start, start + LOOKUP_MAX))
    }
    return this.#changes.filter((change) => change !== null)
  }

  #upsert(relation: KnownRelation, key: readonly string[], record: JsonObject, row: Tuple, before: JsonObject | undefined): void {
    const { table, names } = relation
    const missing: string[] = []
    for (let index = 0; index < row.length; index++) {
      const value = row[index]
      this.bytes += typeof value === 'string' ? value.length : 4
      if (value !== UNCHANGED) continue
      const name = names[index]!
      if (before !== undefined && Object.hasOwn(before, name)) record[name] = before[name]
      else missing.push(name)
    }
    const place = this.#changes.push(upsertOf(table, key, record)) - 1
    this.#records.set(`${table.id} ${keyText(key)}`, record)
    if (missing.length > 0) this.#incomplete.push({ relation, key, missing, record, at: place })
  }

  #delete(table: FollowedTable, key: readonly string[]): void {
    const { database } = table
    this.#changes.push({ type: 'delete', key: keyText(key), ...(database !== undefined && { database }) })
    this.#records.delete(`${table.id} ${keyText(key)}`)
  }

  /**
   * A large value that did not change is not in the log; the row still has it. If it has another by now, a change further
   * down the log says so; and if the row is gone, so does its deletion, and until then it stays as it was landed.
   */
  async #lookUp(entries: readonly Incomplete[]): Promise<void> {
    const { table } = entries[0]!.relation
    const missing = [...new Set(entries.flatMap((entry) => entry.missing))]
    const keys = table.key.map(quoteName).join(', ')
    const values = entries.flatMap((entry) => boundKey(table, entry.key))
    const tuples = entries.map((_, at) => `(${table.key.map((__, part) => `$${at * table.key.length + part + 1}`).join(', ')})`)
    const { rows, columns } = await this.#session.query(`SELECT ${keys}, ${missing.map(quoteName).join(', ')} FROM ${table.quoted} WHERE (${keys}) IN (${tuples.join(', ')})`, values)
    const read = await this.#session.decodersOf(columns.map(({ oid }) => oid))
    const found = new Map(rows.map((row: TextRow) => {
      const record = recordOf(columns.map(({ name }) => name), read, row)
      return [keyText(keyParts(table, record)), record]
    }))
    for (const entry of entries) {
      const record = found.get(keyText(entry.key))
      if (record === undefined) this.#changes[entry.at] = null
      else for (const name of entry.missing) entry.record[name] = record[name] ?? null
    }
  }
}

/** Few enough for one statement, whatever the number of key columns. */
const LOOKUP_MAX = 500

/** Without what was not sent. */
function partial({ names, decoders }: KnownRelation, row: Tuple): JsonObject {
  const record: JsonObject = {}
  for (let index = 0; index < names.length; index++) {
    const value = row[index]
    if (value === UNCHANGED || value === undefined) continue
    Object.defineProperty(record, names[index]!, { value: value === null ? null : decoders[index]!(value), writable: true, enumerable: true, configurable: true })
  }
  return record
}
