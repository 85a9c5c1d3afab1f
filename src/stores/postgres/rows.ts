import type { Commit, JsonObject, JsonValue, Landing } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import type { LandingFacts, LandingPlan, RowWrite } from '../kit/plan-landing.ts'
import { DELETED_AT, mayHaveDeletedRows } from '../kit/tables/delete-state.ts'
import type { ColumnValue, EncodedRecord } from '../kit/tables/encode-record.ts'
import type { DriftCollector } from '../kit/tables/schema-drift.ts'
import { replaceNul } from '../kit/replace-nul.ts'
import { bigintArray, textArray } from './binary-arrays.ts'
import { formatArrayText } from './array-text.ts'
import { binaryArray, itemSqlTypeOf, type BinaryWriter, type ScalarSqlType, type SqlType } from './binary-values.ts'
import type { Transaction } from './connection.ts'
import { encodeCopyData, type CopyRows } from './copy.ts'
import { STATUS_CODES } from './find-rows.ts'
import { checkDeletable } from './delete-mode.ts'
import { insertMany } from './insert-many.ts'
import { growTable, SYSTEM_COLUMNS, SYSTEM_COLUMN_TYPES, tableOf, type Table } from './table.ts'
import { required } from '../../values/required.ts'

/** Keys given as an array parameter. */
export const keysFromParameter = (parameter: number): string =>
  `(select unnest($${parameter}::text[]) collate "C" as key)`

// ── writes
// ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface WriteFacts {
  readonly driftCollector: DriftCollector
  readonly writer: number
  readonly committedAt: number
  ownerIn(database: string): number
  /** See `applyDeleteModes`. */
  readonly lockedDatabases: ReadonlySet<string>
  parse(landing: UpsertLanding): JsonObject
}

/** Rows per statement: the next batch is encoded while the server writes the previous one. */
const ROWS_PER_BATCH = 250

/** Executes the plan's writes, and updates `tables` with added columns. */
export async function writeRows(
  transaction: Transaction,
  { writes }: LandingPlan,
  tables: Map<string, Table>,
  facts: WriteFacts,
): Promise<void> {
  let hasGrown = false
  for (let from = 0; from < writes.length;) {
    const { database } = required(writes[from], 'The first write of a batch').landing
    const table = tableOf(tables, database)
    const batch = sendNewRows(transaction, table, writes, { from, hasGrown }, facts)
    await writeBatch(transaction, table, batch, facts)
    hasGrown = batch.needsColumns
    from = batch.end
    if (!batch.needsColumns) continue
    // A column counts from the first write that needs it.
    const { sequence } = required(writes[from], 'A record that needs a column')
    const records = recordsFrom(writes.slice(from), database)
    tables.set(database, await growTable(transaction, table, records, sequence, facts.driftCollector))
  }
}

export type UpsertLanding = Extract<Landing, { type: 'upsert' }>

interface UpsertWrite {
  readonly write: RowWrite
  readonly landing: UpsertLanding
  readonly encoded: EncodedRecord
}

/** Consecutive writes of one database, without the new rows, which are sent already. */
interface Batch {
  /** Upserts of keys that have a row or a tombstone. */
  readonly upserts: readonly UpsertWrite[]
  readonly deletes: readonly RowWrite[]
  /** Keys whose contests are resolved. */
  readonly contested: readonly string[]
  /** The index of the next write. */
  readonly end: number
  /** The next write needs a column, and columns may be added. */
  readonly needsColumns: boolean
}

/**
 * Collects a batch of writes in sequence order. Rows of unknown keys are sent at once, each encoded only when it is its
 * turn, so that no record outlives it.
 */
