import type {
  JsonObject,
  SchemaChangeRequest,
  SchemaColumn,
  SchemaDrift,
  SchemaInfo,
  SchemaStepResult,
} from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { createBeginSchemaChangeAuditEntry, createEndSchemaChangeAuditEntry } from '../kit/audit-entries.ts'
import { quoteIdentifier } from '../kit/column-names.ts'
import {
  advanceAfterBatch,
  planSchemaChange,
  describeChanges,
  checkDependentLoss,
  needsRowCopy,
  finishColumns,
  createInvalidSchemaChangeError,
  toSchemaChangeState,
  type ColumnTransition,
  type StoredSchemaChange,
} from '../kit/tables/schema-change.ts'
import { inferFormat, type TableColumn } from '../kit/tables/column.ts'
import { parseDrift } from '../kit/tables/schema-drift.ts'
import { countExtraMembers, describeColumns, EXTRA_ROWS_MAX } from '../kit/tables/extra-members.ts'
import type { Parameter, TenantSession } from './connection.ts'
import { rows as readRows } from './queries.ts'
import { writeAudit } from './registry.ts'
import {
  bindValues,
  findTable,
  foreignColumns,
  COLUMN_LIMITS,
  RESERVED_NAMES,
  SQL_TYPES,
  sqlTypeOf,
  unquoteIdentifier,
  type StoredValue,
  type Table,
} from './table.ts'

/** The columns of a database's table: their description, and how they are changed. */

export function schemaDrift({ connection, tenantId }: TenantSession): SchemaDrift[] {
  return connection
    .all<{ name: string; drift: string }>(
      "select name, drift from tidemark_databases where tenant_id = ? and drift <> '[]' order by name",
      tenantId,
    )
    .flatMap(({ name, drift }) => parseDrift(name, drift))
}

export function schema(session: TenantSession, database: string): SchemaInfo | null {
  const table = findTable(session, database)
  if (table === null) return null
  const { connection } = session
  const change = readChange(session, table)
  const { rows } = connection.one<{ rows: number }>(`select count(*) as rows from ${table.name}`)
  const { versions } = connection.one<{ versions: number }>(`select count(*) as versions from ${table.history}`)
  const texts = connection
    .all<{ text: string }>(
      `select _extra as text from ${table.name} where _extra is not null limit ${EXTRA_ROWS_MAX + 1}`,
    )
    .map(({ text }) => text)
  const isOver = texts.length > EXTRA_ROWS_MAX
  return {
    database,
    table: unquoteIdentifier(table.name),
    history: unquoteIdentifier(table.history),
    rows,
    isRowsExact: true,
    versions,
    ...(table.deletes !== null && {
      deletes: table.deletes,
      deletedRows: rows - connection.one<{ live: number }>(`select count(*) as live from ${table.live}`).live,
    }),
    columns: describeColumns(table.columns, sqlTypeOf, createDependentsLookup(session, table)),
    waiting: countExtraMembers(table.columns, texts.slice(0, EXTRA_ROWS_MAX)),
    waitingScanned: Math.min(texts.length, EXTRA_ROWS_MAX),
    isWaitingExact: !isOver,
    ownColumns: foreignColumns(session, table),
    ownIndexes: listUserObjects(session, table)
      .filter(({ type }) => type === 'index')
      .map(({ name }) => name),
    drift: parseDrift(database, table.drift),
    change: change === null ? null : toSchemaChangeState(change),
    types: SQL_TYPES,
    locks: LOCKS,
  }
}

export function beginSchemaChange(session: TenantSession, database: string, request: SchemaChangeRequest): void {
  const { connection, tenantId } = session
  connection.write(() => {
    const table = findTable(session, database)
    if (table === null) throw createInvalidSchemaChangeError(`There is no database ${JSON.stringify(database)}.`)
    if (readChange(session, table) !== null)
      throw createInvalidSchemaChangeError(`A schema change of ${database} is already running. Complete it first.`)
    const { change } = planSchemaChange(table.columns, request, factsOf(session, table))
    checkDependentLoss(table.columns, change, createDependentsLookup(session, table))
    connection.run(
      'update tidemark_databases set change = ? where tenant_id = ? and database_id = ?',
      JSON.stringify(change),
      tenantId,
      table.id,
    )
    writeAudit(session, null, createBeginSchemaChangeAuditEntry(database, describeChanges(request.changes), request))
  })
}

