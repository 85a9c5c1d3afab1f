import {
  SyncError,
  type Column,
  type Commit,
  type CommitOutcome,
  type JsonObject,
  type Landing,
  type SyncRef,
} from '../../contract/index.ts'
import { createAllowDeletesAuditEntry, createDriftAuditEntry } from '../kit/audit-entries.ts'
import { parseJson, equalsJson } from '../../values/json.ts'
import * as checkpoint from '../kit/checkpoint.ts'
import { createEmptyCounts, planLanding, type LandingFacts, type LandingPlan } from '../kit/plan-landing.ts'
import {
  databasesWithoutColumns,
  DriftCollector,
  refuseRecords,
  quarantineRefused,
} from '../kit/tables/schema-drift.ts'
import { KEY_CONSTRAINT_PREFIX } from '../kit/tables/key-columns.ts'
import { quarantineIdentityOf } from '../kit/quarantine-identity.ts'
import { findSealingKeyId } from '../kit/sealed-texts.ts'
import { toCheckpoint, toInflight, type RegistryEntry } from '../kit/registry-rows.ts'
import { replaceNul } from '../kit/replace-nul.ts'
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
import { listLoggedRanges, writeCommits } from './commits.ts'
import { readChangedDeleteModes, applyDeleteModes, type DeleteSetting } from './delete-mode.ts'
import { sqlStateOf } from './errors.ts'
import { insertMany } from './insert-many.ts'
import { findLeasedEntry, lockTenant, writeAudit } from './registry.ts'
import {
  findRows,
  writeContests,
  readContestFacts,
  readStoredTexts,
  touchRows,
  collectRowLookups,
  writeRows,
  type FoundRows,
} from './rows.ts'
import { checkSealingKey } from './check-sealing-key.ts'
import { recordSeen, sweep, protectFromOtherSweeps, type Owner } from './sweep.ts'
import { setHistoryDays } from './history-retention.ts'
import { bindPipelinedSteps, bindSteps } from './sql.ts'
import { ensureTables, readTables, tableOf, type Table } from './table.ts'
import { applyShapes, refuseKeys } from './table-shape.ts'

const addPageToCycle = bindPipelinedSteps(checkpoint.addPageToCycle)
const lockBackfill = bindSteps(checkpoint.lockBackfill)
const updateCheckpoint = bindPipelinedSteps(checkpoint.updateCheckpoint)

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
    // Forces lookups by key: without statistics the planner misjudges the size of the tables.
    transaction.send('set local enable_hashjoin = off; set local enable_mergejoin = off')
    // Pipelined and answered in this order: everything after the two locks sees what their last holders committed.
    const [tenant, entry, owners, known, early, hasQuarantined, settings, keyError] = await Promise.all([
      lockTenant(transaction),
      findLeasedEntry(transaction, commit.lease),
      readOwners(transaction),
      readTables(transaction, names),
      lookUpRows(transaction, commit, guessed),
      hasQuarantinedRecords(transaction, commit.lease.ref),
      readChangedDeleteModes(transaction, commit.deletes ?? {}),
      checkSealingKey(transaction, null, findSealingKeyId(commit.transition)).then(
        () => null,
        (error: unknown) => error as Error,
      ),
    ])
    if (entry === null) return rollback<CommitOutcome>({ kind: 'fenced' })
    if (!checkpoint.matchesCheckpoint(entry, commit))
      return rollback<CommitOutcome>({ kind: 'conflict', checkpoint: toCheckpoint(entry) })
    if (keyError !== null) throw keyError
    const isStale = names.some(
      (name) => known.get(name)?.live !== guessed.get(name)?.live || known.get(name)?.id !== guessed.get(name)?.id,
    )
    const rows = isStale ? await lookUpRows(transaction, commit, known) : early
    for (const name of names) {
      const table = known.get(name)
      if (table === undefined) cached.delete(name)
      else
        cached.set(name, {
          id: table.id,
          name: table.name,
          live: table.live,
          lastPageKind: rows.pageKinds.get(name) ?? 'mixed',
        })
    }
    return land(transaction, commit, { entry, backfill, tenant, owners, known, rows, hasQuarantined, settings })
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
              findRows(transaction, table, keys, commit.owners?.[database] ?? commit.owner, table.lastPageKind).then(
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
    unchanged: unchanged.every((sequences) => sequences !== null) ? unchanged.flat() : null,
    pageKinds: new Map([...found].map(([database, { kind }]) => [database, kind])),
  }
}