function sendNewRows(
  transaction: Transaction,
  table: Table,
  writes: readonly RowWrite[],
  { from, hasGrown }: { from: number; hasGrown: boolean },
  facts: WriteFacts,
): Batch {
  const mayAddColumns = !hasGrown && facts.driftCollector.mayAddColumns(table)
  const upserts: UpsertWrite[] = []
  const deletes: RowWrite[] = []
  const contested: string[] = []
  let rows: CopyRows | null = null
  let [end, needsColumns] = [from, false]
  try {
    for (; end < writes.length && upserts.length + deletes.length < ROWS_PER_BATCH; end++) {
      const write = required(writes[end], 'A write')
      const { landing, row } = write
      if (landing.database !== table.database) break
      if (row?.contestedBy != null) contested.push(landing.key)
      if (landing.type === 'delete') {
        deletes.push(write)
        continue
      }
      if (row === undefined) {
        rows ??= transaction.openCopy(copySql(table))
        if (transcodeRow(rows.writer, table, write, landing, facts)) continue
      }
      // A record of a new key is needed only once.
      const record = row === undefined ? (parseJson(landing.text) as JsonObject) : facts.parse(landing)
      const encoded = table.encode(record, landing.text)
      needsColumns = encoded.needsColumns && mayAddColumns
      if (needsColumns) break
      if (encoded.needsColumns || encoded.misfits !== null)
        facts.driftCollector.recordDrift(table, record, encoded, write.sequence)
      if (row !== undefined) upserts.push({ write, landing, encoded })
      else if (rows !== null) writeRow(rows.writer, table, { write, landing, encoded }, facts)
    }
  } finally {
    rows?.end()
  }
  return { upserts, deletes, contested, end, needsColumns }
}

async function writeBatch(
  transaction: Transaction,
  table: Table,
  { upserts, deletes, contested }: Batch,
  facts: WriteFacts,
): Promise<void> {
  const kept = await findSoftDeletedRows(transaction, table, upserts)
  reviveRows(transaction, table, upserts, kept, facts)
  reinsertRows(transaction, table, upserts, kept, facts)
  updateRows(transaction, table, upserts, facts)
  deleteRows(transaction, table, deletes, facts)
  deleteContests(transaction, table, contested)
}

/** Writes a row from the text of its record. Returns false, with nothing written, if the record must be parsed. */
function transcodeRow(
  writer: BinaryWriter,
  table: Table,
  write: RowWrite,
  landing: UpsertLanding,
  facts: WriteFacts,
): boolean {
  if (table.transcoder === null) return false
  const { length } = writer
  writeSystemColumns(writer, table, { write, landing, extra: null }, facts)
  if (table.transcoder.write(writer, landing.text)) return true
  writer.rewind(length)
  return false
}

function writeRow(
  writer: BinaryWriter,
  table: Table,
  { write, landing, encoded: { values, extra } }: UpsertWrite,
  facts: WriteFacts,
): void {
  writeSystemColumns(writer, table, { write, landing, extra }, facts)
  for (const member of table.members) writer.value(member.type, values[member.at] ?? null)
}

/** Values in the order of `SYSTEM_COLUMNS`; the fields follow them. The commit's owner owns the row. */
function writeSystemColumns(
  writer: BinaryWriter,
  { database, members }: Table,
  { write, landing, extra }: { write: RowWrite; landing: UpsertLanding; extra: string | null },
  facts: WriteFacts,
): void {
  const upstreamAt = upstreamAtOf(write)
  writer.int16(SYSTEM_COLUMNS.length + members.length)
  writer.text(landing.key)
  writer.int64(write.sequence)
  writer.int64(write.sequence)
  writer.text(landing.hash)
  if (upstreamAt === null) writer.int32(-1)
  else writer.timestamp(upstreamAt)
  writer.timestamp(facts.committedAt)
  writer.value('text', landing.cursor === null ? null : replaceNul(landing.cursor))
  writer.int32(4)
  writer.int32(facts.writer)
  writer.int32(4)
  writer.int32(facts.ownerIn(database))
  writer.value('json', extra)
}

/** All records of the same database from a write on: new fields of one page get their columns at once. */
function recordsFrom(writes: readonly RowWrite[], database: string): JsonObject[] {
  return writes.flatMap(({ landing }) =>
    landing.type === 'upsert' && landing.database === database ? [parseJson(landing.text) as JsonObject] : [],
  )
}

/** A change without a time keeps the row's time: older versions stay older, and a deleted version stays deleted. */
function upstreamAtOf({ landing, row }: RowWrite): string | null {
  return landing.upstreamAt ?? row?.upstreamAt ?? null
}

