import { SyncError, type Commit, type JsonObject, type JsonValue, type Landing } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import type { RowStatus, StoredRow } from '../kit/resolve-landing.ts'
import type { LandingFacts, LandingPlan, RowWrite } from '../kit/plan-landing.ts'
import { DELETED_AT, mayHaveDeletedRows } from '../kit/tables/delete-state.ts'
import type { ColumnValue, EncodedRecord } from '../kit/tables/encode-record.ts'
import type { DriftCollector } from '../kit/tables/schema-drift.ts'
import { replaceNul } from '../kit/replace-nul.ts'
import { bigintArray, textArray } from './binary-arrays.ts'
import { formatArrayText } from './array-text.ts'
import { binaryArray, itemSqlTypeOf, type ScalarSqlType, type SqlType } from './binary-values.ts'
import type { Transaction } from './connection.ts'
import { encodeCopyData, CopyWriter } from './copy.ts'
import { findRange, findUnchanged } from './find-range.ts'
import {
  NO_ROWS,
  toUnchangedRow,
  UnchangedRows,
  type FoundTableRows,
  type PageKind,
  type RowLookup,
} from './found-rows.ts'
import { checkDeletable } from './delete-mode.ts'
import { insertMany } from './insert-many.ts'
import { growTable, SYSTEM_COLUMNS, SYSTEM_COLUMN_TYPES, toInstant, tableOf, type Table } from './table.ts'
import { required } from '../../values/required.ts'

export const STATUS_CODES: Record<RowStatus, number> = { live: 0, deleted: 1, swept: 2 }
const STATUS_BY_CODE: readonly RowStatus[] = ['live', 'deleted', 'swept']

/** Keys given as an array parameter. */
export const keysFromParameter = (parameter: number): string =>
  `(select unnest($${parameter}::text[]) collate "C" as key)`

// ── reads
// ────────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The stored rows of a page's keys, all read before the first one is resolved. */
export interface FoundRows {
  readonly find: LandingFacts['find']
  /** The sequences of all rows, when every landing is the same as its row. */
  readonly unchanged: number[] | null
  readonly pageKinds: ReadonlyMap<string, PageKind>
}

/** Collects the lookups of a commit, by database. */
export function collectRowLookups({ landings, quarantined, forceLogSince }: Commit): Map<string, RowLookup> {
  const wanted = new Map<string, RowLookup>()
  const add = (database: string, key: string, hash: string | null, time: string | null): void => {
    let own = wanted.get(database)
    if (own === undefined) wanted.set(database, (own = { keys: [], hashes: [], times: [] }))
    own.keys.push(key)
    own.hashes.push(hash)
    own.times.push(time)
  }
  // A commit with `forceLogSince` also needs the writer of unchanged rows.
  const isBrief = forceLogSince === undefined
  for (const landing of landings)
    add(landing.database, landing.key, landing.type === 'upsert' && isBrief ? landing.hash : null, landing.upstreamAt)
  for (const { database, key } of quarantined) if (key !== null) add(database, key, null, null)
  return wanted
}

const DATABASE_CONDITION = 'tenant_id = $1 and database_id = $2'

/** A wrong guess costs one round trip: the rows are then looked up one by one. */
export async function findRows(
  transaction: Transaction,
  table: Pick<Table, 'id' | 'live'>,
  wanted: RowLookup,
  owner: string,
  guess: PageKind = 'mixed',
): Promise<FoundTableRows> {
  if (guess === 'new' && (await isKeyRangeEmpty(transaction, table, wanted.keys))) return NO_ROWS
  const same = guess === 'unchanged' ? await findUnchanged(transaction, table, wanted, owner) : null
  const found = same ?? (guess === 'scattered' ? null : await findRange(transaction, table, wanted, owner))
  return found ?? findEach(transaction, table, wanted, owner)
}

/** True when no row and no tombstone lies between the smallest and the largest key. */
async function isKeyRangeEmpty(
  transaction: Transaction,
  { id, live }: Pick<Table, 'id' | 'live'>,
  keys: readonly string[],
): Promise<boolean> {
  const { isEmpty } = await transaction.one<{ isEmpty: boolean }>(
    `with span as materialized (select min(key) as low, max(key) as high from ${keysFromParameter(3)} w)
     select coalesce((select _key from ${live} l where _key >= (select low from span) order by _key limit 1) > (select high from span), true)
       and coalesce((select key from tidemark.tombstones where ${DATABASE_CONDITION} and key >= (select low from span) order by key limit 1) > (select high from span), true) as "isEmpty"`,
    transaction.tenant,
    id,
    textArray(keys),
  )
  return isEmpty
}

