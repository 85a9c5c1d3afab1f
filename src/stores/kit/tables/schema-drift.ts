import type {
  Commit,
  JsonObject,
  JsonValue,
  Landing,
  QuarantinedRecord,
  SchemaDrift,
  SchemaMode,
} from '../../../contract/index.ts'
import { describeDrift, truncateMember } from '../../../values/describe-drift.ts'
import { stringifyJson } from '../../../values/json.ts'
import type { LandingPlan } from '../plan-landing.ts'
import { typeOfValue, type TableColumn } from './column.ts'
import type { EncodedRecord } from './encode-record.ts'

/** Drift entries kept per database. A record with more new fields is usually a map. */
const DRIFT_MAX = 100

type StoredDrift = Omit<SchemaDrift, 'database'>

/** A table with its columns and the drift recorded for it. */
export interface TableWithDrift {
  readonly database: string
  readonly columns: readonly TableColumn[]
  /** Stored form: see `parseDrift`. */
  readonly drift: string
}

/**
 * The databases of a commit whose tables have no column yet. Their first records create columns, besides the declared
 * ones, even where later records may not add any.
 */
export function databasesWithoutColumns(
  { schemaModes = {} }: Commit,
  tableOf: (database: string) => Pick<TableWithDrift, 'columns'> | undefined,
): Set<string> {
  return new Set(Object.keys(schemaModes).filter((database) => !hasColumns(tableOf(database)?.columns ?? [])))
}

function hasColumns(columns: readonly TableColumn[]): boolean {
  return columns.some(({ name }) => name !== null)
}

/** Collects new differences between the records of a commit and the columns of their tables. */
export class DriftCollector {
  readonly #modes: Readonly<Record<string, SchemaMode>>
  readonly #at: number
  readonly #first: ReadonlySet<string>
  readonly #known = new Map<string, { readonly drift: StoredDrift[]; readonly ids: Set<string>; isNew: boolean }>()
  readonly #descriptions: string[] = []

  /** `first`: see `databasesWithoutColumns`. */
  constructor(modes: Readonly<Record<string, SchemaMode>> | undefined, at: number, first: ReadonlySet<string>) {
    this.#modes = modes ?? {}
    this.#at = at
    this.#first = first
  }