/** Returns the keys of returning rows that were kept when they were deleted. */
async function findSoftDeletedRows(
  transaction: Transaction,
  table: Table,
  upserts: readonly UpsertWrite[],
): Promise<ReadonlySet<string>> {
  const returned = mayHaveDeletedRows(table)
    ? upserts.filter(({ write: { row } }) => row !== undefined && row.status !== 'live')
    : []
  if (returned.length === 0) return new Set()
  const found = await transaction.textRows(
    `select r._key from ${keysFromParameter(1)} w cross join lateral (select _key from ${table.name} where _key = w.key limit 1) r`,
    textArray(returned.map(({ landing }) => landing.key)),
  )
  return new Set(found.flatMap(([key]) => key ?? []))
}

/** Updates in place, so that the user's own columns, and references to the rows, stay. */
function reviveRows(
  transaction: Transaction,
  table: Table,
  upserts: readonly UpsertWrite[],
  kept: ReadonlySet<string>,
  facts: WriteFacts,
): void {
  const revived = upserts.filter(({ landing }) => kept.has(landing.key))
  const owner = facts.ownerIn(table.database)
  const extraSets = `, _created_sequence = w.c0, _owner = ${owner}, ${DELETED_AT} = null`
  if (revived.length > 0) updateRowValues(transaction, table, { upserts: revived, archived: '', extraSets }, facts)
}

/** Inserts rows that return, and were removed when they were deleted. */
function reinsertRows(
  transaction: Transaction,
  table: Table,
  upserts: readonly UpsertWrite[],
  kept: ReadonlySet<string>,
  facts: WriteFacts,
): void {
  const returned = upserts.filter(({ write }) => write.row?.status !== 'live')
  if (returned.length === 0) return
  const removed = returned.filter(({ landing }) => !kept.has(landing.key))
  if (removed.length > 0) {
    const rows = transaction.openCopy(copySql(table))
    for (const upsert of removed) writeRow(rows.writer, table, upsert, facts)
    rows.end()
  }
  transaction.send(
    `delete from tidemark.tombstones t using ${keysFromParameter(3)} w where t.tenant_id = $1 and t.database_id = $2 and t.key = w.key`,
    transaction.tenant,
    table.id,
    textArray(returned.map(({ landing }) => landing.key)),
  )
}

function copySql({ name, members }: Table): string {
  return `copy ${name} (${[...SYSTEM_COLUMNS, ...members.map((member) => member.name)].join(', ')}) from stdin (format binary)`
}

/** Values in the order of `SYSTEM_COLUMNS`, followed by the fields. */
export function copyRows(transaction: Transaction, table: Table, rows: ReadonlyArray<readonly ColumnValue[]>): void {
  transaction.copy(
    copySql(table),
    encodeCopyData([...SYSTEM_COLUMN_TYPES, ...table.members.map(({ type }) => type)], rows),
  )
}

/** Like `copyRows`, with the end of each version first. */
export function copyHistory(
  transaction: Transaction,
  { history, members }: Table,
  rows: ReadonlyArray<readonly ColumnValue[]>,
): void {
  const columns = ['_until_sequence', '_until_at', ...SYSTEM_COLUMNS, ...members.map((member) => member.name)]
  const types: SqlType[] = ['bigint', 'timestamptz', ...SYSTEM_COLUMN_TYPES, ...members.map(({ type }) => type)]
  transaction.copy(`copy ${history} (${columns.join(', ')}) from stdin (format binary)`, encodeCopyData(types, rows))
}

/**
 * Archives the replaced version and updates the row in place instead of deleting and reinserting it, so that the user's
 * own columns, and references to the row, stay.
 */
function updateRows(transaction: Transaction, table: Table, upserts: readonly UpsertWrite[], facts: WriteFacts): void {
  const updates = upserts.filter(({ write }) => write.row?.status === 'live')
  if (updates.length === 0) return
  // Both parts of the statement see the rows as they were before it.
  const archived = `, archived as (${archiveSql(table, { from: 'w', until: 'w.c0', at: '$1' })})`
  updateRowValues(transaction, table, { upserts: updates, archived, extraSets: '' }, facts)
}