function toNumbers(array: string): number[] {
  return array.slice(1, -1).split(',').map(Number)
}

/**
 * Sends keys and hashes, and gets back only the sequence of rows that are the same: most of a delta or a listing is
 * unchanged.
 *
 * The statement leaves the planner no choice: each row is found through a lateral probe of its whole key. When no row
 * lies between the smallest and the largest key of the page, nothing is looked up.
 */
async function findEach(
  transaction: Transaction,
  table: Pick<Table, 'id' | 'live'>,
  { keys, hashes, times }: RowLookup,
  owner: string,
): Promise<FoundTableRows> {
  const [summary, ...others] = await transaction.textRows(
    `with wanted as materialized (
       select unnest($3::text[]) collate "C" as key, unnest($4::text[]) as hash, unnest($5::timestamptz[]) as at, generate_series(1, $7::integer) as n
     ),
     span as materialized (select min(key) as low, max(key) as high from wanted),
     there as materialized (
       select coalesce((select _key from ${table.live} l where _key >= (select low from span) order by _key limit 1) <= (select high from span), false) as rows,
         coalesce((select key from tidemark.tombstones where ${DATABASE_CONDITION} and key >= (select low from span) order by key limit 1) <= (select high from span), false) as tombstones,
         exists (select from tidemark.contests where ${DATABASE_CONDITION}) as contests,
         (select owner_id from tidemark.owners where tenant_id = $1 and name = $6) as owner
     ),
     found as materialized (
       select w.n, coalesce(r._sequence, t.sequence) as sequence, coalesce(t.status, ${STATUS_CODES.live}) as status, r._hash as hash,
         coalesce(r._upstream_at, t.upstream_at) as at, coalesce(r._writer, t.writer_id) as writer, coalesce(r._owner, t.owner_id) as owner, c.cycle_id as contested,
         coalesce(r._hash = w.hash and r._upstream_at is not distinct from w.at and r._owner = (select owner from there) and c.cycle_id is null, false) as same
       from wanted w
       left join lateral (
         select _sequence, _hash, _upstream_at, _writer, _owner from ${table.live} l where _key = w.key and (select rows from there) limit 1
       ) r on true
       left join lateral (
         select sequence, status, upstream_at, writer_id, owner_id from tidemark.tombstones
         where ${DATABASE_CONDITION} and key = w.key and r._sequence is null and (select tombstones from there) limit 1
       ) t on true
       left join lateral (
         select cycle_id from tidemark.contests where ${DATABASE_CONDITION} and key = w.key and (select contests from there) limit 1
       ) c on true
     )
     select array_agg(case when same then sequence else 0 end)::text, (select owner from there)::text, null, null, null, null, null, null from found
     union all
     select n::text, sequence::text, status::text, hash, at::text, writer::text, owner::text, contested::text from found where not same and sequence is not null`,
    transaction.tenant,
    table.id,
    textArray(keys),
    textArray(hashes),
    binaryArray('timestamptz', times),
    owner,
    keys.length,
  )
  const [sequenceArray, commitOwner] = required(summary, 'The summary of the found rows') as [
    sequences: string,
    owner: string | null,
  ]
  const sequences = toNumbers(sequenceArray)
  if (others.length === 0 && !sequences.includes(0))
    return new UnchangedRows(keys, hashes, times, sequences, Number(commitOwner))
  const rows = new Map<string, StoredRow>()
  for (const [at, key] of keys.entries()) {
    const sequence = sequences[at] ?? 0
    if (sequence > 0)
      rows.set(key, toUnchangedRow(sequence, hashes[at] ?? null, times[at] ?? null, Number(commitOwner)))
  }
  for (const row of others) {
    const [n, sequence, status, hash, at, writer, ownerId, contested] = row as FoundRowValues
    rows.set(required(keys[Number(n) - 1], 'The key of a found row'), {
      sequence: Number(sequence),
      status: required(STATUS_BY_CODE[Number(status)], 'A known row status'),
      hash,
      upstreamAt: toInstant(at),
      writer: Number(writer),
      owner: Number(ownerId),
      contestedBy: contested === null ? null : Number(contested),
    })
  }
  return rows.size === 0 ? NO_ROWS : { kind: 'scattered', get: (key) => rows.get(key), unchanged: null }
}

type FoundRowValues = [
  n: string,
  sequence: string,
  status: string,
  hash: string | null,
  upstreamAt: string | null,
  writer: string,
  owner: string,
  contestedBy: string | null,
]

