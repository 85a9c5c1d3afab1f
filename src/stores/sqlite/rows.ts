import { type LandingPlan, type RowContest, type RowTouch, type RowWrite } from '../kit/plan-landing.ts'
import { mayHaveDeletedRows } from '../kit/tables/delete-state.ts'
import { growColumns } from '../kit/tables/grow-columns.ts'
import type { DriftCollector } from '../kit/tables/schema-drift.ts'
import { collectBatch, recordsFrom, upstreamAtOf, type UpsertWrite, type WriteBatch } from '../kit/write-batch.ts'
import type { Parameter, TenantSession } from './connection.ts'
import type { RecordEncodingCache } from './record-encoding-cache.ts'
import { STATUS_CODES } from './stored-codes.ts'
import {
  alterTable,
  bindValues,
  foreignColumns,
  COLUMN_LIMITS,
  SYSTEM_COLUMNS,
  RESERVED_NAMES,
  tableOf,
  type Table,
} from './table.ts'
import { required } from '../../values/required.ts'

/**
 * Rows per insert statement, fewer in a wide table. One call per row spends half its time crossing into SQLite; more
 * than about fifty no longer help.
 */
const ROWS_PER_INSERT = 50
const PARAMETERS_PER_INSERT = 2_000

export interface WriteFacts {
  readonly encodings: RecordEncodingCache
  readonly driftCollector: DriftCollector
  readonly writer: number
  readonly owner: number
  /** Owners by database, where they differ from `owner`. */
  readonly owners: ReadonlyMap<string, number>
  /** The commit's time, in ms. */
  readonly committedAt: number
}

/** Executes a plan: the table gets the new versions, its history the replaced ones. */
export function writeRows(
  session: TenantSession,
  { writes, touches, contests }: LandingPlan,
  tables: ReadonlyMap<string, Table>,
  facts: WriteFacts,
): void {
  const grown = new Map(tables)
  const syncedAt = new Date(facts.committedAt).toISOString()
  let hasGrown = false
  for (let from = 0; from < writes.length;) {
    const { database } = required(writes[from], 'The first write of a batch').landing
    const table = tableOf(grown, database)
    const batchFacts = { ...facts, owner: facts.owners.get(database) ?? facts.owner, syncedAt }
    const batch = collectAndInsert(session, table, writes, { from, hasGrown }, batchFacts)
    writeBatch(session, table, batch, batchFacts)
    hasGrown = batch.needsColumns
    from = batch.end
    // A column counts from the first write that needs it.
    if (hasGrown) grown.set(database, addColumns(session, table, writes.slice(from), facts))
  }
  for (const touch of touches) touchRow(session, tableOf(tables, touch.landing.database), touch)
  for (const contest of contests) writeContest(session, tableOf(tables, contest.landing.database), contest)
}

type BatchFacts = WriteFacts & { readonly syncedAt: string }

/** Inserts the new rows of a batch while it is collected. */
function collectAndInsert(
  session: TenantSession,
  table: Table,
  writes: readonly RowWrite[],
  progress: { from: number; hasGrown: boolean },
  facts: BatchFacts,
): WriteBatch {
  let rows: UpsertWrite[] = []
  const size = rowsPerInsert(table)
  const batch = collectBatch(table, writes, progress, facts.driftCollector, {
    encode: (landing, isNew) => facts.encodings.encode(landing, table, isNew),
    takeRow: (row) => {
      rows.push(row)
      if (rows.length < size) return
      insertRows(session, table, rows, facts)
      rows = []
    },
  })
  insertRows(session, table, rows, facts)
  return batch
}