export function advanceSchemaChange(
  session: TenantSession,
  database: string,
  { at, rowsMax }: { at: number; rowsMax: number },
): SchemaStepResult | null {
  return session.connection.write(() => {
    const table = findTable(session, database)
    const change = table === null ? null : readChange(session, table)
    if (table === null || change === null) return null
    const next = advancePhase(session, table, change, { at, rowsMax })
    return { change: toSchemaChangeState(next ?? change), isDone: next === null, isLocked: false }
  })
}

/** Returns null after the last step. */
function advancePhase(
  session: TenantSession,
  table: Table,
  change: StoredSchemaChange,
  { at, rowsMax }: { at: number; rowsMax: number },
): StoredSchemaChange | null {
  switch (change.phase) {
    case 'add':
      return writeChange(session, table, addColumns(session, table, change))
    case 'rows':
    case 'history':
      return writeChange(session, table, rewriteBatch(session, table, change, rowsMax))
    default:
      // SQLite recreates its indexes in the last step.
      swapColumns(session, table, change)
      writeAudit(
        session,
        null,
        createEndSchemaChangeAuditEntry(table.database, describeChanges(change.changes), change.rewritten, {
          actor: change.actor,
          at,
        }),
      )
      return null
  }
}

function factsOf(session: TenantSession, table: Table): Parameters<typeof planSchemaChange>[2] {
  return {
    reserved: [...RESERVED_NAMES, ...foreignColumns(session, table)],
    ...COLUMN_LIMITS,
    types: SQL_TYPES,
    formatOf: (member, type) =>
      inferFormat(
        type,
        readRows(session, { database: table.database, limit: SAMPLE_ROWS }).flatMap(({ text }) => {
          const value = (parseJson(text) as JsonObject)[member]
          return typeof value === 'string' ? [value] : []
        }),
      ),
  }
}

const SAMPLE_ROWS = 1_000
const LOCKS = {
  batch: 'one writer at a time, per batch',
  swap: 'one writer at a time, for the last step, which rewrites the table and its indexes',
}

function readChange({ connection, tenantId }: TenantSession, { id }: Table): StoredSchemaChange | null {
  const { change } = connection.one<{ change: string | null }>(
    'select change from tidemark_databases where tenant_id = ? and database_id = ?',
    tenantId,
    id,
  )
  return change === null ? null : (JSON.parse(change) as StoredSchemaChange)
}

function writeChange(
  { connection, tenantId }: TenantSession,
  { id }: Table,
  change: StoredSchemaChange,
): StoredSchemaChange {
  connection.run(
    'update tidemark_databases set change = ? where tenant_id = ? and database_id = ?',
    JSON.stringify(change),
    tenantId,
    id,
  )
  return change
}

function writeColumns({ connection, tenantId }: TenantSession, { id }: Table, columns: readonly TableColumn[]): void {
  connection.run(
    'update tidemark_databases set layout = ? where tenant_id = ? and database_id = ?',
    JSON.stringify(columns),
    tenantId,
    id,
  )
}

/** Plans again, because records that landed since may have added columns. */
function addColumns(session: TenantSession, table: Table, change: StoredSchemaChange): StoredSchemaChange {
  const {
    columns,
    change: { moves },
  } = planSchemaChange(
    table.columns,
    { ...change, at: change.startedAt, allowDependentLoss: change.lose },
    factsOf(session, table),
  )
  for (const { to, type } of moves) {
    if (to === null) continue
    for (const altered of [table.name, table.history])
      session.connection.exec(`alter table ${altered} add column ${quoteIdentifier(to)} ${sqlTypeOf(type)}`)
  }
  writeColumns(session, table, columns)
  return { ...change, moves, phase: needsRowCopy(moves) ? 'rows' : 'swap' }
}

type RowValues = [id: string | number, sequence: number, extra: string | null, ...members: StoredValue[]]