interface CommitContext {
  readonly entry: RegistryEntry
  /** The backfill that this commit requests, locked. */
  readonly backfill: RegistryEntry | null
  readonly tenant: { readonly sequence: number; readonly committed_at: number }
  readonly owners: readonly Owner[]
  readonly known: ReadonlyMap<string, Table>
  readonly rows: FoundRows
  /** The sync has records in quarantine. */
  readonly hasQuarantined: boolean
  readonly settings: readonly DeleteSetting[]
}

async function land(
  transaction: Transaction,
  commit: Commit,
  { entry, backfill, tenant, owners, known, rows, hasQuarantined, settings }: CommitContext,
): Promise<CommitOutcome | Rollback<CommitOutcome>> {
  // A replay belongs to no cycle: an unfinished one has not seen its records.
  const inflight = commit.transition.kind === 'replay' ? null : toInflight(entry)
  const sweeps = inflight !== null && inflight.mode === 'replace'
  const owner = await ensureOwner(transaction, owners, commit.owner, sweeps)
  const others = await ensureOtherOwners(transaction, owners, commit)
  const sweeping = new Set(owners.filter((known) => known.sweeps).map(({ id }) => id))
  const readFacts = async (): Promise<LandingFacts> => ({
    writer: entry.sync_id,
    owner,
    headSequence: tenant.sequence,
    sweeps,
    cycle: inflight?.cycle ?? null,
    find: rows.find,
    isSame: createSameRecordCheck(await readStoredTexts(transaction, commit, known, rows.find)),
    ...(await readContestFacts(transaction, commit, rows.find, owner, sweeping)),
  })
  const landing = rows.unchanged === null ? await readFacts() : null
  let plan = landing === null ? planUnchanged(rows.unchanged ?? [], tenant.sequence) : planLanding(commit, landing)
  const withoutColumns = databasesWithoutColumns(commit, (database) => known.get(database))
  const tables = await ensureTables(transaction, known, columnsOf(commit))
  const shapeDrift = await applyShapes(transaction, tables, commit, tenant.sequence + 1)
  const refused = refuseRecords(commit, plan, {
    withoutColumns,
    tableOf: (database) => tables.get(database),
    encode: ({ database, text }) => {
      const record = parseJson(text) as JsonObject
      return { record, encoded: tableOf(tables, database).encode(record, text) }
    },
  })
  if (refused.length > 0 && landing !== null) plan = planLanding((commit = quarantineRefused(commit, refused)), landing)
  if (plan.overlapKeys.length > 0) return rollback({ kind: 'overlap', keys: plan.overlapKeys })
  if (plan.keysToLookUp.length > 0) return rollback({ kind: 'contested', keys: plan.keysToLookUp })

  // Invariant 7: the feed's time is strictly increasing, whatever the clock does.
  const committedAt = Math.max(commit.at, tenant.committed_at + 1)
  const page = 'page' in commit.transition ? commit.transition.page : 0
  const facts = { sync: entry.sync_id, cycle: inflight?.cycle ?? 0, page }
  setHistoryDays(transaction, commit.historyDays ?? {}, tables)
  const created = [...tables.keys()].flatMap((database) =>
    !known.has(database) && commit.deletes?.[database] === 'soft' ? [{ database, wanted: 'soft' as const }] : [],
  )
  const lockedDatabases = await applyDeleteModes(transaction, [...settings, ...created], tables)
  const ownerIn = (database: string): number => others.get(database) ?? owner

  // From here on most statements are only sent; if one fails, COMMIT is not reached.
  const driftCollector = new DriftCollector(commit.schemaModes, commit.at, withoutColumns)
  await writeRows(transaction, plan, tables, {
    driftCollector,
    writer: entry.sync_id,
    committedAt,
    ownerIn,
    lockedDatabases,
    find: rows.find,
  })
  writeCommits(transaction, listLoggedRanges(plan, tables), { ...facts, committedAt })
  touchRows(transaction, plan, tables, rows.find)
  writeContests(transaction, plan, tables)
  const taken = sweeps
    ? recordSeen(transaction, plan, tables, { owner, owners, find: rows.find, cycle: inflight.cycle, page })
    : []
  const holdings = recordHoldings(transaction, owners, { owner, ownerIn, taken }, plan, tables)
  protectFromOtherSweeps(transaction, plan, entry.sync_id)
  writeQuarantine(transaction, entry, commit, page, hasQuarantined)

  let { headSequence } = plan
  const logs = headSequence > tenant.sequence
  // Swept rows come after the page with a commit time of their own: within one commit time the keys are ordered (A9).
  const sweptAt = logs ? committedAt + 1 : committedAt
  const limits = sweeps && commit.transition.kind === 'complete' ? commit.transition.sweep : null
  if (inflight !== null && limits !== null) {
    const swept = await sweep(transaction, limits, {
      ...facts,
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
  if (headSequence > tenant.sequence) {
    transaction.send(
      'update tidemark.tenants set sequence = $2, committed_at = $3 where tenant_id = $1',
      transaction.tenant,
      headSequence,
      plan.counts.swept > 0 ? sweptAt : committedAt,
    )
  }
  if (inflight !== null) addPageToCycle(transaction, inflight.cycle, plan.counts, commit)
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
  const version = updateCheckpoint(transaction, { entry, backfill }, commit)
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

/** Includes every database of the commit, even without new columns. */
function columnsOf(commit: Commit): Record<string, readonly Column[]> {
  const columns: Record<string, readonly Column[]> = { ...commit.columns }
  for (const { database } of [...(commit.shapes ?? []), ...commit.landings]) columns[database] ??= []
  for (const { database } of commit.quarantined) columns[database] ??= []
  return columns
}

async function readOwners(transaction: Transaction): Promise<Owner[]> {
  const rows = await transaction.all<{ id: number; name: string; sweeps: boolean; holdings: string }>(
    `select owner_id as id, name, sweeps,
       array(select database_id from tidemark.holdings h where h.tenant_id = $1 and h.owner_id = o.owner_id)::text as holdings
     from tidemark.owners o where tenant_id = $1`,
    transaction.tenant,
  )
  return rows.map((row) => ({
    ...row,
    holdings: new Set(row.holdings === '{}' ? [] : row.holdings.slice(1, -1).split(',').map(Number)),
  }))
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

async function hasQuarantinedRecords(transaction: Transaction, { worker, sync }: SyncRef): Promise<boolean> {
  const { waiting } = await transaction.one<{ waiting: boolean }>(
    `select exists (
       select from tidemark.quarantine where tenant_id = $1
         and sync_id = (select sync_id from tidemark.registry where tenant_id = $1 and connector_id = $2 and stream_id = $3)
     ) as waiting`,
    transaction.tenant,
    worker,
    sync,
  )
  return waiting
}

function writeQuarantine(
  transaction: Transaction,
  entry: RegistryEntry,
  commit: Commit,
  page: number,
  hasQuarantined: boolean,
): void {
  const { tenant } = transaction
  // A key that lands leaves the quarantine.
  if (hasQuarantined && commit.landings.length > 0) {
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
  textOf: (landing: Landing) => string,
): (landing: Extract<Landing, { type: 'upsert' }>) => boolean {
  return (landing) => equalsJson(textOf(landing), landing.text)
}