function writeBatch(
  session: TenantSession,
  table: Table,
  { upserts, deletes, contested }: WriteBatch,
  facts: BatchFacts,
): void {
  const returned = upserts.filter(({ write }) => write.row?.status !== 'live')
  const kept = reviveRows(session, table, returned, facts)
  insertRows(
    session,
    table,
    returned.filter((upsert) => !kept.has(upsert)),
    facts,
  )
  for (const { landing } of returned) deleteTombstone(session, table, landing.key)
  updateRows(
    session,
    table,
    upserts.filter(({ write }) => write.row?.status === 'live'),
    facts,
  )
  for (const write of deletes) deleteRow(session, table, write, facts)
  for (const key of contested) deleteContest(session, table, key)
}

/** Returns the table with a column for every field of the records of its database. */
function addColumns(
  session: TenantSession,
  table: Table,
  writes: readonly RowWrite[],
  { driftCollector }: Pick<WriteFacts, 'driftCollector'>,
): Table {
  const records = recordsFrom(writes, table.database)
  const foreign = foreignColumns(session, table)
  const { sequence: since } = required(writes[0], 'The first write')
  const columns = growColumns(table.columns, records, since, {
    reserved: [...RESERVED_NAMES, ...foreign],
    ...COLUMN_LIMITS,
  })
  if (columns === table.columns) return table
  driftCollector.recordTakenNames(table, columns, foreign, since)
  return alterTable(session, table, columns)
}

function insertRows(session: TenantSession, table: Table, rows: readonly UpsertWrite[], facts: BatchFacts): void {
  const size = rowsPerInsert(table)
  let at = 0
  for (; at + size <= rows.length; at += size) insertTogether(session, table, rows.slice(at, at + size), facts)
  for (; at < rows.length; at++) insertTogether(session, table, rows.slice(at, at + 1), facts)
}

/**
 * Binding a value costs a fifth of a microsecond, so each is bound once: values that the rows share are bound ahead of
 * them, and consecutive sequences, as on a first load, are computed from the first.
 */
function insertTogether(session: TenantSession, table: Table, rows: readonly UpsertWrite[], facts: BatchFacts): void {
  const [first, last] = [required(rows[0], 'The first row').write, required(rows.at(-1), 'The last row').write]
  const isConsecutive = last.sequence - first.sequence === rows.length - 1
  const hasCursor = rows.some(({ landing }) => landing.cursor !== null)
  const hasExtra = rows.some(({ encoded }) => encoded.extra !== null)
  const values: Parameter[] = isConsecutive ? [facts.syncedAt, first.sequence] : [facts.syncedAt]
  for (const { write, landing, encoded } of rows) {
    if (!isConsecutive) values.push(write.sequence, write.sequence)
    values.push(landing.key, landing.hash, upstreamAtOf(write))
    if (hasCursor) values.push(landing.cursor)
    if (hasExtra) values.push(encoded.extra)
    bindValues(table, encoded, values)
  }
  const { writer, owner } = facts
  const sql = insertSql(table, { count: rows.length, isConsecutive, hasCursor, hasExtra, writer, owner })
  session.connection.prepare(sql).run(...values)
}

interface InsertForm {
  readonly count: number
  readonly isConsecutive: boolean
  readonly hasCursor: boolean
  readonly hasExtra: boolean
  readonly writer: number
  readonly owner: number
}

/** The text of the last insert of each table: to build one takes as long as to insert ten rows. */
const insertTexts = new WeakMap<Table['members'], { readonly form: string; readonly sql: string }>()

function insertSql({ name, members }: Table, form: InsertForm): string {
  const { count, isConsecutive, hasCursor, hasExtra, writer, owner } = form
  const id = `${name} ${count} ${isConsecutive} ${hasCursor} ${hasExtra} ${writer} ${owner}`
  const known = insertTexts.get(members)
  if (known?.form === id) return known.sql
  const values = members.map(() => ',?').join('')
  // Numbered parameters come first: an unnumbered one takes the number after the largest before it.
  const tuples = Array.from({ length: count }, (_, at) => {
    const sequences = isConsecutive ? `?2+${at},?2+${at}` : '?,?'
    return `(?1,${sequences},?,?,?,${hasCursor ? '?' : 'null'},${writer},${owner},${hasExtra ? '?' : 'null'}${values})`
  })
  const own = '_synced_at, _sequence, _created_sequence, _key, _hash, _upstream_at, _cursor, _writer, _owner, _extra'
  const sql = `insert into ${name} (${[own, ...members].join(', ')}) values ${tuples.join(',')}`
  insertTexts.set(members, { form: id, sql })
  return sql
}

