import type { Landing } from '../../contract/index.ts'
import type { LandingPlan, RowContest, RowTouch, RowWrite } from '../kit/plan-landing.ts'
import { mayHaveDeletedRows } from '../kit/tables/delete-state.ts'
import { growColumns } from '../kit/tables/grow-columns.ts'
import type { DriftCollector } from '../kit/tables/schema-drift.ts'
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
  plan: LandingPlan,
  tables: ReadonlyMap<string, Table>,
  facts: WriteFacts,
): void {
  const syncedAt = new Date(facts.committedAt).toISOString()
  for (const known of tables.values()) {
    const [upserts, deletes]: [UpsertWrite[], RowWrite[]] = [[], []]
    for (const write of plan.writes) {
      if (write.landing.database !== known.database) continue
      if (write.landing.type === 'upsert') upserts.push(write as UpsertWrite)
      else deletes.push(write)
    }
    const table = growTable(session, known, upserts, facts)
    const owner = facts.owners.get(table.database) ?? facts.owner
    const kept = reviveRows(session, table, upserts.filter(isRevived), { ...facts, owner, syncedAt })
    insertRows(
      session,
      table,
      upserts.filter((write) => isCreated(write) && !kept.has(write)),
      { ...facts, owner, syncedAt },
    )
    updateRows(
      session,
      table,
      upserts.filter((write) => !isCreated(write)),
      { ...facts, syncedAt },
    )
    for (const write of deletes) deleteRow(session, table, write, { ...facts, owner, syncedAt })
  }
  for (const touch of plan.touches) touchRow(session, tableOf(tables, touch.landing.database), touch)
  for (const contest of plan.contests) writeContest(session, tableOf(tables, contest.landing.database), contest)
}

type UpsertWrite = RowWrite & { readonly landing: Extract<Landing, { type: 'upsert' }> }
type BatchFacts = WriteFacts & { readonly syncedAt: string }

function isCreated({ action }: RowWrite): boolean {
  return action === 'created'
}

function isRevived(write: RowWrite): boolean {
  return isCreated(write) && write.row !== undefined
}

/** Returns the table with a column for every field of these records. */
function growTable(
  session: TenantSession,
  table: Table,
  writes: readonly UpsertWrite[],
  { encodings, driftCollector }: WriteFacts,
): Table {
  let [needsColumns, hasMisfits] = [false, false]
  for (const { landing } of writes) {
    const encoded = encodings.encode(landing, table)
    needsColumns ||= encoded.needsColumns
    hasMisfits ||= encoded.misfits !== null
  }
  if (!needsColumns && !hasMisfits) return table
  const grown =
    needsColumns && driftCollector.mayAddColumns(table)
      ? addColumns(session, table, writes, { encodings, driftCollector })
      : table
  for (const { landing, sequence } of writes) {
    const encoded = encodings.encode(landing, grown)
    if (encoded.misfits !== null || encoded.needsColumns)
      driftCollector.recordDrift(grown, encodings.recordOf(landing), encoded, sequence)
  }
  return grown
}

