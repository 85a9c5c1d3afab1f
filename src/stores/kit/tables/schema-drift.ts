import type { Commit, JsonObject, JsonValue, Landing, Quarantined, SchemaDrift, SchemaMode } from '../../../contract/index.ts'
import { driftWords, shownMember } from '../../../values/drift-words.ts'
import { stringifyJson } from '../../../values/json.ts'
import type { LandingPlan } from '../plan-landing.ts'
import { typeOfValue, type TableColumn } from './column.ts'
import type { EncodedRecord } from './encode-record.ts'

/** What is kept of the drift of one database. More members than that are keys of a map. */
const DRIFT_MAX = 100

type Kept = Omit<SchemaDrift, 'database'>

export interface DriftingTable {
  readonly database: string
  readonly columns: readonly TableColumn[]
  /** As it is stored: see `readDrift`. */
  readonly drift: string
}

/**
 * The databases of a commit whose tables have no column before it. Its records make their columns, besides those that are declared, also
 * where later ones may not add any.
 */
export function databasesWithoutColumns({ schemas = {} }: Commit, tableOf: (database: string) => Pick<DriftingTable, 'columns'> | undefined): Set<string> {
  return new Set(Object.keys(schemas).filter((database) => !hasColumns(tableOf(database)?.columns ?? [])))
}

function hasColumns(columns: readonly TableColumn[]): boolean {
  return columns.some(({ name }) => name !== null)
}

/** Collects what the records of a commit have that their tables do not show, and was not noted before. */
export class DriftNotes {
  readonly #modes: Readonly<Record<string, SchemaMode>>
  readonly #at: number
  readonly #first: ReadonlySet<string>
  readonly #known = new Map<string, { readonly drift: Kept[]; readonly ids: Set<string>; isNew: boolean }>()
  readonly #words: string[] = []

  /** `first`: see `databasesWithoutColumns`. */
  constructor(modes: Readonly<Record<string, SchemaMode>> | undefined, at: number, first: ReadonlySet<string>) {
    this.#modes = modes ?? {}
    this.#at = at
    this.#first = first
  }