/**
 * Revives rows that were kept when they were deleted, in place, so that references to them stay. Returns the revived
 * ones.
 */
function reviveRows(
  session: TenantSession,
  table: Table,
  upserts: readonly UpsertWrite[],
  { writer, owner, syncedAt }: BatchFacts,
): ReadonlySet<UpsertWrite> {
  const revived = new Set<UpsertWrite>()
  if (upserts.length === 0 || !mayHaveDeletedRows(table)) return revived
  const update = session.connection.prepare(
    `update ${table.name} set _deleted_at = null, _sequence = ?1, _created_sequence = ?1, _synced_at = ?2, _hash = ?, _upstream_at = ?, _cursor = ?, _writer = ?, _owner = ?,
     _extra = ?${table.members.map((name) => `, ${name} = ?`).join('')} where _key = ?`,
  )
  for (const upsert of upserts) {
    const { write, landing, encoded } = upsert
    const values: Parameter[] = [
      write.sequence,
      syncedAt,
      landing.hash,
      upstreamAtOf(write),
      landing.cursor,
      writer,
      owner,
      encoded.extra,
    ]
    bindValues(table, encoded, values)
    if (Number(update.run(...values, landing.key).changes) > 0) revived.add(upsert)
  }
  return revived
}

/** Archives the replaced versions; the rows are updated in place, so that the user's own columns stay. */
function updateRows(
  session: TenantSession,
  table: Table,
  upserts: readonly UpsertWrite[],
  { writer, syncedAt }: BatchFacts,
): void {
  if (upserts.length === 0) return
  archiveVersions(
    session,
    table,
    upserts.map(({ write, landing }) => ({ key: landing.key, until: write.sequence })),
    syncedAt,
  )
  const update = session.connection.prepare(
    `update ${table.name} set _sequence = ?, _hash = ?, _upstream_at = ?, _synced_at = ?, _cursor = ?, _writer = ?, _extra = ?${table.members
      .map((name) => `, ${name} = ?`)
      .join('')} where _key = ?`,
  )
  for (const { write, landing, encoded } of upserts) {
    const values: Parameter[] = [
      write.sequence,
      landing.hash,
      upstreamAtOf(write),
      syncedAt,
      landing.cursor,
      writer,
      encoded.extra,
    ]
    bindValues(table, encoded, values)
    update.run(...values, landing.key)
  }
}

/** A tombstone keeps the owner of a live row; otherwise the commit's owner owns it. */
function deleteRow(
  session: TenantSession,
  table: Table,
  { landing, action, sequence, row }: RowWrite,
  { writer, owner, syncedAt }: BatchFacts,
): void {
  const { connection, tenantId } = session
  if (row?.status === 'live') {
    archiveVersions(session, table, [{ key: landing.key, until: sequence }], syncedAt)
    removeRow(session, table, landing.key, { sequence, writer, syncedAt })
  }
  if (action !== null) {
    connection.run(
      'insert into tidemark_deletions (tenant_id, sequence, database_id, key, upstream_at) values (?, ?, ?, ?, ?)',
      tenantId,
      sequence,
      table.id,
      landing.key,
      landing.upstreamAt,
    )
  }
  connection.run(
    `insert into tidemark_tombstones (tenant_id, database_id, key, sequence, status, upstream_at, writer_id, owner_id) values (?, ?, ?, ?, ?, ?, ?, ?)
     on conflict do update set sequence = excluded.sequence, status = excluded.status, upstream_at = excluded.upstream_at,
       writer_id = excluded.writer_id, owner_id = excluded.owner_id`,
    tenantId,
    table.id,
    landing.key,
    sequence,
    STATUS_CODES.deleted,
    upstreamAtOf({ landing, row }),
    writer,
    row?.status === 'live' ? row.owner : owner,
  )
}