interface RowUpdate {
  readonly upserts: readonly UpsertWrite[]
  /** A further part of the WITH clause; `w` has the new values. */
  readonly archived: string
  /** Additional SET clauses; `w.c0` is the sequence. */
  readonly extraSets: string
}

function updateRowValues(
  transaction: Transaction,
  table: Table,
  { upserts, archived, extraSets }: RowUpdate,
  facts: WriteFacts,
): void {
  const writes = upserts.map(({ write }) => write)
  const landings = upserts.map(({ landing }) => landing)
  const sets: Array<{ name: string; type: ScalarSqlType; values: ColumnValue[]; cast?: string }> = [
    { name: '_sequence', type: 'bigint', values: writes.map(({ sequence }) => sequence) },
    { name: '_hash', type: 'text', values: landings.map((landing) => landing.hash) },
    { name: '_upstream_at', type: 'timestamptz', values: writes.map(upstreamAtOf) },
    { name: '_cursor', type: 'text', values: landings.map(({ cursor }) => replaceNul(cursor)) },
    { name: '_extra', type: 'json', values: upserts.map(({ encoded }) => encoded.extra) },
    ...table.members.map(({ name, type, at: column }) =>
      toColumnUpdate(
        name,
        type,
        upserts.map(({ encoded }) => encoded.values[column] ?? null),
      ),
    ),
  ]
  transaction.send(
    `with w as materialized (
       select unnest($3::text[]) collate "C" as key, ${sets.map(({ type, cast = '' }, n) => `unnest($${n + 4}::${type}[])${cast} as c${n}`).join(', ')}
     )${archived}
     update ${table.name} t set _synced_at = to_timestamp($1::bigint / 1000.0), _writer = $2, ${sets.map(({ name }, n) => `${name} = w.c${n}`).join(', ')}${extraSets}
     from w where t._key = w.key`,
    facts.committedAt,
    facts.writer,
    textArray(landings.map(({ key }) => key)),
    ...sets.map(({ type, values }) => binaryArray(type, values)),
  )
}

/** Arrays are sent as text: an array of arrays would need equal lengths. */
export function toColumnUpdate(
  name: string,
  type: SqlType,
  values: ColumnValue[],
): { name: string; type: ScalarSqlType; values: ColumnValue[]; cast?: string } {
  const item = itemSqlTypeOf(type)
  if (item === null) return { name, type: type as ScalarSqlType, values }
  return {
    name,
    type: 'text',
    cast: `::${type}`,
    values: values.map((value) => (value === null ? null : formatArrayText(item, value as readonly JsonValue[]))),
  }
}

/** Copies the current versions of the rows whose keys `from` has to the history. */
function archiveSql(
  { name, history, members }: Table,
  { from, until, at }: { readonly from: string; readonly until: string; readonly at: string },
): string {
  const columns = [...SYSTEM_COLUMNS, ...members.map((member) => member.name)]
  return `insert into ${history} (_until_sequence, _until_at, ${columns.join(', ')})
     select ${until}, to_timestamp(${at}::bigint / 1000.0), ${columns.map((column) => `t.${column}`).join(', ')}
     from ${from} join ${name} t on t._key = w.key`
}