  /** True when records may add columns to the table; the first records always may. */
  mayAddColumns({ database, columns }: TableWithDrift): boolean {
    return (this.#modes[database] ?? 'evolve') === 'evolve' || this.#first.has(database) || !hasColumns(columns)
  }

  /** Records the drift of one written record. */
  recordDrift(
    table: TableWithDrift,
    record: JsonObject,
    { misfits, needsColumns }: EncodedRecord,
    sequence: number,
  ): void {
    if (misfits !== null) {
      for (const member of misfits)
        this.#add(table, { member, kind: 'conflict', found: memberTypeOf(record, member), sequence })
    }
    if (!needsColumns || this.mayAddColumns(table)) return
    for (const member of findNewMembers(table.columns, record))
      this.#add(table, { member, kind: 'frozen', found: memberTypeOf(record, member), sequence })
  }

  /** Records a column that got another name than its field, because a foreign column already has that name. */
  recordTakenNames(
    table: TableWithDrift,
    grown: readonly TableColumn[],
    foreign: readonly string[],
    sequence: number,
  ): void {
    const names = new Set(foreign.map((name) => name.toLowerCase()))
    const before = new Set(table.columns.flatMap(({ member, name }) => (name === null ? [] : [member])))
    for (const { member, name, type } of grown) {
      if (name === null || name === member || before.has(member) || !names.has(member.toLowerCase())) continue
      this.#add({ ...table, columns: grown }, { member, kind: 'taken', found: type, sequence })
    }
  }

  /** Lists the new stored drift of each changed database. */
  listChanged(): Array<{ database: string; drift: string }> {
    return [...this.#known]
      .filter(([, { isNew }]) => isNew)
      .map(([database, { drift }]) => ({ database, drift: JSON.stringify(drift) }))
  }

  /** Descriptions of the new drift, for the audit log. */
  get descriptions(): readonly string[] {
    return this.#descriptions
  }

  #add(
    table: TableWithDrift,
    { member, kind, found, sequence }: Pick<StoredDrift, 'member' | 'kind' | 'found' | 'sequence'>,
  ): void {
    let known = this.#known.get(table.database)
    if (known === undefined) {
      const drift = JSON.parse(table.drift) as StoredDrift[]
      this.#known.set(table.database, (known = { drift, ids: new Set(drift.map(driftIdOf)), isNew: false }))
    }
    const column = table.columns.find((other) => other.member === member && other.former !== true)
    const item: StoredDrift = {
      member,
      kind,
      column: column?.name ?? null,
      type: column?.name == null ? null : column.type,
      found,
      sequence,
      at: this.#at,
    }
    if (known.ids.has(driftIdOf(item)) || known.drift.length >= DRIFT_MAX) return
    known.ids.add(driftIdOf(item))
    known.drift.push(item)
    known.isNew = true
    this.#descriptions.push(describeDrift({ database: table.database, ...item }))
  }
}

function driftIdOf({ member, kind }: Pick<StoredDrift, 'member' | 'kind'>): string {
  return JSON.stringify([member, kind])
}

/** Parses the stored drift of a database. */
export function parseDrift(database: string, stored: string): SchemaDrift[] {
  return (JSON.parse(stored) as StoredDrift[]).map((item) => ({ database, ...item }))
}

/** Quarantines the whole record, because other columns may accept it later. */
function refuseRecord(
  landing: Extract<Landing, { type: 'upsert' }>,
  table: TableWithDrift,
  record: JsonObject,
  encoded: EncodedRecord,
  isFirst: boolean,
): QuarantinedRecord | null {
  const newMembers = encoded.needsColumns && !isFirst ? findNewMembers(table.columns, record) : []
  const reasons = [
    ...(encoded.misfits ?? []).map(
      (member) =>
        `${truncateMember(member)} is ${memberTypeOf(record, member)}, but its column is ${columnTypeOf(table, member)}`,
    ),
    ...newMembers.map((member) => `${truncateMember(member)} is new`),
  ]
  if (reasons.length === 0) return null
  const { database, key, text, cursor, upstreamAt } = landing
  const quarantinedText = `{"key":${stringifyJson(key)},"record":${text}${cursor === null ? '' : `,"cursor":${stringifyJson(cursor)}`}${upstreamAt === null ? '' : `,"upstreamUpdatedAt":"${upstreamAt}"`}}`
  return {
    database,
    key,
    code: 'SCHEMA_MISMATCH',
    message: reasons.slice(0, REASONS_MAX).join('; '),
    text: quarantinedText,
  }
}

const REASONS_MAX = 5

/** The tables and encoding that decide which records are refused. */
export interface RefusalFacts {
  /** See `databasesWithoutColumns`. */
  readonly withoutColumns: ReadonlySet<string>
  /** Includes the columns that the commit declares. */
  tableOf(database: string): TableWithDrift | undefined
  encode(landing: Extract<Landing, { type: 'upsert' }>): {
    readonly record: JsonObject
    readonly encoded: EncodedRecord
  }
}

/** A replay must not apply the column rules to a record that already follows them. */
function markWithRules(refused: QuarantinedRecord, fingerprint: string | undefined): QuarantinedRecord {
  if (fingerprint === undefined) return refused
  return { ...refused, text: `${refused.text.slice(0, -1)},"columns":${stringifyJson(fingerprint)}}` }
}

/** Lists the records that a database in `quarantine` mode refuses because they do not fit its columns. */
export function refuseRecords(
  { schemaModes, columnRules = {} }: Commit,
  { writes }: LandingPlan,
  { withoutColumns, tableOf, encode }: RefusalFacts,
): QuarantinedRecord[] {
  if (schemaModes === undefined) return []
  return writes.flatMap(({ landing }) => {
    if (landing.type === 'delete' || schemaModes[landing.database] !== 'quarantine') return []
    const table = tableOf(landing.database)
    if (table === undefined || !hasColumns(table.columns)) return []
    const { record, encoded } = encode(landing)
    const refused = refuseRecord(landing, table, record, encoded, withoutColumns.has(landing.database))
    return refused === null ? [] : markWithRules(refused, columnRules[landing.database])
  })
}

/** Moves the refused records of a commit to the quarantine. */
export function quarantineRefused(commit: Commit, refused: readonly QuarantinedRecord[]): Commit {
  const ids = new Set(refused.map(({ database, key }) => JSON.stringify([database, key])))
  return {
    ...commit,
    landings: commit.landings.filter(({ database, key }) => !ids.has(JSON.stringify([database, key]))),
    quarantined: [...commit.quarantined, ...refused],
  }
}

/** Fields with a value and without a column. */
function findNewMembers(columns: readonly TableColumn[], record: JsonObject): string[] {
  const settled = new Set(columns.flatMap(({ member, name, held }) => (name !== null || held === true ? [member] : [])))
  return Object.keys(record).filter(
    (member) => !settled.has(member) && record[member] !== null && record[member] !== undefined,
  )
}

function columnTypeOf({ columns }: TableWithDrift, member: string): string {
  return columns.find((column) => column.member === member)?.type ?? 'missing'
}

function memberTypeOf(record: JsonObject, member: string): string {
  return typeOfValue(record[member] as Exclude<JsonValue, null>)
}