/** A kept row takes the sequence and the time of its deletion, so that readers that follow either one see it. */
function removeRow(
  { connection }: TenantSession,
  { name, deletes }: Table,
  key: string,
  by: { sequence: number; writer: number; syncedAt: string },
): void {
  if (deletes !== 'soft') connection.run(`delete from ${name} where _key = ?`, key)
  else
    connection.run(
      `update ${name} set _deleted_at = ?1, _synced_at = ?1, _sequence = ?2, _writer = ?3 where _key = ?4`,
      by.syncedAt,
      by.sequence,
      by.writer,
      key,
    )
}

/** Copies current rows to the history, as they are before the write of the sequence `until`. */
function archiveVersions(
  { connection }: TenantSession,
  { name, history, members }: Table,
  versions: readonly { key: string; until: number }[],
  untilAt: string,
): void {
  const columns = [...SYSTEM_COLUMNS, ...members]
  const archive = (count: number): string =>
    `insert into ${history} (_until_sequence, _until_at, ${columns.join(', ')}) select v.column1, ?1, ${columns
      .map((column) => `t.${column}`)
      .join(
        ', ',
      )} from (values ${Array.from({ length: count }, () => '(?,?)').join(',')}) v cross join ${name} t on t._key = v.column2`
  const run = (part: typeof versions): void => {
    connection.prepare(archive(part.length)).run(untilAt, ...part.flatMap(({ key, until }) => [until, key]))
  }
  let at = 0
  for (; at + ROWS_PER_INSERT <= versions.length; at += ROWS_PER_INSERT) run(versions.slice(at, at + ROWS_PER_INSERT))
  for (; at < versions.length; at++) run(versions.slice(at, at + 1))
}

function deleteTombstone(session: TenantSession, table: Table, key: string): void {
  session.connection.run(
    'delete from tidemark_tombstones where tenant_id = ? and database_id = ? and key = ?',
    session.tenantId,
    table.id,
    key,
  )
  deleteContest(session, table, key)
}

function deleteContest({ connection, tenantId }: TenantSession, table: Table, key: string): void {
  connection.run(
    'delete from tidemark_contests where tenant_id = ? and database_id = ? and key = ?',
    tenantId,
    table.id,
    key,
  )
}

function touchRow(session: TenantSession, table: Table, { landing, upstreamAt }: RowTouch): void {
  const { connection, tenantId } = session
  if (landing.type === 'upsert')
    connection.run(
      `update ${table.name} set _upstream_at = ?, _hash = ? where _key = ?`,
      upstreamAt,
      landing.hash,
      landing.key,
    )
  else {
    connection.run(
      'update tidemark_tombstones set upstream_at = ?, status = ? where tenant_id = ? and database_id = ? and key = ?',
      upstreamAt,
      STATUS_CODES.deleted,
      tenantId,
      table.id,
      landing.key,
    )
  }
  deleteContest(session, table, landing.key)
}

function writeContest(session: TenantSession, table: Table, { landing, contestedBy }: RowContest): void {
  const { connection, tenantId } = session
  if (contestedBy === null) return deleteContest(session, table, landing.key)
  connection.run(
    'insert into tidemark_contests (tenant_id, database_id, key, cycle_id) values (?, ?, ?, ?) on conflict do update set cycle_id = excluded.cycle_id',
    tenantId,
    table.id,
    landing.key,
    contestedBy,
  )
}

function rowsPerInsert({ members }: Table): number {
  return Math.min(ROWS_PER_INSERT, Math.max(1, Math.floor(PARAMETERS_PER_INSERT / (members.length + 7))))
}