/** Archives live rows, and writes a tombstone for every deleted key, including unknown ones. */
function deleteRows(transaction: Transaction, table: Table, writes: readonly RowWrite[], facts: WriteFacts): void {
  if (writes.length === 0) return
  const live = writes.filter(({ row }) => row?.status === 'live')
  if (live.length > 0) {
    transaction.send(
      archiveSql(table, {
        from: '(select unnest($2::text[]) collate "C" as key, unnest($3::bigint[]) as until) w',
        until: 'w.until',
        at: '$1',
      }),
      facts.committedAt,
      textArray(live.map(({ landing }) => landing.key)),
      bigintArray(live.map(({ sequence }) => sequence)),
    )
    removeRows(transaction, table, live, facts)
  }
  const entries = writes.filter(({ action }) => action !== null)
  insertMany(transaction, 'tidemark.deletions', [
    { name: 'sequence', type: 'bigint', values: entries.map(({ sequence }) => sequence) },
    { name: 'database_id', type: 'integer', values: entries.map(() => table.id) },
    { name: 'key', type: 'text', values: entries.map(({ landing }) => landing.key) },
    { name: 'upstream_at', type: 'timestamptz', values: entries.map(({ landing }) => landing.upstreamAt) },
  ])
  insertMany(
    transaction,
    'tidemark.tombstones',
    [
      { name: 'key', type: 'text', values: writes.map(({ landing }) => landing.key) },
      { name: 'database_id', type: 'integer', values: writes.map(() => table.id) },
      { name: 'sequence', type: 'bigint', values: writes.map(({ sequence }) => sequence) },
      { name: 'status', type: 'integer', values: writes.map(() => STATUS_CODES.deleted) },
      { name: 'upstream_at', type: 'timestamptz', values: writes.map(upstreamAtOf) },
      { name: 'writer_id', type: 'integer', values: writes.map(() => facts.writer) },
      {
        name: 'owner_id',
        type: 'integer',
        values: writes.map(({ row }) => (row?.status === 'live' ? row.owner : facts.ownerIn(table.database))),
      },
    ],
    `on conflict (tenant_id, database_id, key) do update set sequence = excluded.sequence, status = excluded.status, upstream_at = excluded.upstream_at,
    writer_id = excluded.writer_id, owner_id = excluded.owner_id`,
  )
}

/** A kept row takes the sequence and the time of its deletion, so that readers that follow either one see it. */
function removeRows(
  transaction: Transaction,
  table: Table,
  writes: readonly RowWrite[],
  { lockedDatabases, committedAt, writer }: WriteFacts,
): void {
  checkDeletable(table, lockedDatabases)
  const keys = textArray(writes.map(({ landing }) => landing.key))
  if (table.deletes !== 'soft')
    transaction.send(`delete from ${table.name} t using ${keysFromParameter(1)} w where t._key = w.key`, keys)
  else {
    transaction.send(
      `update ${table.name} t set ${DELETED_AT} = w.at, _synced_at = w.at, _sequence = w.sequence, _writer = $4
       from (select unnest($1::text[]) collate "C" as key, unnest($2::bigint[]) as sequence, to_timestamp($3::bigint / 1000.0) as at) w where t._key = w.key`,
      keys,
      bigintArray(writes.map(({ sequence }) => sequence)),
      committedAt,
      writer,
    )
  }
}

export function touchRows(
  transaction: Transaction,
  { touches }: LandingPlan,
  tables: ReadonlyMap<string, Table>,
  find: LandingFacts['find'],
): void {
  for (const [table, own] of groupByTable(touches, tables)) {
    const live = own.filter(({ landing }) => landing.type === 'upsert')
    const gone = own.filter(({ landing }) => landing.type === 'delete')
    if (live.length > 0) {
      transaction.send(
        `update ${table.name} t set _hash = w.hash, _upstream_at = w.at
         from (select unnest($1::text[]) collate "C" as key, unnest($2::text[]) as hash, unnest($3::timestamptz[]) as at) w where t._key = w.key`,
        textArray(live.map(({ landing }) => landing.key)),
        textArray(live.map(({ landing }) => (landing.type === 'upsert' ? landing.hash : null))),
        binaryArray(
          'timestamptz',
          live.map(({ upstreamAt }) => upstreamAt),
        ),
      )
    }
    if (gone.length > 0) {
      transaction.send(
        `update tidemark.tombstones t set status = ${STATUS_CODES.deleted}, upstream_at = w.at
         from (select unnest($3::text[]) collate "C" as key, unnest($4::timestamptz[]) as at) w where t.tenant_id = $1 and t.database_id = $2 and t.key = w.key`,
        transaction.tenant,
        table.id,
        textArray(gone.map(({ landing }) => landing.key)),
        binaryArray(
          'timestamptz',
          gone.map(({ upstreamAt }) => upstreamAt),
        ),
      )
    }
    deleteContests(
      transaction,
      table,
      own.filter(({ landing }) => (find(landing)?.contestedBy ?? null) !== null).map(({ landing }) => landing.key),
    )
  }
}

