import { SyncError, type Column, type Commit, type CommitOutcome, type JsonObject } from '../../contract/index.ts'
import { createAllowDeletesAuditEntry, createDriftAuditEntry } from '../kit/audit-entries.ts'
import { parseJson, equalsJson } from '../../values/json.ts'
import * as checkpoint from '../kit/checkpoint.ts'
import {
  createEmptyCounts,
  mayBeUndone,
  planLanding,
  type LandingFacts,
  type LandingPlan,
} from '../kit/plan-landing.ts'
import {
  databasesWithoutColumns,
  DriftCollector,
  refuseRecords,
  quarantineRefused,
} from '../kit/tables/schema-drift.ts'
import { KEY_CONSTRAINT_PREFIX } from '../kit/tables/key-columns.ts'
import { quarantineIdentityOf } from '../kit/quarantine-identity.ts'
import { writePartitions as writePartitionSteps } from '../kit/roles/partitions.ts'
import { findSealingKeyId } from '../kit/sealed-texts.ts'
import { toCheckpoint, toInflight, type RegistryEntry } from '../kit/registry-rows.ts'
import { replaceNul } from '../kit/replace-nul.ts'
import type { UpsertLanding } from '../kit/write-batch.ts'
import { beginCommit, type CommitBasis } from './begin-commit.ts'
import { bigintArray, textArray } from './binary-arrays.ts'
import {
  UNDEFINED_COLUMN,
  rollback,
  UNDEFINED_TABLE,
  type CachedTable,
  type Rollback,
  type TenantSession,
  type Transaction,
} from './connection.ts'
import { listLoggedRanges } from './commits.ts'
import { listChangedDeleteModes, applyDeleteModes } from './delete-mode.ts'
import { sqlStateOf } from './errors.ts'
import { collectRowLookups, findRows } from './find-rows.ts'
import type { FoundRows } from './found-rows.ts'
import { insertMany } from './insert-many.ts'
import { recordPage, type PageRecord } from './record-page.ts'
import { findLeasedEntry, lockTenant, writeAudit } from './registry.ts'
import { writeContests, readContestFacts, touchRows, writeRows, type WriteFacts } from './rows.ts'
import { recordSightings, sweep, type Owner } from './sweep.ts'
import { setHistoryDays } from './history-retention.ts'
import { bindPipelinedSteps, bindSteps } from './sql.ts'
import { ensureTables, tableOf, type Table } from './table.ts'
import { applyShapes, refuseKeys } from './table-shape.ts'
import { required } from '../../values/required.ts'

const lockBackfill = bindSteps(checkpoint.lockBackfill)
const updateCheckpoint = bindPipelinedSteps(checkpoint.updateCheckpoint)
const writePartitions = bindPipelinedSteps(writePartitionSteps)

/** The only write path for records. Everything below runs in one transaction; a refusal rolls it back. */
export async function commit(session: TenantSession, commit: Commit): Promise<CommitOutcome> {
  try {
    return await tryCommit(session, commit)
  } catch (error) {
    // An erasure may have dropped a cached table; a new table of the same name may have other columns.
    if (isTableStale(error) && session.connection.clearCachedTables(session.tenant)) return tryCommit(session, commit)
    if (isKeyViolation(error) && (await dropViolatedKeys(session, commit))) return tryCommit(session, commit)
    throw error
  }
}

/**
 * A record that violates a declared key lands like any other: the key is no longer enforced, and that is reported as
 * drift.
 */
async function dropViolatedKeys(session: TenantSession, commit: Commit): Promise<boolean> {
  return session.connection.write(session.tenant, async (transaction) => {
    await lockTenant(transaction)
    const entry = await findLeasedEntry(transaction, commit.lease)
    if (entry === null) return false
    const drift = await refuseKeys(transaction, databasesOf(commit))
    if (drift.length > 0) writeAudit(transaction, entry, createDriftAuditEntry(entry.version, commit.at, drift))
    return drift.length > 0
  })
}

const NOT_NULL_VIOLATION = '23502'
const UNIQUE_VIOLATION = '23505'

/** Ignores violations of the user's own indexes. */
function isKeyViolation(error: unknown): boolean {
  if (!(error instanceof SyncError)) return false
  const state = sqlStateOf(error.cause)
  const { constraint = '' } = (error.cause ?? {}) as { constraint?: string }
  return state === NOT_NULL_VIOLATION || (state === UNIQUE_VIOLATION && constraint.startsWith(KEY_CONSTRAINT_PREFIX))
}