/** Reads the stored records of rows whose hash differs. */
export async function readStoredTexts(
  transaction: Transaction,
  commit: Commit,
  tables: ReadonlyMap<string, Table>,
  find: LandingFacts['find'],
): Promise<(landing: Landing) => string> {
  const wanted = new Map<string, string[]>()
  for (const landing of commit.landings) {
    const row = find(landing)
    if (landing.type !== 'upsert' || row?.status !== 'live' || row.hash === landing.hash) continue
    const keys = wanted.get(landing.database)
    if (keys === undefined) wanted.set(landing.database, [landing.key])
    else keys.push(landing.key)
  }
  const found = new Map(
    await Promise.all(
      [...wanted].map(async ([database, keys]) => {
        const { name, members } = tableOf(tables, database)
        const rows = await transaction.textRows(
          `select r.* from ${keysFromParameter(1)} w cross join lateral (
         select _key, _sequence, _extra${members.map((member) => `, ${member.name}`).join('')} from ${name} where _key = w.key limit 1
       ) r`,
          textArray(keys),
        )
        return [database, new Map(rows.map((row) => [row[0], row]))] as const
      }),
    ),
  )
  return ({ database, key }) => {
    const row = found.get(database)?.get(key)
    if (row === undefined)
      throw new SyncError('INTERNAL', `The row ${key} of ${database} disappeared during one transaction.`)
    return tableOf(tables, database).decode(Number(row[1]), row[2] ?? null, row.slice(3))
  }
}

// ── writes
// ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface WriteFacts {
  readonly driftCollector: DriftCollector
  readonly writer: number
  readonly committedAt: number
  ownerIn(database: string): number
  /** See `applyDeleteModes`. */
  readonly lockedDatabases: ReadonlySet<string>
  readonly find: LandingFacts['find']
}

/** Rows per statement: the next batch is encoded while the server writes the previous one. */
const ROWS_PER_BATCH = 500

/** Executes the plan's writes, and updates `tables` with added columns. */
export async function writeRows(
  transaction: Transaction,
  { writes }: LandingPlan,
  tables: Map<string, Table>,
  facts: WriteFacts,
): Promise<void> {
  for (let from = 0; from < writes.length;) {
    const { database } = required(writes[from], 'The first write of a batch').landing
    let end = from + 1
    while (end - from < ROWS_PER_BATCH && writes[end]?.landing.database === database) end++
    const table = await writeBatch(transaction, tableOf(tables, database), writes.slice(from, end), facts, () =>
      recordsFrom(writes.slice(from), database),
    )
    tables.set(database, table)
    from = end
  }
}

type UpsertLanding = Extract<Landing, { type: 'upsert' }>

interface UpsertWrite {
  readonly write: RowWrite
  readonly landing: UpsertLanding
  readonly record: JsonObject
  readonly encoded: EncodedRecord
}

/** Writes rows of one database, in sequence order: an added column counts from the first of them on. */
async function writeBatch(
  transaction: Transaction,
  table: Table,
  writes: readonly RowWrite[],
  facts: WriteFacts,
  records: () => JsonObject[],
): Promise<Table> {
  let upserts: UpsertWrite[] = []
  let needsColumns = false
  for (const write of writes) {
    const { landing } = write
    if (landing.type === 'delete') continue
    const record = parseJson(landing.text) as JsonObject
    const encoded = table.encode(record, landing.text)
    needsColumns ||= encoded.needsColumns
    upserts.push({ write, landing, record, encoded })
  }
  const [first] = upserts
  if (first !== undefined && needsColumns && facts.driftCollector.mayAddColumns(table)) {
    const grown = await growTable(transaction, table, records(), first.write.sequence, facts.driftCollector)
    if (grown !== table)
      upserts = upserts.map((upsert) => ({ ...upsert, encoded: grown.encode(upsert.record, upsert.landing.text) }))
    table = grown
  }
  for (const { record, write, encoded } of upserts) {
    if (encoded.misfits !== null || encoded.needsColumns)
      facts.driftCollector.recordDrift(table, record, encoded, write.sequence)
  }
  const kept = await findSoftDeletedRows(transaction, table, upserts)
  reviveRows(transaction, table, upserts, kept, facts)
  insertRows(transaction, table, upserts, kept, facts)
  updateRows(transaction, table, upserts, facts)
  if (upserts.length < writes.length)
    deleteRows(
      transaction,
      table,
      writes.filter(({ landing }) => landing.type === 'delete'),
      facts,
    )
  deleteContests(
    transaction,
    table,
    writes.filter(({ row }) => row?.contestedBy != null).map(({ landing }) => landing.key),
  )
  return table
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
  if (revived.length > 0) updateRowValues(transaction, table, { upserts: revived, extraSets }, facts)
}

