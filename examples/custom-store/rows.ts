import {
  parseJson,
  type Commit,
  type DriftCollector,
  type JsonObject,
  type Landing,
  type LandingPlan,
  type RowStatus,
  type RowWrite,
  type StoredRow,
} from 'tidemark/store'
import type { Parameter, Transaction } from './connection.ts'
import type { TenantSession } from './sql.ts'
import { SYSTEM_COLUMNS, required, type Table } from './table.ts'

export type UpsertLanding = Extract<Landing, { type: 'upsert' }>

export interface FoundRows {
  find(landing: { readonly database: string; readonly key: string }): StoredRow | undefined
  /** The record of a live row as JSON text. */
  textOf(landing: { readonly database: string; readonly key: string }): string
}

const KEYS_MAX = 1_000

/** Reads the stored rows of a commit's keys: the current row, or else the tombstone. */
export async function findRows(
  { tenant }: TenantSession,
  transaction: Transaction,
  tables: ReadonlyMap<string, Table>,
  commit: Commit,
): Promise<FoundRows> {
  const found = new Map<string, Map<string, StoredRow>>()
  const texts = new Map<string, Map<string, () => string>>()
  for (const table of tables.values()) {
    const keys = [...commit.landings, ...commit.quarantined].flatMap(({ database, key }) =>
      database === table.database && key !== null ? [key] : [],
    )
    const [rows, records] = [new Map<string, StoredRow>(), new Map<string, () => string>()]
    for (let from = 0; from < keys.length; from += KEYS_MAX) {
      const some = keys.slice(from, from + KEYS_MAX)
      const of = [tenant, table.id, some]
      const contests = new Map(
        (
          await transaction.all<{ key: string; cycle: number }>(
            'select "key", cycle_id as cycle from tidemark_contests where tenant_id = ? and database_id = ? and "key" in (?)',
            ...of,
          )
        ).map(({ key, cycle }) => [key, cycle]),
      )
      for (const row of await transaction.all<StoredRow & { key: string }>(
        `select "key", sequence, status, null as hash, upstream_at as upstreamAt, writer_id as writer, owner_id as owner from tidemark_tombstones
         where tenant_id = ? and database_id = ? and "key" in (?)`,
        ...of,
      ))
        rows.set(row.key, { ...row, contestedBy: contests.get(row.key) ?? null })
      for (const values of await transaction.textRows(
        `select _key, _sequence, _hash, _upstream_at, _writer, _owner, _extra${table.selected} from ${table.name} where _key in (?)`,
        some,
      )) {
        const [key, sequence, hash, upstreamAt, writer, owner, extra] = values as [
          string,
          string,
          string,
          string | null,
          string,
          string,
          string | null,
        ]
        rows.set(key, {
          sequence: Number(sequence),
          status: 'live',
          hash,
          upstreamAt,
          writer: Number(writer),
          owner: Number(owner),
          contestedBy: contests.get(key) ?? null,
        })
        records.set(key, () => table.decode(Number(sequence), extra, values, 7))
      }
    }
    found.set(table.database, rows)
    texts.set(table.database, records)
  }
  return {
    find: ({ database, key }) => found.get(database)?.get(key),
    textOf: ({ database, key }) => required(texts.get(database)?.get(key), `The row ${key} of ${database}`)(),
  }
}

export interface WriteFacts {
  readonly driftCollector: DriftCollector
  readonly writer: number
  readonly committedAt: number
  ownerIn(database: string): number
}