function isTableStale(error: unknown): boolean {
  return error instanceof SyncError && [UNDEFINED_TABLE, UNDEFINED_COLUMN].includes(sqlStateOf(error.cause) ?? '')
}

function tryCommit(session: TenantSession, commit: Commit): Promise<CommitOutcome> {
  return session.connection.write(session.tenant, async (transaction) => {
    const backfill = await lockBackfill(transaction, commit)
    const names = databasesOf(commit)
    const cached = session.connection.cachedTables(session.tenant)
    // Concurrent commits of this process change the cache, so the lookups are compared with this copy.
    const guessed = new Map(cached)
    // Pipelined and answered in this order: the lookups see what the last holders of the locks committed.
    const [basis, early] = await Promise.all([
      beginCommit(transaction, commit.lease, [...names, ...Object.keys(commit.deletes ?? {})]),
      lookUpRows(transaction, commit, guessed),
    ])
    const { entry, known } = basis
    if (entry === null) return rollback<CommitOutcome>({ kind: 'fenced' })
    if (!checkpoint.matchesCheckpoint(entry, commit))
      return rollback<CommitOutcome>({ kind: 'conflict', checkpoint: toCheckpoint(entry) })
    basis.checkSealingKey(findSealingKeyId(commit))
    const isStale = names.some((name) => {
      const [now, before] = [known.get(name), guessed.get(name)]
      return now?.id !== before?.id || now?.live !== before?.live || now?.members !== before?.members
    })
    const rows = isStale ? await lookUpRows(transaction, commit, known) : early
    for (const name of names) {
      const table = known.get(name)
      if (table === undefined) cached.delete(name)
      else {
        const { id, live, members } = table
        cached.set(name, { id, name: table.name, live, members, lastPageKind: rows.pageKinds.get(name) ?? 'mixed' })
      }
    }
    return land(transaction, commit, { ...basis, entry, backfill, rows })
  })
}

function databasesOf(commit: Commit): string[] {
  return [
    ...new Set([
      ...Object.keys(commit.columns),
      ...(commit.shapes ?? []).map(({ database }) => database),
      ...commit.landings.map(({ database }) => database),
      ...commit.quarantined.map(({ database }) => database),
    ]),
  ]
}

async function lookUpRows(
  transaction: Transaction,
  commit: Commit,
  tables: ReadonlyMap<string, CachedTable>,
): Promise<FoundRows> {
  const wanted = collectRowLookups(commit)
  const found = new Map(
    await Promise.all(
      [...wanted].flatMap(([database, keys]) => {
        const table = tables.get(database)
        return table === undefined
          ? []
          : [
              findRows(transaction, table, keys, commit.owners?.[database] ?? commit.owner).then(
                (rows) => [database, rows] as const,
              ),
            ]
      }),
    ),
  )
  // Rows of another owner than the commit's are resolved one by one.
  const isPlain = commit.quarantined.length === 0 && commit.owners === undefined
  const unchanged =
    isPlain && found.size > 0 && found.size === wanted.size ? [...found.values()].map((rows) => rows.unchanged) : [null]
  return {
    find: ({ database, key }) => found.get(database)?.get(key),
    recordOf: ({ database, key }) => required(found.get(database)?.recordOf(key), 'The record of a row'),
    unchanged: unchanged.every((sequences) => sequences !== null) ? unchanged.flat() : null,
    pageKinds: new Map([...found].map(([database, { kind }]) => [database, kind])),
  }
}

interface CommitContext extends CommitBasis {
  readonly entry: RegistryEntry
  /** The backfill that this commit requests, locked. */
  readonly backfill: RegistryEntry | null
  readonly rows: FoundRows
}

