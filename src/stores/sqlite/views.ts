import { SyncError, type Column } from '../../contract/index.ts'
import { mergeColumns, nameColumns, quoteName, quoteText } from '../kit/columns.ts'
import type { Session } from './connection.ts'
import { POSITIONS_PER_TENANT } from './schema.ts'

/** Columns of our own in every view; a record's members stand beside them. */
const OWN = ['_key', '_sequence', '_committed_at', '_record']
const COLUMNS_MAX = 1_000

/** The database's number; its row, and the view that lets people `select * from accounts`, are made or widened on the way. */
export function ensureView(session: Session, name: string, seen: readonly Column[]): number {
  const { connection, tenantId } = session
  const known = connection.get<{ database_id: number; view_name: string; columns: string }>(
    'select database_id, view_name, columns from tidemark_databases where tenant_id = ? and name = ?', tenantId, name,
  )
  const columns = known === undefined ? [] : (JSON.parse(known.columns) as Column[])
  const merged = mergeColumns(columns, seen)
  if (known !== undefined && merged === columns) return known.database_id

  const view = known?.view_name ?? freeViewName(session, name)
  if (known === undefined) connection.run('insert into tidemark_databases (tenant_id, name, view_name) values (?, ?, ?)', tenantId, name, view)
  const { database_id: id } = connection.get<{ database_id: number }>(
    'select database_id from tidemark_databases where tenant_id = ? and name = ?', tenantId, name,
  )!
  connection.run('update tidemark_databases set columns = ? where tenant_id = ? and database_id = ?', JSON.stringify(merged), tenantId, id)
  connection.exec(`drop view if exists ${quoteName(view)}; ${viewSql(tenantId, id, view, merged)}`)
  return id
}

/** The database's own name, with a number when another of ours has it: SQLite folds case, and tenants share the file. */
function freeViewName({ connection, tenant }: Session, database: string): string {
  const wanted = tenant === 'default' ? database : `${tenant}.${database}`
  for (let view = wanted, n = 2; ; view = `${wanted}_${n++}`) {
    const taken = connection.get<{ type: string; name: string }>('select type, name from sqlite_schema where lower(name) = lower(?)', view)
    if (taken === undefined) return view
    if (connection.get('select 1 from tidemark_databases where view_name = ?', taken.name) !== undefined) continue
    throw new SyncError('STORE_FOREIGN', `The file already has a ${taken.type} named ${taken.name}; the database ${database} cannot have its view there.`)
  }
}

function viewSql(tenantId: number, databaseId: number, view: string, columns: readonly Column[]): string {
  // What JSON writes with a backslash, a path cannot name on every SQLite: such a member is read from _record.
  const readable = columns.filter((column) => JSON.stringify(column.name) === `"${column.name}"`)
  const members = nameColumns(readable, OWN, 1_000, COLUMNS_MAX).map((column) => {
    // An integer beyond 64 bits would come out as a rounded real, so such a column is the digits as text.
    const arrow = column.kinds.includes('bigint') ? '->' : '->>'
    return `, l.record ${arrow} ${quoteText(`$."${column.name}"`)} as ${quoteName(column.as)}`
  })
  return `create view ${quoteName(view)} as select r.key as _key${members.join('')},
    r.position % ${POSITIONS_PER_TENANT} as _sequence,
    (select strftime('%Y-%m-%dT%H:%M:%fZ', c.committed_at / 1000.0, 'unixepoch') from tidemark_commits c where c.commit_id = l.commit_id) as _committed_at,
    l.record as _record
  from tidemark_rows r join tidemark_log l on l.position = r.position
  where r.tenant_id = ${tenantId} and r.database_id = ${databaseId} and r.status = 0`
}