/** Encodes each record again into the current columns. Nothing else of the row changes. */
function rewriteBatch(
  session: TenantSession,
  table: Table,
  change: StoredSchemaChange,
  rowsMax: number,
): StoredSchemaChange {
  const { connection } = session
  const isHistory = change.phase === 'history'
  const [name, orderColumn] = isHistory ? [table.history, '_until_sequence'] : [table.name, '_key']
  const after: Parameter =
    change.position === null ? (isHistory ? -1 : '') : isHistory ? Number(change.position) : change.position
  const found = connection.tuples<RowValues>(
    `select ${orderColumn}, _sequence, _extra${table.selected} from ${name} where ${orderColumn} > ? order by ${orderColumn} limit ?`,
    after,
    rowsMax,
  )
  const update = connection.prepare(
    `update ${name} set _extra = ?${table.members.map((column) => `, ${column} = ?`).join('')} where ${orderColumn} = ?`,
  )
  let rewritten = 0
  for (const row of found) {
    const [at, sequence, extra] = row
    const encoded = table.encoder.encode(parseJson(table.decode(sequence, extra, row, 3)) as JsonObject, sequence)
    if (encoded.extra === extra && table.findDifference(encoded.values, row, 3) === -1) continue
    const values: Parameter[] = [encoded.extra]
    bindValues(table, encoded, values)
    update.run(...values, at)
    rewritten++
  }
  const last = found.length < rowsMax ? undefined : found.at(-1)
  return advanceAfterBatch(change, {
    scanned: found.length,
    rewritten,
    last: last === undefined ? null : String(last[0]),
  })
}

// ── the last step ────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Replaces the old columns with the new ones. SQLite refuses to drop a column that an index, a trigger or a view names,
 * so these are dropped first and recreated from their original SQL in the same transaction.
 */
function swapColumns(session: TenantSession, table: Table, { moves }: StoredSchemaChange): void {
  const { connection, tenantId } = session
  const dropped = moves.flatMap(({ from, to, name }) => (from !== null && (to !== null || name === null) ? [from] : []))
  const objects =
    dropped.length === 0
      ? []
      : listUserObjects(session, table).filter(({ sql }) => dropped.some((column) => mentions(sql, column)))
  for (const { type, name } of objects.toReversed()) connection.exec(`drop ${type} ${quoteIdentifier(name)}`)
  for (const altered of [table.name, table.history]) for (const move of moves) swapColumn(session, altered, move)
  const gone = moves.flatMap(({ from, name }) => (from !== null && name === null ? [from] : []))
  for (const { sql } of objects) if (!gone.some((column) => mentions(sql, column))) connection.exec(sql)
  writeColumns(session, table, finishColumns(table.columns, moves))
  const members = new Set(moves.map(({ member }) => member))
  const drift = (JSON.parse(table.drift) as Array<{ member: string }>).filter(({ member }) => !members.has(member))
  connection.run(
    'update tidemark_databases set change = null, drift = ? where tenant_id = ? and database_id = ?',
    JSON.stringify(drift),
    tenantId,
    table.id,
  )
}

function swapColumn({ connection }: TenantSession, table: string, { from, to, name }: ColumnTransition): void {
  const isReplaced = from !== null && (to !== null || name === null)
  if (isReplaced) connection.exec(`alter table ${table} drop column ${quoteIdentifier(from)}`)
  const current = to ?? from
  if (name !== null && current !== null && current !== name)
    connection.exec(`alter table ${table} rename column ${quoteIdentifier(current)} to ${quoteIdentifier(name)}`)
}

interface UserObject {
  readonly type: 'index' | 'trigger' | 'view'
  readonly name: string
  readonly sql: string
}

/**
 * Indexes, views and triggers of the user that name the table or its history, in an order in which they can be created.
 */
function listUserObjects({ connection }: TenantSession, table: Table): UserObject[] {
  const names = [table.name, table.history].map(unquoteIdentifier)
  return connection
    .all<UserObject & { tbl: string }>(
      `select type, name, sql, tbl_name as tbl from sqlite_schema where type in ('index', 'view', 'trigger') and sql is not null
       and name not like 'tidemark\\_%' escape '\\' order by case type when 'index' then 1 when 'view' then 2 else 3 end, rowid`,
    )
    .filter(({ tbl, sql }) => names.some((name) => tbl.toLowerCase() === name.toLowerCase() || mentions(sql, name)))
}

/** Matched by text: SQLite keeps no list of a column's dependents. All of them are recreated after a change of type. */
function createDependentsLookup(session: TenantSession, table: Table): (column: string) => SchemaColumn['dependents'] {
  const objects = listUserObjects(session, table)
  return (column) =>
    objects
      .filter(({ sql }) => mentions(sql, column))
      .map(({ type, name }) => ({ name: `${type} ${name}`, isKept: true }))
}

function mentions(sql: string, name: string): boolean {
  const escaped = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`(?<![\\p{L}\\p{N}_$])${escaped}(?![\\p{L}\\p{N}_$])`, 'iu').test(sql)
}