  /** Whether records may add columns to the table: the first records always do. */
  mayGrow({ database, columns }: DriftingTable): boolean {
    return (this.#modes[database] ?? 'evolve') === 'evolve' || this.#first.has(database) || !hasColumns(columns)
  }

  /** A record as it was written. */
  note(table: DriftingTable, record: JsonObject, { misfits, isNew }: EncodedRecord, sequence: number): void {
    if (misfits !== null) {
      for (const member of misfits) this.#add(table, { member, kind: 'conflict', found: foundIn(record, member), sequence })
    }
    if (!isNew || this.mayGrow(table)) return
    for (const member of newMembers(table.columns, record)) this.#add(table, { member, kind: 'frozen', found: foundIn(record, member), sequence })
  }

  /** A column that got another name than its member, because the table has one of that name that is not ours. */
  noteTaken(table: DriftingTable, grown: readonly TableColumn[], foreign: readonly string[], sequence: number): void {
    const names = new Set(foreign.map((name) => name.toLowerCase()))
    const before = new Set(table.columns.flatMap(({ member, name }) => (name === null ? [] : [member])))
    for (const { member, name, type } of grown) {
      if (name === null || name === member || before.has(member) || !names.has(member.toLowerCase())) continue
      this.#add({ ...table, columns: grown }, { member, kind: 'taken', found: type, sequence })
    }
  }

  /** By database, what is to be stored from now on. */
  stored(): Array<{ database: string; drift: string }> {
    return [...this.#known].filter(([, { isNew }]) => isNew).map(([database, { drift }]) => ({ database, drift: JSON.stringify(drift) }))
  }

  /** What is new, in words. */
  get words(): readonly string[] {
    return this.#words
  }

  #add(table: DriftingTable, { member, kind, found, sequence }: Pick<Kept, 'member' | 'kind' | 'found' | 'sequence'>): void {
    let known = this.#known.get(table.database)
    if (known === undefined) {
      const drift = JSON.parse(table.drift) as Kept[]
      this.#known.set(table.database, (known = { drift, ids: new Set(drift.map(idOf)), isNew: false }))
    }
    const column = table.columns.find((other) => other.member === member && other.former !== true)
    const item: Kept = { member, kind, column: column?.name ?? null, type: column?.name == null ? null : column.type, found, sequence, at: this.#at }
    if (known.ids.has(idOf(item)) || known.drift.length >= DRIFT_MAX) return
    known.ids.add(idOf(item))
    known.drift.push(item)
    known.isNew = true
    this.#words.push(driftWords({ database: table.database, ...item }))
  }
}

function idOf({ member, kind }: Pick<Kept, 'member' | 'kind'>): string {
  return JSON.stringify([member, kind])
}

export function readDrift(database: string, stored: string): SchemaDrift[] {
  return (JSON.parse(stored) as Kept[]).map((item) => ({ database, ...item }))
}

/** Kept whole, because other columns may take it. */
function refuse(
  landing: Extract<Landing, { type: 'upsert' }>, table: DriftingTable, record: JsonObject, encoded: EncodedRecord, isFirst: boolean,
): Quarantined | null {
  const fresh = encoded.isNew && !isFirst ? newMembers(table.columns, record) : []
  const reasons = [
    ...(encoded.misfits ?? []).map((member) => `${shownMember(member)} is ${foundIn(record, member)}, and its column ${table.columns.find((column) => column.member === member)!.type}`),
    ...fresh.map((member) => `${shownMember(member)} is new`),
  ]
  if (reasons.length === 0) return null
  const { database, key, text, cursor, upstreamAt } = landing
  const told = `{"key":${stringifyJson(key)},"record":${text}${cursor === null ? '' : `,"cursor":${stringifyJson(cursor)}`}${upstreamAt === null ? '' : `,"upstreamUpdatedAt":"${upstreamAt}"`}}`
  return { database, key, code: 'SCHEMA_MISMATCH', message: reasons.slice(0, REASONS_MAX).join('; '), text: told }
}

const REASONS_MAX = 5

export interface RefusalFacts {
  /** See `databasesWithoutColumns`. */
  readonly first: ReadonlySet<string>
  /** With the columns that the commit declares. */
  tableOf(database: string): DriftingTable | undefined
  encode(landing: Extract<Landing, { type: 'upsert' }>): { readonly record: JsonObject; readonly encoded: EncodedRecord }
}

/** The records that would be written to a database which refuses what its columns do not fit. */
export function refuseRecords({ schemas }: Commit, { writes }: LandingPlan, { first, tableOf, encode }: RefusalFacts): Quarantined[] {
  if (schemas === undefined) return []
  return writes.flatMap(({ landing }) => {
    if (landing.type === 'delete' || schemas[landing.database] !== 'quarantine') return []
    const table = tableOf(landing.database)
    if (table === undefined || !hasColumns(table.columns)) return []
    const { record, encoded } = encode(landing)
    return refuse(landing, table, record, encoded, first.has(landing.database)) ?? []
  })
}

/** The commit with these records in quarantine instead. */
export function withRefused(commit: Commit, refused: readonly Quarantined[]): Commit {
  const ids = new Set(refused.map(({ database, key }) => JSON.stringify([database, key])))
  return {
    ...commit, landings: commit.landings.filter(({ database, key }) => !ids.has(JSON.stringify([database, key]))), quarantined: [...commit.quarantined, ...refused],
  }
}

/** Members with a value and without a column. */
function newMembers(columns: readonly TableColumn[], record: JsonObject): string[] {
  const settled = new Set(columns.flatMap(({ member, name, held }) => (name !== null || held === true ? [member] : [])))
  return Object.keys(record).filter((member) => !settled.has(member) && record[member] !== null && record[member] !== undefined)
}

function foundIn(record: JsonObject, member: string): string {
  return typeOfValue(record[member] as Exclude<JsonValue, null>)
}
