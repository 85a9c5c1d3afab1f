import type {
  JsonObject,
  SchemaChangeRequest,
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
import { DELETED_AT, mayHaveDeletedRows } from '../kit/tables/delete-state.ts'
import { parseDrift } from '../kit/tables/schema-drift.ts'
import { countExtraMembers, describeColumns, EXTRA_ROWS_MAX } from '../kit/tables/extra-members.ts'
import { textArray } from './binary-arrays.ts'
import { binaryArray, SQL_TYPES, sqlTypeOf } from './binary-values.ts'
import type { TenantSession, Transaction } from './connection.ts'
import { buildPropertySql, buildNextIndexSql, readDependents, buildIndexRenameSql } from './dependents.ts'
import { lockTenant, writeAudit } from './registry.ts'
import { toColumnUpdate } from './rows.ts'
import {
  COLUMNS_MAX,
  foreignColumns,
  LOCK_TIMEOUT_MS,
  LOCK_NOT_AVAILABLE,
  NAME_BYTES_MAX,
  readTables,
  RESERVED_NAMES,
  type Table,
} from './table.ts'

/** The columns of a database's table: their description, and how they are changed. */

export function schemaDrift({ connection, tenant }: TenantSession): Promise<SchemaDrift[]> {
  return connection.read(tenant, async (transaction) =>
    (
      await transaction.all<{ name: string; drift: string }>(
        "select name, drift from tidemark.databases where tenant_id = $1 and drift <> '[]' order by name",
        tenant,
      )
    ).flatMap(({ name, drift }) => parseDrift(name, drift)),
  )
}

export function schema({ connection, tenant }: TenantSession, database: string): Promise<SchemaInfo | null> {
  return connection.read(tenant, async (transaction) => {
    const table = (await readTables(transaction, [database])).get(database)
    if (table === undefined) return null
    const change = await readChange(transaction, table)
    const { rows, versions } = await transaction.one<{ rows: number; versions: number }>(
      'select (select reltuples::bigint from pg_class where oid = to_regclass($1)) as rows, (select reltuples::bigint from pg_class where oid = to_regclass($2)) as versions',
      table.name,
      table.history,
    )
    // A table that was never analysed is small or new, so it is counted.
    const counted =
      rows < 0 ? (await transaction.one<{ count: number }>(`select count(*) from ${table.name}`)).count : null
    const past =
      versions < 0
        ? (await transaction.one<{ count: number }>(`select count(*) from ${table.history}`)).count
        : versions
    const texts = (
      await transaction.textRows(
        `select _extra from ${table.name} where _extra is not null limit ${EXTRA_ROWS_MAX + 1}`,
      )
    ).flatMap(([text]) => text ?? [])
    const dependents = await readDependents(transaction, table)
    const deleted = mayHaveDeletedRows(table)
      ? (await transaction.one<{ count: number }>(`select count(*) from ${table.name} where ${DELETED_AT} is not null`))
          .count
      : 0
    return {
      database,
      table: table.name,
      history: table.history,
      rows: counted ?? rows,
      isRowsExact: counted !== null,
      versions: past,
      ...(table.deletes !== null && { deletes: table.deletes, deletedRows: deleted }),
      columns: describeColumns(table.columns, sqlTypeOf, dependents.forColumn),
      waiting: countExtraMembers(table.columns, texts.slice(0, EXTRA_ROWS_MAX)),
      waitingScanned: Math.min(texts.length, EXTRA_ROWS_MAX),
      isWaitingExact: texts.length <= EXTRA_ROWS_MAX,
      ownColumns: await foreignColumns(transaction, table),
      ownIndexes: dependents.ownIndexes,
      drift: parseDrift(database, table.drift),
      change: change === null ? null : toSchemaChangeState(change),
      types: SQL_TYPES,
      locks: LOCKS,
    }
  })
}

export async function beginSchemaChange(
  { connection, tenant }: TenantSession,
  database: string,
  request: SchemaChangeRequest,
): Promise<void> {
  await connection.write(tenant, async (transaction) => {
    await lockTenant(transaction)
    const table = (await readTables(transaction, [database])).get(database)
    if (table === undefined) throw createInvalidSchemaChangeError(`There is no database ${JSON.stringify(database)}.`)
    if ((await readChange(transaction, table)) !== null)
      throw createInvalidSchemaChangeError(`A schema change of ${database} is already running. Complete it first.`)
    const { change } = planSchemaChange(table.columns, request, await factsOf(transaction, table, request))
    checkDependentLoss(table.columns, change, (await readDependents(transaction, table)).forColumn)
    writeChange(transaction, table, change)
    writeAudit(
      transaction,
      null,
      createBeginSchemaChangeAuditEntry(database, describeChanges(request.changes), request),
    )
  })
}

export async function advanceSchemaChange(
  session: TenantSession,
  database: string,
  { at, rowsMax }: { at: number; rowsMax: number },
): Promise<SchemaStepResult | null> {
  const { connection, tenant } = session
  const index = await connection.read(tenant, async (transaction) => {
    const table = (await readTables(transaction, [database])).get(database)
    const change = table === undefined ? null : await readChange(transaction, table)
    if (table === undefined || change?.phase !== 'indexes') return null
    return { change, sql: await buildNextIndexSql(transaction, table, change.moves) }
  })
  if (index !== null && index.sql !== null) {
    // An index is built concurrently, which is illegal in a transaction.
    await connection.runOutsideTransaction(index.sql)
    return { change: toSchemaChangeState(index.change), isDone: false, isLocked: false }
  }
  return connection.write(tenant, async (transaction): Promise<SchemaStepResult | null> => {
    // Locks the tenant like a commit: nothing lands meanwhile, and the columns are current.
    await lockTenant(transaction)
    const table = (await readTables(transaction, [database])).get(database)
    const change = table === undefined ? null : await readChange(transaction, table)
    if (table === undefined || change === null) return null
    const locked = { change: toSchemaChangeState(change), isDone: false, isLocked: true }
    switch (change.phase) {
      case 'add': {
        const added = await addColumns(transaction, table, change)
        return added === null
          ? locked
          : { change: toSchemaChangeState(writeChange(transaction, table, added)), isDone: false, isLocked: false }
      }
      case 'rows':
      case 'history':
        return {
          change: toSchemaChangeState(
            writeChange(transaction, table, await rewriteBatch(transaction, table, change, rowsMax)),
          ),
          isDone: false,
          isLocked: false,
        }
      case 'indexes':
        return {
          change: toSchemaChangeState(writeChange(transaction, table, { ...change, phase: 'swap' })),
          isDone: false,
          isLocked: false,
        }
      case 'swap':
        if (!(await swapColumns(transaction, table, change))) return locked
        writeAudit(
          transaction,
          null,
          createEndSchemaChangeAuditEntry(database, describeChanges(change.changes), change.rewritten, {
            actor: change.actor,
            at,
          }),
        )
        return { change: toSchemaChangeState(change), isDone: true, isLocked: false }
    }
  })
}

async function factsOf(
  transaction: Transaction,
  table: Table,
  { changes }: Pick<SchemaChangeRequest, 'changes'>,
): Promise<Parameters<typeof planSchemaChange>[2]> {
  const records = changes.some(
    ({ type }) => type?.startsWith('timestamp') === true || type?.startsWith('datetime') === true,
  )
    ? await sampleRecords(transaction, table)
    : []
  return {
    reserved: [...RESERVED_NAMES, ...(await foreignColumns(transaction, table))],
    nameBytesMax: NAME_BYTES_MAX,
    columnsMax: COLUMNS_MAX,
    types: SQL_TYPES,
    formatOf: (member, type) =>
      inferFormat(
        type,
        records.flatMap((record) => (typeof record[member] === 'string' ? [record[member]] : [])),
      ),
  }
}

const SAMPLE_ROWS = 1_000
const LOCKS = {
  batch: 'ROW EXCLUSIVE per batch; commits of the tenant wait for one batch',
  swap: `ACCESS EXCLUSIVE briefly, to add and to swap columns; retried if the lock is not granted within ${LOCK_TIMEOUT_MS} ms`,
}

async function sampleRecords(transaction: Transaction, table: Table): Promise<JsonObject[]> {
  const rows = await transaction.textRows(
    `select ${['_sequence', '_extra', ...table.members.map(({ name }) => name)].join(', ')} from ${table.name} order by _key limit ${SAMPLE_ROWS}`,
  )
  return rows.map((row) => parseJson(table.decode(Number(row[0]), row[1] ?? null, row.slice(2))) as JsonObject)
}

async function readChange(transaction: Transaction, { id }: Table): Promise<StoredSchemaChange | null> {
  const { change } = await transaction.one<{ change: string | null }>(
    'select change from tidemark.databases where tenant_id = $1 and database_id = $2',
    transaction.tenant,
    id,
  )
  return change === null ? null : (JSON.parse(change) as StoredSchemaChange)
}

function writeChange(transaction: Transaction, { id }: Table, change: StoredSchemaChange): StoredSchemaChange {
  transaction.send(
    'update tidemark.databases set change = $3 where tenant_id = $1 and database_id = $2',
    transaction.tenant,
    id,
    JSON.stringify(change),
  )
  return change
}

function writeColumns(transaction: Transaction, { id }: Table, columns: readonly TableColumn[]): void {
  transaction.send(
    'update tidemark.databases set layout = $3 where tenant_id = $1 and database_id = $2',
    transaction.tenant,
    id,
    JSON.stringify(columns),
  )
}

/**
 * Plans again, because records that landed since may have added columns. Returns null when a reader holds the table.
 */
async function addColumns(
  transaction: Transaction,
  table: Table,
  change: StoredSchemaChange,
): Promise<StoredSchemaChange | null> {
  const {
    columns,
    change: { moves },
  } = planSchemaChange(
    table.columns,
    { ...change, at: change.startedAt, allowDependentLoss: change.lose },
    await factsOf(transaction, table, change),
  )
  const added = moves
    .flatMap(({ to, type }) => (to === null ? [] : [`add column ${quoteIdentifier(to)} ${sqlTypeOf(type)}`]))
    .join(', ')
  const sql = [table.name, table.history].map((name) => `alter table ${name} ${added}`).join(';')
  if (added !== '' && !(await tryAlter(transaction, sql))) return null
  writeColumns(transaction, table, columns)
  return { ...change, moves, phase: needsRowCopy(moves) ? 'rows' : 'swap' }
}

function tryAlter(transaction: Transaction, sql: string): Promise<boolean> {
  return transaction.tryRun(sql, { lockTimeoutMs: LOCK_TIMEOUT_MS, refusals: [LOCK_NOT_AVAILABLE] })
}

/** Encodes each record again into the current columns. Nothing else of the row changes. */
async function rewriteBatch(
  transaction: Transaction,
  table: Table,
  change: StoredSchemaChange,
  rowsMax: number,
): Promise<StoredSchemaChange> {
  const isHistory = change.phase === 'history'
  const [name, orderColumn, type] = isHistory
    ? ([table.history, '_until_sequence', 'bigint'] as const)
    : ([table.name, '_key', 'text'] as const)
  const columns = [orderColumn, '_sequence', '_extra', ...table.members.map((member) => member.name)].join(', ')
  const found = await transaction.textRows(
    `select ${columns} from ${name} where ${change.position === null ? '$1::text is null' : `${orderColumn} > $1::${type}`} order by ${orderColumn} limit ${rowsMax}`,
    change.position,
  )
  const rewritten = found.flatMap((row) => {
    const [at, sequence, extra] = row as [string, string, string | null]
    const values = row.slice(3)
    const text = table.decode(Number(sequence), extra, values)
    const encoded = table.encode(parseJson(text) as JsonObject, text, Number(sequence))
    const isSame =
      encoded.extra === extra &&
      table.members.every((member, n) => (encoded.values[member.at] === null) === (values[n] === null))
    return isSame ? [] : [{ at, encoded }]
  })
  if (rewritten.length > 0) {
    const sets = [
      toColumnUpdate(
        '_extra',
        'json',
        rewritten.map(({ encoded }) => encoded.extra),
      ),
      ...table.members.map((member) =>
        toColumnUpdate(
          member.name,
          member.type,
          rewritten.map(({ encoded }) => encoded.values[member.at] ?? null),
        ),
      ),
    ]
    const rowIds = isHistory ? `{${rewritten.map(({ at }) => at).join()}}` : textArray(rewritten.map(({ at }) => at))
    transaction.send('set local enable_hashjoin = off; set local enable_mergejoin = off')
    transaction.send(
      `update ${name} t set ${sets.map((set, n) => `${set.name} = w.c${n}`).join(', ')}
       from (select unnest($1::${type}[])${isHistory ? '' : ' collate "C"'} as row_id, ${sets.map((set, n) => `unnest($${n + 2}::${set.type}[])${set.cast ?? ''} as c${n}`).join(', ')}) w
       where t.${orderColumn} = w.row_id`,
      rowIds,
      ...sets.map((set) => binaryArray(set.type, set.values)),
    )
  }
  return advanceAfterBatch(change, {
    scanned: found.length,
    rewritten: rewritten.length,
    last: found.length < rowsMax ? null : (found.at(-1)?.[0] ?? null),
  })
}

/** Replaces the old columns with the new ones. Returns false when a reader holds the table. */
async function swapColumns(
  transaction: Transaction,
  table: Table,
  { moves, lose }: StoredSchemaChange,
): Promise<boolean> {
  const dependents = await readDependents(transaction, table)
  checkDependentLoss(table.columns, { moves, lose } as StoredSchemaChange, dependents.forColumn)
  const kept = await buildPropertySql(transaction, table, moves)
  const indexes = await buildIndexRenameSql(transaction, table, moves)
  const statements = [table.name, table.history].flatMap((name) => moves.flatMap((move) => swapSql(name, move, lose)))
  if (!(await tryAlter(transaction, [...kept, ...statements, ...indexes].join(';')))) return false
  writeColumns(transaction, table, finishColumns(table.columns, moves))
  const members = new Set(moves.map(({ member }) => member))
  const drift = (JSON.parse(table.drift) as Array<{ member: string }>).filter(({ member }) => !members.has(member))
  transaction.send(
    'update tidemark.databases set change = null, drift = $3 where tenant_id = $1 and database_id = $2',
    transaction.tenant,
    table.id,
    JSON.stringify(drift),
  )
  return true
}

function swapSql(table: string, { from, to, name }: ColumnTransition, lose: boolean): string[] {
  const isReplaced = from !== null && (to !== null || name === null)
  const current = to ?? from
  return [
    ...(isReplaced ? [`alter table ${table} drop column ${quoteIdentifier(from)}${lose ? ' cascade' : ''}`] : []),
    ...(name !== null && current !== null && current !== name
      ? [`alter table ${table} rename column ${quoteIdentifier(current)} to ${quoteIdentifier(name)}`]
      : []),
  ]
}