function addColumns(
  session: TenantSession,
  table: Table,
  writes: readonly UpsertWrite[],
  { encodings, driftCollector }: Pick<WriteFacts, 'encodings' | 'driftCollector'>,
): Table {
  const records = writes.map(({ landing }) => encodings.recordOf(landing))
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

/**
 * Binding a value costs a fifth of a microsecond, so each is bound once: values that a batch shares are bound ahead of
 * its rows, and consecutive sequences, as on a first load, are computed from the first.
 */
function insertRows(session: TenantSession, table: Table, writes: readonly UpsertWrite[], facts: BatchFacts): void {
  const [first, last] = [writes[0], writes.at(-1)]
  if (first === undefined || last === undefined) return
  const rows = writes.map((write) => ({ write, record: facts.encodings.encode(write.landing, table) }))
  const isConsecutive = last.sequence - first.sequence === writes.length - 1
  const hasCursor = writes.some(({ landing }) => landing.cursor !== null)
  const hasExtra = rows.some(({ record }) => record.extra !== null)
  const members = table.members.map(() => ',?').join('')
  const tuple = (at: number): string => {
    const sequence = isConsecutive ? `?2+${at}` : '?'
    const created = isConsecutive ? sequence : '?'
    return `(?1,${sequence},${created},?,?,?,${hasCursor ? '?' : 'null'},${facts.writer},${facts.owner},${hasExtra ? '?' : 'null'}${members})`
  }
  // Numbered parameters come first: an unnumbered one takes the number after the largest before it.
  const own = '_synced_at, _sequence, _created_sequence, _key, _hash, _upstream_at, _cursor, _writer, _owner, _extra'
  const head = `insert into ${table.name} (${[own, ...table.members].join(', ')}) values `
  insertInBatches(session, head, rows, {
    tuple,
    parametersMax: table.members.length + 7,
    shared: ({ write }) => (isConsecutive ? [facts.syncedAt, write.sequence] : [facts.syncedAt]),
    push: ({ write: { landing, sequence, row }, record }, into) => {
      if (!isConsecutive) into.push(sequence, sequence)
      into.push(landing.key, landing.hash, landing.upstreamAt ?? row?.upstreamAt ?? null)
      if (hasCursor) into.push(landing.cursor)
      if (hasExtra) into.push(record.extra)
      bindValues(table, record, into)
    },
  })
  for (const { landing, row } of writes) if (row !== undefined) deleteTombstone(session, table, landing.key)
}

/**
 * Revives rows that were kept when they were deleted, in place, so that references to them stay. Returns the revived
 * ones.
 */
function reviveRows(
  session: TenantSession,
  table: Table,
  writes: readonly UpsertWrite[],
  { writer, owner, syncedAt, encodings }: BatchFacts,
): ReadonlySet<RowWrite> {
  const returned = new Set<RowWrite>()
  if (writes.length === 0 || !mayHaveDeletedRows(table)) return returned
  const update = session.connection.prepare(
    `update ${table.name} set _deleted_at = null, _sequence = ?1, _created_sequence = ?1, _synced_at = ?2, _hash = ?, _upstream_at = ?, _cursor = ?, _writer = ?, _owner = ?,
     _extra = ?${table.members.map((name) => `, ${name} = ?`).join('')} where _key = ?`,
  )
  for (const write of writes) {
    const { landing, sequence, row } = write
    const record = encodings.encode(landing, table)
    const values: Parameter[] = [
      sequence,
      syncedAt,
      landing.hash,
      landing.upstreamAt ?? row?.upstreamAt ?? null,
      landing.cursor,
      writer,
      owner,
      record.extra,
    ]
    bindValues(table, record, values)
    if (Number(update.run(...values, landing.key).changes) === 0) continue
    returned.add(write)
    deleteTombstone(session, table, landing.key)
  }
  return returned
}

/** Archives the replaced versions; the rows are updated in place, so that the user's own columns stay. */
function updateRows(
  session: TenantSession,
  table: Table,
  writes: readonly UpsertWrite[],
  { writer, syncedAt, encodings }: BatchFacts,
): void {
  if (writes.length === 0) return
  archiveVersions(
    session,
    table,
    writes.map(({ landing, sequence }) => ({ key: landing.key, until: sequence })),
    syncedAt,
  )
  const update = session.connection.prepare(
    `update ${table.name} set _sequence = ?, _hash = ?, _upstream_at = ?, _synced_at = ?, _cursor = ?, _writer = ?, _extra = ?${table.members
      .map((name) => `, ${name} = ?`)
      .join('')} where _key = ?`,
  )
  for (const { landing, sequence, row } of writes) {
    const record = encodings.encode(landing, table)
    // A change without a time keeps the row's time: older versions stay older.
    const values: Parameter[] = [
      sequence,
      landing.hash,
      landing.upstreamAt ?? row?.upstreamAt ?? null,
      syncedAt,
      landing.cursor,
      writer,
      record.extra,
    ]
    bindValues(table, record, values)
    values.push(landing.key)
    update.run(...values)
    if (row !== undefined && row.contestedBy !== null) deleteContest(session, table, landing.key)
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
    landing.upstreamAt ?? row?.upstreamAt ?? null,
    writer,
    row?.status === 'live' ? row.owner : owner,
  )
  if (row !== undefined && row.contestedBy !== null) deleteContest(session, table, landing.key)
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
  session: TenantSession,
  table: Table,
  versions: readonly { key: string; until: number }[],
  untilAt: string,
): void {
  const columns = [...SYSTEM_COLUMNS, ...table.members]
  insertInBatches(
    session,
    `insert into ${table.history} (_until_sequence, _until_at, ${columns.join(', ')}) select v.column1, ?1, ${columns
      .map((name) => `t.${name}`)
      .join(', ')} from (values `,
    versions,
    {
      tuple: () => '(?,?)',
      parametersMax: 2,
      shared: () => [untilAt],
      push: ({ key, until }, into) => into.push(until, key),
      tail: `) v cross join ${table.name} t on t._key = v.column2`,
    },
  )
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

interface BatchInsert<Write> {
  /** SQL for the row at this index of its batch. */
  tuple(at: number): string
  /** The most parameters of one tuple. */
  readonly parametersMax: number
  /** Values bound once per batch, from its first write. */
  shared(first: Write): Parameter[]
  push(write: Write, into: Parameter[]): void
  readonly tail?: string
}

function insertInBatches<Write>(
  session: TenantSession,
  head: string,
  writes: readonly Write[],
  { tuple, parametersMax, shared, push, tail = '' }: BatchInsert<Write>,
): void {
  const { connection } = session
  const run = (statement: ReturnType<typeof connection.prepare>, batch: readonly Write[]): void => {
    const parameters = shared(required(batch[0], 'The first write of a batch'))
    for (const write of batch) push(write, parameters)
    statement.run(...parameters)
  }
  const size = Math.min(ROWS_PER_INSERT, Math.max(1, Math.floor(PARAMETERS_PER_INSERT / parametersMax)))
  let at = 0
  if (writes.length >= size) {
    const many = connection.prepare(head + Array.from({ length: size }, (_, index) => tuple(index)).join(',') + tail)
    for (; at + size <= writes.length; at += size) run(many, writes.slice(at, at + size))
  }
  const one = connection.prepare(head + tuple(0) + tail)
  for (const write of writes.slice(at)) run(one, [write])
}