async function land(
  transaction: Transaction,
  commit: Commit,
  { entry, backfill, tenant, owners, known, rows, hasQuarantined }: CommitContext,
): Promise<CommitOutcome | Rollback<CommitOutcome>> {
  const inflight = checkpoint.isOutsideCycle(commit.transition) ? null : toInflight(entry)
  const sweeps = inflight !== null && inflight.mode === 'replace'
  const owner = await ensureOwner(transaction, owners, commit.owner, sweeps)
  const others = await ensureOtherOwners(transaction, owners, commit)
  const parse = createRecordParser()
  const sweeping = new Set(owners.filter((known) => known.sweeps).map(({ id }) => id))
  const readFacts = async (): Promise<LandingFacts> => ({
    writer: entry.sync_id,
    owner,
    headSequence: tenant.sequence,
    sweeps,
    cycle: inflight?.cycle ?? null,
    find: rows.find,
    isSame: createSameRecordCheck(known, rows, parse),
    ...(await readContestFacts(transaction, commit, rows.find, owner, sweeping)),
  })
  const limits = sweeps && commit.transition.kind === 'complete' ? commit.transition.sweep : null
  // Forces lookups by key: without statistics the planner misjudges the size of the tables.
  if (limits !== null || (rows.unchanged === null && [...rows.pageKinds.values()].some((kind) => kind !== 'new')))
    transaction.send('set local enable_hashjoin = off; set local enable_mergejoin = off')
  const landing = rows.unchanged === null ? await readFacts() : null
  let plan = landing === null ? planUnchanged(rows.unchanged ?? [], tenant.sequence) : planLanding(commit, landing)
  const withoutColumns = databasesWithoutColumns(commit, (database) => known.get(database))
  const tables = await ensureTables(transaction, known, columnsOf(commit))
  const shapeDrift = await applyShapes(transaction, tables, commit, tenant.sequence + 1)
  const refused = refuseRecords(commit, plan, {
    withoutColumns,
    tableOf: (database) => tables.get(database),
    encode: (landing) => {
      const record = parse(landing)
      return { record, encoded: tableOf(tables, landing.database).encode(record, landing.text) }
    },
  })
  if (refused.length > 0 && landing !== null) plan = planLanding((commit = quarantineRefused(commit, refused)), landing)
  if (plan.overlapKeys.length > 0) return rollback({ kind: 'overlap', keys: plan.overlapKeys })
  if (plan.keysToLookUp.length > 0) return rollback({ kind: 'contested', keys: plan.keysToLookUp })

  // Invariant 7: the feed's time is strictly increasing, whatever the clock does.
  const committedAt = Math.max(commit.at, tenant.committed_at + 1)
  const page = checkpoint.toLogPage(commit.transition)
  const facts = { sync: entry.sync_id, cycle: inflight?.cycle ?? null, page, committedAt }
  setHistoryDays(transaction, commit.historyDays ?? {}, tables)
  const created = [...tables.keys()].flatMap((database) =>
    !known.has(database) && commit.deletes?.[database] === 'soft' ? [{ database, wanted: 'soft' as const }] : [],
  )
  const settings = [...listChangedDeleteModes(known, commit.deletes ?? {}), ...created]
  const lockedDatabases = await applyDeleteModes(transaction, settings, tables)
  const ownerIn = (database: string): number => others.get(database) ?? owner

  // From here on most statements are only sent; if one fails, COMMIT is not reached.
  const driftCollector = new DriftCollector(commit.schemaModes, commit.at, withoutColumns)
  await writeRows(transaction, plan, tables, {
    driftCollector,
    writer: entry.sync_id,
    committedAt,
    ownerIn,
    lockedDatabases,
    parse,
  })
  touchRows(transaction, plan, tables, rows.find)
  writeContests(transaction, plan, tables)
  const taken = sweeps
    ? recordSightings(transaction, plan, tables, { owner, owners, find: rows.find, cycle: inflight.cycle })
    : []
  const holdings = recordHoldings(transaction, owners, { owner, ownerIn, taken }, plan, tables)
  writeQuarantine(transaction, entry, commit, page, hasQuarantined)
  writePartitions(transaction, entry, commit)

  let { headSequence } = plan
  let written: PageRecord = {
    ranges: listLoggedRanges(plan, tables),
    // No row has a replaced sequence again. With them the seen ranges have no gaps that the sweep would search.
    seen: { sequences: [...plan.seenSequences, ...listReplacedSequences(plan)], sweeps },
  }
  // Swept rows come after the page with a commit time of their own: within one commit time the keys are ordered (A9).
  const sweptAt = headSequence > tenant.sequence ? committedAt + 1 : committedAt
  if (inflight !== null && limits !== null) {
    recordPage(transaction, facts, written)
    written = {}
    const swept = await sweep(transaction, limits, {
      ...facts,
      cycle: inflight.cycle,
      owner,
      holdings,
      lockedDatabases,
      startSequence: inflight.startSequence,
      headSequence,
      committedAt: sweptAt,
    })
    if (swept.kind !== 'swept') return rollback(swept)
    plan.counts.swept = swept.count
    if (limits.allowedBy !== undefined)
      writeAudit(
        transaction,
        entry,
        createAllowDeletesAuditEntry(entry.version, inflight.cycle, swept.count, {
          actor: limits.allowedBy,
          at: commit.at,
        }),
      )
    headSequence += swept.count
  }
  recordPage(
    transaction,
    { ...facts, committedAt: plan.counts.swept > 0 ? sweptAt : committedAt },
    {
      ...written,
      headSequence: headSequence > tenant.sequence ? headSequence : null,
      counts: plan.counts,
      transition: commit.transition,
      mayBeUndone: mayBeUndone(plan, commit, sweeps),
    },
  )
  for (const { database, drift } of driftCollector.listChanged()) {
    transaction.send(
      'update tidemark.databases set drift = $3 where tenant_id = $1 and database_id = $2',
      transaction.tenant,
      tableOf(tables, database).id,
      drift,
    )
  }
  const drift = [
    ...(commit.drift === undefined ? [] : [commit.drift]),
    ...shapeDrift,
    ...driftCollector.descriptions,
  ].join('; ')
  if (drift !== '')
    writeAudit(transaction, entry, {
      version: entry.version,
      at: commit.at,
      actor: 'engine',
      action: 'drift',
      reason: drift,
      cycle: inflight?.cycle ?? null,
      state: null,
    })
  const version =
    commit.transition.kind === 'continue' ? entry.version : updateCheckpoint(transaction, { entry, backfill }, commit)
  return {
    kind: 'landed',
    version,
    headSequence,
    counts: plan.counts,
    paused: Boolean(entry.paused),
    ...(driftCollector.descriptions.length > 0 && { drift: driftCollector.descriptions }),
    ...(refused.length > 0 && { refused }),
  }
}