/** Records for each contested row the last cycle that contradicted it, or clears it. */
export function writeContests(
  transaction: Transaction,
  { contests }: LandingPlan,
  tables: ReadonlyMap<string, Table>,
): void {
  for (const [table, own] of groupByTable(contests, tables)) {
    const open = own.filter(({ contestedBy }) => contestedBy !== null)
    insertMany(
      transaction,
      'tidemark.contests',
      [
        { name: 'key', type: 'text', values: open.map(({ landing }) => landing.key) },
        { name: 'database_id', type: 'integer', values: open.map(() => table.id) },
        { name: 'cycle_id', type: 'bigint', values: open.map(({ contestedBy }) => contestedBy) },
      ],
      'on conflict (tenant_id, database_id, key) do update set cycle_id = excluded.cycle_id',
    )
    deleteContests(
      transaction,
      table,
      own.filter(({ contestedBy }) => contestedBy === null).map(({ landing }) => landing.key),
    )
  }
}

function deleteContests(transaction: Transaction, { id }: Table, keys: readonly string[]): void {
  if (keys.length === 0) return
  transaction.send(
    `delete from tidemark.contests c using ${keysFromParameter(3)} w where c.tenant_id = $1 and c.database_id = $2 and c.key = w.key`,
    transaction.tenant,
    id,
    textArray(keys),
  )
}

export function groupByTable<Item extends { landing: Landing }>(
  items: readonly Item[],
  tables: ReadonlyMap<string, Table>,
): Map<Table, Item[]> {
  const grouped = new Map<Table, Item[]>()
  for (const item of items) {
    const table = tableOf(tables, item.landing.database)
    const own = grouped.get(table)
    if (own === undefined) grouped.set(table, [item])
    else own.push(item)
  }
  return grouped
}

// ── contests ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** For the rows of a page: which ones other owners list, and which of the cycles that contested them are complete. */
export interface ContestFacts extends Pick<LandingFacts, 'isShared' | 'isComplete'> {}

/** Read before the first row is resolved, and only where the page may contest a row. */
export async function readContestFacts(
  transaction: Transaction,
  commit: Commit,
  find: LandingFacts['find'],
  owner: number,
  sweeping: ReadonlySet<number>,
): Promise<ContestFacts> {
  const older =
    commit.listing === undefined
      ? []
      : commit.landings.flatMap((landing) => {
          const row = find(landing)
          const isOlder =
            row !== undefined &&
            landing.upstreamAt !== null &&
            row.upstreamAt !== null &&
            landing.upstreamAt <= row.upstreamAt
          return isOlder && (landing.type === 'delete' || landing.hash !== row.hash) ? [{ landing, row }] : []
        })
  const cycles = older.flatMap(({ row }) => (row.contestedBy === null ? [] : [row.contestedBy]))
  const [claims, complete] =
    older.length === 0
      ? [[], []]
      : await Promise.all([
          transaction.all<{ database: string; key: string }>(
            `select d.name as database, c.key from unnest($3::text[], $4::text[]) as wanted (database, key)
       join tidemark.databases d on d.tenant_id = $1 and d.name = wanted.database
       cross join lateral (
         select key from tidemark.claims where tenant_id = $1 and database_id = d.database_id and key = wanted.key and owner_id <> $2::int limit 1
       ) c`,
            transaction.tenant,
            owner,
            textArray(older.map(({ landing }) => landing.database)),
            textArray(older.map(({ landing }) => landing.key)),
          ),
          transaction.all<{ id: number }>(
            "select cycle_id as id from tidemark.cycles where tenant_id = $1 and cycle_id = any($2::bigint[]) and stop_reason = 'complete'",
            transaction.tenant,
            bigintArray([...new Set(cycles)]),
          ),
        ])
  const claimed = new Set(claims.map(({ database, key }) => JSON.stringify([database, key])))
  const ended = new Set(complete.map(({ id }) => id))
  return {
    isShared: ({ database, key }, row) =>
      (row.owner !== owner && sweeping.has(row.owner)) || claimed.has(JSON.stringify([database, key])),
    isComplete: (cycle) => ended.has(cycle),
  }
}