/** Inserts rows that are new or return; the commit's owner owns them. */
function insertRows(
  transaction: Transaction,
  table: Table,
  upserts: readonly UpsertWrite[],
  kept: ReadonlySet<string>,
  facts: WriteFacts,
): void {
  let writer: CopyWriter | null = null
  const returned: string[] = []
  const owner = facts.ownerIn(table.database)
  const { members } = table
  for (const { write, landing, encoded } of upserts) {
    const { sequence, row } = write
    if (row?.status === 'live') continue
    if (row !== undefined) returned.push(landing.key)
    if (kept.has(landing.key)) continue
    const { values, extra } = encoded
    writer ??= new CopyWriter()
    // In the order of `SYSTEM_COLUMNS`.
    writer.int16(SYSTEM_COLUMNS.length + members.length)
    writer.value('text', landing.key)
    writer.value('bigint', sequence)
    writer.value('bigint', sequence)
    writer.value('text', landing.hash)
    writer.value('timestamptz', upstreamAtOf(write))
    writer.value('timestamptz', facts.committedAt)
    writer.value('text', landing.cursor === null ? null : replaceNul(landing.cursor))
    writer.value('integer', facts.writer)
    writer.value('integer', owner)
    writer.value('json', extra)
    for (const member of members) writer.value(member.type, values[member.at] ?? null)
  }
  if (writer !== null) transaction.copy(copySql(table), writer.end())
  if (returned.length === 0) return
  transaction.send(
    `delete from tidemark.tombstones t using ${keysFromParameter(3)} w where t.tenant_id = $1 and t.database_id = $2 and t.key = w.key`,
    transaction.tenant,
    table.id,
    textArray(returned),
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
 * Archives the replaced version, then updates the row in place instead of deleting and reinserting it, so that the
 * user's own columns, and references to the row, stay.
 */
function updateRows(transaction: Transaction, table: Table, upserts: readonly UpsertWrite[], facts: WriteFacts): void {
  const updates = upserts.filter(({ write }) => write.row?.status === 'live')
  if (updates.length === 0) return
  archiveVersions(
    transaction,
    table,
    updates.map(({ write }) => write),
    facts.committedAt,
  )
  updateRowValues(transaction, table, { upserts: updates, extraSets: '' }, facts)
}

interface RowUpdate {
  readonly upserts: readonly UpsertWrite[]
  /** Additional SET clauses; `w.c0` is the sequence. */
  readonly extraSets: string
}

function updateRowValues(
  transaction: Transaction,
  table: Table,
  { upserts, extraSets }: RowUpdate,
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
    `update ${table.name} t set _synced_at = to_timestamp($1::bigint / 1000.0), _writer = $2, ${sets.map(({ name }, n) => `${name} = w.c${n}`).join(', ')}${extraSets}
     from (select unnest($3::text[]) collate "C" as key, ${sets.map(({ type, cast = '' }, n) => `unnest($${n + 4}::${type}[])${cast} as c${n}`).join(', ')}) w
     where t._key = w.key`,
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

/** Copies the current versions of these rows to the history. */
function archiveVersions(
  transaction: Transaction,
  { name, history, members }: Table,
  writes: readonly RowWrite[],
  committedAt: number,
): void {
  const columns = [...SYSTEM_COLUMNS, ...members.map((member) => member.name)]
  transaction.send(
    `insert into ${history} (_until_sequence, _until_at, ${columns.join(', ')})
     select w.until, to_timestamp($1::bigint / 1000.0), ${columns.map((column) => `t.${column}`).join(', ')}
     from (select unnest($2::text[]) collate "C" as key, unnest($3::bigint[]) as until) w join ${name} t on t._key = w.key`,
    committedAt,
    textArray(writes.map(({ landing }) => landing.key)),
    bigintArray(writes.map(({ sequence }) => sequence)),
  )
}

/** Archives live rows, and writes a tombstone for every deleted key, including unknown ones. */
function deleteRows(transaction: Transaction, table: Table, writes: readonly RowWrite[], facts: WriteFacts): void {
  if (writes.length === 0) return
  const live = writes.filter(({ row }) => row?.status === 'live')
  if (live.length > 0) {
    archiveVersions(transaction, table, live, facts.committedAt)
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