/**
 * Equals the result of `planLanding` when every landing is the same as its row, and the row belongs to the commit's
 * owner.
 */
function planUnchanged(seenSequences: number[], headSequence: number): LandingPlan {
  return {
    writes: [],
    touches: [],
    contests: [],
    keysToLookUp: [],
    seenSequences,
    sightings: [],
    counts: { ...createEmptyCounts(), unchanged: seenSequences.length },
    overlapKeys: [],
    headSequence,
  }
}

function listReplacedSequences({ writes }: LandingPlan): number[] {
  return writes.flatMap(({ row }) => (row?.status === 'live' ? [row.sequence] : []))
}

/** Includes every database of the commit, even without new columns. */
function columnsOf(commit: Commit): Record<string, readonly Column[]> {
  const columns: Record<string, readonly Column[]> = { ...commit.columns }
  for (const { database } of [...(commit.shapes ?? []), ...commit.landings]) columns[database] ??= []
  for (const { database } of commit.quarantined) columns[database] ??= []
  return columns
}

/** Records the databases in which an owner has its first rows; returns all databases of this cycle's owner. */
function recordHoldings(
  transaction: Transaction,
  owners: readonly Owner[],
  { owner, ownerIn, taken }: { owner: number; ownerIn(database: string): number; taken: readonly Table[] },
  { writes }: LandingPlan,
  tables: ReadonlyMap<string, Table>,
): ReadonlySet<number> {
  const all = new Set(owners.find(({ id }) => id === owner)?.holdings)
  const added: Array<{ owner: number; table: Table }> = taken.map((table) => ({ owner, table }))
  let last: string | null = null
  for (const { landing, action } of writes) {
    if (action !== 'created' || landing.database === last) continue
    last = landing.database
    added.push({ owner: ownerIn(last), table: tableOf(tables, last) })
  }
  for (const { owner: holder, table } of added) {
    if (holder === owner) all.add(table.id)
    if (owners.find(({ id }) => id === holder)?.holdings.has(table.id) === true) continue
    transaction.send(
      'insert into tidemark.holdings (tenant_id, owner_id, database_id) values ($1, $2, $3) on conflict do nothing',
      transaction.tenant,
      holder,
      table.id,
    )
  }
  return all
}

/** Returns the explicitly named owners by database. They sweep, if at all, in cycles of their own. */
async function ensureOtherOwners(
  transaction: Transaction,
  known: readonly Owner[],
  { owners = {} }: Commit,
): Promise<Map<string, number>> {
  const ids = new Map<string, number>()
  for (const [database, name] of Object.entries(owners))
    ids.set(database, await ensureOwner(transaction, known, name, false))
  return ids
}

async function ensureOwner(
  transaction: Transaction,
  owners: readonly Owner[],
  name: string,
  sweeps: boolean,
): Promise<number> {
  const found = owners.find((owner) => owner.name === name)
  if (found !== undefined && (found.sweeps || !sweeps)) return found.id
  const { id } = await transaction.one<{ id: number }>(
    `insert into tidemark.owners (tenant_id, name, sweeps) values ($1, $2, $3)
     on conflict (tenant_id, name) do update set sweeps = owners.sweeps or excluded.sweeps returning owner_id as id`,
    transaction.tenant,
    name,
    sweeps,
  )
  return id
}

