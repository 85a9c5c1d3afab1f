import {
  createLogPlans,
  runNative,
  type DatabaseInfo,
  type Row,
  type Store,
  type RowVersion,
  type VersionRange,
} from 'tidemark/store'
import type { Transaction } from './connection.ts'
import type { TenantSession } from './sql.ts'
import { readTables, tableOf } from './table.ts'

/** Reads of committed rows and log entries. */

/** The kit's log plans, with this store's version reader. */
export function createTenantLogPlans(session: TenantSession) {
  return createLogPlans((database, from, range) =>
    runNative((transaction: Transaction) => readVersions(session, transaction, database, { from, range })),
  )
}

type VersionValues = [
  sequence: string,
  created: string,
  key: string,
  extra: string | null,
  cursor: string | null,
  upstreamAt: string | null,
]

async function readVersions(
  session: TenantSession,
  transaction: Transaction,
  database: string,
  { from, range }: { from: 'table' | 'history'; range: VersionRange },
): Promise<RowVersion[]> {
  const table = tableOf(await readTables(session, transaction, [database]), database)
  const [where, values] =
    'key' in range
      ? ['_key = ?', [range.key]]
      : ['_sequence > ? and _sequence <= ? order by _sequence limit ?', [range.after, range.until, range.limit]]
  const found = await transaction.textRows(
    `select _sequence, _created_sequence, _key, _extra, _cursor, _upstream_at${table.selected} from ${from === 'table' ? table.name : table.history} where ${where}`,
    ...values,
  )
  return found.map((row) => {
    const [sequence, created, key, extra, cursor, upstreamAt] = row as VersionValues
    return {
      sequence: Number(sequence),
      database,
      key,
      action: created === sequence ? 'created' : 'updated',
      cursor,
      upstreamAt,
      text: () => table.decode(Number(sequence), extra, row, 6),
    }
  })
}

export function rows(
  session: TenantSession,
  { database, after = '', limit, bytesMax = Infinity }: Parameters<Store['rows']>[0],
): Promise<Row[]> {
  return selectRows(session, database, { where: '_key > ? order by _key limit ?', values: [after, limit], bytesMax })
}

export async function row(session: TenantSession, database: string, key: string): Promise<Row | null> {
  return (await selectRows(session, database, { where: '_key = ?', values: [key], bytesMax: Infinity }))[0] ?? null
}

function selectRows(
  session: TenantSession,
  database: string,
  { where, values, bytesMax }: { where: string; values: unknown[]; bytesMax: number },
): Promise<Row[]> {
  return session.connection.read(async (transaction) => {
    const table = (await readTables(session, transaction, [database])).get(database)
    if (table === undefined) return []
    const found = await transaction.textRows(
      `select _sequence, _key, _extra, _upstream_at, unix_timestamp(_synced_at)${table.selected} from ${table.name} where ${where}`,
      ...values,
    )
    const taken: Row[] = []
    let bytes = 0
    for (const values of found) {
      if (taken.length > 0 && bytes >= bytesMax) break
      const [sequence, key, extra, upstreamAt, syncedAt] = values as [
        string,
        string,
        string | null,
        string | null,
        string,
      ]
      const text = table.decode(Number(sequence), extra, values, 5)
      taken.push({
        database,
        key,
        text,
        sequence: Number(sequence),
        committedAt: Math.round(Number(syncedAt) * 1_000),
        upstreamAt,
      })
      bytes += Buffer.byteLength(text)
    }
    return taken
  })
}

export function databases(session: TenantSession): Promise<DatabaseInfo[]> {
  return session.connection.read(async (transaction) => {
    const infos: DatabaseInfo[] = []
    for (const { database, name, history, memberKinds } of (await readTables(session, transaction)).values()) {
      const { rows: count } = await transaction.one<{ rows: number }>(`select count(*) as "rows" from ${name}`)
      infos.push({
        name: database,
        table: name.slice(1, -1),
        history: history.slice(1, -1),
        columns: memberKinds,
        rows: count,
      })
    }
    return infos
  })
}