/** Executes a plan: the table gets the new versions, its history the replaced ones. */
export async function writeRows(
  session: TenantSession,
  transaction: Transaction,
  plan: LandingPlan,
  tables: ReadonlyMap<string, Table>,
  facts: WriteFacts,
): Promise<void> {
  for (const table of tables.values()) {
    const isHere = ({ landing }: { landing: Landing }): boolean => landing.database === table.database
    const writes = plan.writes.filter(isHere)
    const upserts = writes.filter(
      (write): write is RowWrite & { landing: UpsertLanding } => write.landing.type === 'upsert',
    )
    await insertRows(
      transaction,
      table,
      upserts.filter(({ action }) => action === 'created'),
      facts,
      '',
    )
    const updates = upserts.filter(({ action }) => action === 'updated')
    await archiveVersions(
      transaction,
      table,
      updates.map(({ landing: { key }, sequence }) => ({ key, sequence })),
      facts.committedAt,
    )
    const columns = [
      '_sequence',
      '_hash',
      '_upstream_at',
      '_synced_at',
      '_cursor',
      '_writer',
      '_extra',
      ...table.members,
    ]
    await insertRows(
      transaction,
      table,
      updates,
      facts,
      `on duplicate key update ${columns.map((name) => `${name} = values(${name})`).join(', ')}`,
    )
    await deleteRows(
      session,
      transaction,
      table,
      writes
        .filter(({ landing }) => landing.type === 'delete')
        .map(({ landing, action, sequence, row }) => ({
          key: landing.key,
          sequence,
          isLogged: action !== null,
          isLive: row?.status === 'live',
          status: 'deleted',
          loggedAt: landing.upstreamAt,
          upstreamAt: landing.upstreamAt ?? row?.upstreamAt ?? null,
          writer: facts.writer,
          owner: row?.status === 'live' ? row.owner : facts.ownerIn(table.database),
        })),
      facts.committedAt,
    )
    await deleteKeys(
      session,
      transaction,
      'tombstones',
      table,
      upserts.filter(({ row }) => row !== undefined && row.status !== 'live'),
    )
    for (const { landing, upstreamAt } of plan.touches.filter(isHere))
      await touchRow(session, transaction, table, landing, upstreamAt)
    const settled = [
      ...writes.filter(({ row }) => (row?.contestedBy ?? null) !== null),
      ...plan.touches.filter(isHere),
      ...plan.contests.filter((contest) => isHere(contest) && contest.contestedBy === null),
    ]
    await deleteKeys(session, transaction, 'contests', table, settled)
    await transaction.insert(
      'insert into tidemark_contests (tenant_id, database_id, "key", cycle_id) values',
      plan.contests
        .filter((contest) => isHere(contest) && contest.contestedBy !== null)
        .map(({ landing, contestedBy }) => [session.tenant, table.id, landing.key, contestedBy]),
      { tuple: '(?,?,?,?)', tail: 'on duplicate key update cycle_id = values(cycle_id)' },
    )
  }
}

async function insertRows(
  transaction: Transaction,
  table: Table,
  writes: readonly (RowWrite & { landing: UpsertLanding })[],
  { driftCollector, writer, committedAt, ownerIn }: WriteFacts,
  tail: string,
): Promise<void> {
  const syncedAt = toDatetime(committedAt)
  const owner = ownerIn(table.database)
  const rows = writes.map(({ landing, sequence, row }): Parameter[] => {
    const record = parseJson(landing.text) as JsonObject
    const encoded = table.encode(record)
    driftCollector.recordDrift(table, record, encoded, sequence)
    // A change without a time keeps the row's time: older versions stay older.
    return [
      landing.key,
      sequence,
      sequence,
      landing.hash,
      landing.upstreamAt ?? row?.upstreamAt ?? null,
      syncedAt,
      landing.cursor,
      writer,
      owner,
      encoded.extra,
      ...table.bind(encoded),
    ]
  })
  const columns = [...SYSTEM_COLUMNS, ...table.members]
  await transaction.insert(`insert into ${table.name} (${columns.join(', ')}) values`, rows, {
    tuple: `(${columns.map(() => '?').join(',')})`,
    tail,
  })
}