// ── quarantine ───────────────────────────────────────────────────────────────────────────────────────────────────────

function writeQuarantine(
  transaction: Transaction,
  entry: RegistryEntry,
  commit: Commit,
  page: number,
  hasQuarantined: boolean,
): void {
  const { tenant } = transaction
  // A key that lands leaves the quarantine. A quarantined record is newer than the row that changed rules rewrite.
  if (hasQuarantined && commit.landings.length > 0 && commit.transition.kind !== 'columns') {
    transaction.send(
      `delete from tidemark.quarantine q using unnest($3::text[], $4::text[]) as landed (database_name, identity)
       where q.tenant_id = $1 and q.sync_id = $2 and q.database_name = landed.database_name and q.identity = landed.identity`,
      tenant,
      entry.sync_id,
      textArray(commit.landings.map(({ database }) => database)),
      textArray(commit.landings.map((landing) => quarantineIdentityOf(landing))),
    )
  }
  if (commit.transition.kind === 'replay') {
    transaction.send(
      'delete from tidemark.quarantine where tenant_id = $1 and sync_id = $2 and quarantine_id = any($3::bigint[])',
      tenant,
      entry.sync_id,
      bigintArray(commit.transition.superseded),
    )
    transaction.send(
      `update tidemark.quarantine q set code = refused.code, message = refused.message
       from unnest($3::text[], $4::text[], $5::text[], $6::text[]) as refused (database_name, identity, code, message)
       where q.tenant_id = $1 and q.sync_id = $2 and q.database_name = refused.database_name and q.identity = refused.identity`,
      tenant,
      entry.sync_id,
      textArray(commit.quarantined.map(({ database }) => database)),
      textArray(commit.quarantined.map((item) => quarantineIdentityOf(item))),
      textArray(commit.quarantined.map(({ code }) => code)),
      textArray(commit.quarantined.map(({ message }) => replaceNul(message))),
    )
    return
  }
  // The last entry of a page for a record wins; one statement may not touch a row twice.
  const items = [
    ...new Map(
      commit.quarantined.map((item) => [JSON.stringify([item.database, quarantineIdentityOf(item)]), item]),
    ).values(),
  ]
  insertMany(
    transaction,
    'tidemark.quarantine',
    [
      { name: 'identity', type: 'text', values: items.map((item) => quarantineIdentityOf(item)) },
      { name: 'database_name', type: 'text', values: items.map(({ database }) => database) },
      { name: 'key', type: 'text', values: items.map(({ key }) => key) },
      { name: 'code', type: 'text', values: items.map(({ code }) => code) },
      { name: 'message', type: 'text', values: items.map(({ message }) => replaceNul(message)) },
      { name: 'text', type: 'text', values: items.map(({ text }) => replaceNul(text)) },
      { name: 'sync_id', type: 'integer', values: items.map(() => entry.sync_id) },
      { name: 'cycle_id', type: 'bigint', values: items.map(() => entry.inflight_cycle ?? 0) },
      { name: 'page', type: 'bigint', values: items.map(() => page) },
      { name: 'at', type: 'bigint', values: items.map(() => commit.at) },
    ],
    `on conflict (tenant_id, sync_id, database_name, identity) do update
    set code = excluded.code, message = excluded.message, text = excluded.text, cycle_id = excluded.cycle_id, page = excluded.page, at = excluded.at`,
  )
}

/** Records that differ only in the order of their fields are equal. */
function createSameRecordCheck(
  tables: ReadonlyMap<string, Table>,
  { recordOf }: FoundRows,
  parse: WriteFacts['parse'],
): (landing: UpsertLanding) => boolean {
  return (landing) => {
    const table = tableOf(tables, landing.database)
    const stored = recordOf(landing)
    if (table.differs(parse(landing), stored)) return false
    return equalsJson(table.decode(stored.sequence, stored.extra, stored.values), landing.text)
  }
}

/** Keeps the records that are compared until they are written. */
function createRecordParser(): WriteFacts['parse'] {
  const records = new Map<UpsertLanding, JsonObject>()
  return (landing) => {
    let record = records.get(landing)
    if (record === undefined) records.set(landing, (record = parseJson(landing.text) as JsonObject))
    return record
  }
}