/** Copies current rows to the history, as they are before the write of the sequence. */
async function archiveVersions(
  transaction: Transaction,
  table: Table,
  versions: ReadonlyArray<{ key: string; sequence: number }>,
  committedAt: number,
): Promise<void> {
  const columns = [...SYSTEM_COLUMNS, ...table.members]
  await transaction.insert(
    `insert into ${table.history} (_until_sequence, _until_at, ${columns.join(', ')}) select v.until, '${toDatetime(committedAt)}', ${columns.map((name) => `t.${name}`).join(', ')} from (`,
    versions.map(({ key, sequence }) => [Buffer.from(key), sequence]),
    {
      tuple: 'select ? as k, ? as until',
      separator: ' union all ',
      tail: `) v straight_join ${table.name} t on t._key = v.k`,
    },
  )
}

export interface DeletedRow {
  readonly key: string
  readonly sequence: number
  /** True when the log gets an entry; the tombstone of an unknown key has none. */
  readonly isLogged: boolean
  readonly isLive: boolean
  readonly status: RowStatus
  /** The source's time of the deletion itself. */
  readonly loggedAt: string | null
  readonly upstreamAt: string | null
  readonly writer: number
  readonly owner: number
}

export async function deleteRows(
  { tenant }: TenantSession,
  transaction: Transaction,
  table: Table,
  rows: readonly DeletedRow[],
  committedAt: number,
): Promise<void> {
  const live = rows.filter(({ isLive }) => isLive)
  await archiveVersions(transaction, table, live, committedAt)
  await transaction.insert(
    `delete from ${table.name} where _key in (`,
    live.map(({ key }) => [key]),
    { tuple: '?', tail: ')' },
  )
  await transaction.insert(
    'insert into tidemark_deletions (tenant_id, sequence, database_id, "key", upstream_at) values',
    rows
      .filter(({ isLogged }) => isLogged)
      .map(({ key, sequence, loggedAt }) => [tenant, sequence, table.id, key, loggedAt]),
    { tuple: '(?,?,?,?,?)' },
  )
  await transaction.insert(
    'insert into tidemark_tombstones (tenant_id, database_id, "key", sequence, status, upstream_at, writer_id, owner_id) values',
    rows.map(({ key, sequence, status, upstreamAt, writer, owner }) => [
      tenant,
      table.id,
      key,
      sequence,
      status,
      upstreamAt,
      writer,
      owner,
    ]),
    {
      tuple: '(?,?,?,?,?,?,?,?)',
      tail: `on duplicate key update sequence = values(sequence), status = values(status), upstream_at = values(upstream_at), writer_id = values(writer_id), owner_id = values(owner_id)`,
    },
  )
}

async function touchRow(
  { tenant }: TenantSession,
  transaction: Transaction,
  table: Table,
  landing: Landing,
  upstreamAt: string | null,
): Promise<void> {
  if (landing.type === 'upsert')
    await transaction.run(
      `update ${table.name} set _upstream_at = ?, _hash = ? where _key = ?`,
      upstreamAt,
      landing.hash,
      landing.key,
    )
  else {
    await transaction.run(
      'update tidemark_tombstones set upstream_at = ?, status = \'deleted\' where tenant_id = ? and database_id = ? and "key" = ?',
      upstreamAt,
      tenant,
      table.id,
      landing.key,
    )
  }
}

export async function deleteKeys(
  { tenant }: TenantSession,
  transaction: Transaction,
  from: 'tombstones' | 'contests',
  { id }: Table,
  items: ReadonlyArray<{ readonly landing: { readonly key: string } }>,
): Promise<void> {
  const head = `delete from tidemark_${from} where tenant_id = ${quoteBytes(tenant)} and database_id = ${id} and "key" in (`
  await transaction.insert(
    head,
    items.map(({ landing }) => [landing.key]),
    { tuple: '?', tail: ')' },
  )
}

/** Written as bytes, whatever characters it has. */
function quoteBytes(text: string): string {
  return `x'${Buffer.from(text).toString('hex')}'`
}

export function toDatetime(ms: number): string {
  return new Date(ms).toISOString().slice(0, 23).replace('T', ' ')
}
