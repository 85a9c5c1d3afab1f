import {
  addPageToCycle,
  createAllowDeletesAuditEntry,
  appendAuditEntry,
  checkSealingKey,
  databasesWithoutColumns,
  createDriftAuditEntry,
  DriftCollector,
  findLeasedEntry,
  matchesCheckpoint,
  isKeyUndecided,
  isOutsideCycle,
  lockBackfill,
  lockTenant,
  listLoggedRanges,
  updateCheckpoint,
  parseJson,
  planLanding,
  refuseKey,
  refuseRecords,
  equalsJson,
  findSealingKeyId,
  addDeclaredColumns,
  acceptsShape,
  toCheckpoint,
  toInflight,
  toLogPage,
  withFormats,
  quarantineRefused,
  writeCommits,
  writePartitions,
  writeQuarantine,
  type Commit,
  type CommitOutcome,
  type JsonObject,
  type LandingFacts,
  type RegistryEntry,
  type Sql,
  type Steps,
  type TenantRow,
} from 'tidemark/store'
import { rollback, type Rollback, type Transaction } from './connection.ts'
import { findRows, writeRows, type UpsertLanding } from './rows.ts'
import { performSteps, type TenantSession } from './sql.ts'
import { recordSeen, createSharedKeyCheck, sweep, protectFromOtherSweeps } from './sweep.ts'
import {
  alterTable,
  ensureTables,
  growTable,
  limitsOf,
  writeMemberKinds,
  required,
  tableOf,
  type Table,
} from './table.ts'

/**
 * Everything below runs in one transaction; a refusal rolls it back. Tables and columns are created first, by another
 * connection.
 */
export function commit(session: TenantSession, commit: Commit): Promise<CommitOutcome> {
  return session.connection.write(async (transaction) => {
    const run = <T>(steps: (sql: Sql) => Steps<T>): Promise<T> => performSteps(session, transaction, steps)
    const backfill = await run((sql) => lockBackfill(sql, commit))
    const tenant = await run(lockTenant)
    const entry = await run((sql) => findLeasedEntry(sql, commit.lease))
    if (entry === null) return rollback<CommitOutcome>({ kind: 'fenced' })
    if (!matchesCheckpoint(entry, commit))
      return rollback<CommitOutcome>({ kind: 'conflict', checkpoint: toCheckpoint(entry) })
    await run((sql) => checkSealingKey(sql, null, findSealingKeyId(commit)))
    return land(session, transaction, commit, { entry, backfill, tenant })
  })
}

interface CommitContext {
  readonly entry: RegistryEntry
  readonly backfill: RegistryEntry | null
  readonly tenant: TenantRow
}

async function land(
  session: TenantSession,
  transaction: Transaction,
  commit: Commit,
  { entry, backfill, tenant }: CommitContext,
): Promise<CommitOutcome | Rollback<CommitOutcome>> {
  const run = <T>(steps: (sql: Sql) => Steps<T>): Promise<T> => performSteps(session, transaction, steps)
  const inflight = isOutsideCycle(commit.transition) ? null : toInflight(entry)
  const sweeps = inflight !== null && inflight.mode === 'replace'
  const {
    tables,
    withoutColumns,
    driftCollector,
    drift: shapeDrift,
  } = await prepareTables(session, transaction, commit, tenant.sequence + 1)
  const owner = await ensureOwner(session, transaction, commit.owner, sweeps)
  const others = new Map<string, number>()
  for (const [database, name] of Object.entries(commit.owners ?? {}))
    others.set(database, await ensureOwner(session, transaction, name, false))

  const rows = await findRows(session, transaction, tables, commit)
  // Needed only for contested landings, which only a listing has.
  const isShared = commit.listing === undefined ? () => false : await createSharedKeyCheck(session, transaction, owner)
  const complete = new Set(
    (
      await transaction.all<{ id: number }>(
        `select c.cycle_id as id from tidemark_cycles c join (select distinct cycle_id from tidemark_contests where tenant_id = ?) k on k.cycle_id = c.cycle_id
     where c.stop_reason = 'complete'`,
        session.tenant,
      )
    ).map(({ id }) => id),
  )
  const facts: LandingFacts = {
    writer: entry.sync_id,
    owner,
    headSequence: tenant.sequence,
    sweeps,
    cycle: inflight?.cycle ?? null,
    find: rows.find,
    isSame: (landing) => equalsJson(rows.textOf(landing), landing.text),
    isShared: ({ database, key }, row) => isShared(tableOf(tables, database).id, key, row.owner),
    isComplete: (cycle) => complete.has(cycle),
  }
  let plan = planLanding(commit, facts)
  const refused = refuseRecords(commit, plan, {
    withoutColumns,
    tableOf: (database) => tables.get(database),
    encode: ({ database, text }) => {
      const record = parseJson(text) as JsonObject
      return { record, encoded: tableOf(tables, database).encode(record) }
    },
  })
  if (refused.length > 0) plan = planLanding((commit = quarantineRefused(commit, refused)), facts)
  if (plan.overlapKeys.length > 0) return rollback({ kind: 'overlap', keys: plan.overlapKeys })
  if (plan.keysToLookUp.length > 0) return rollback({ kind: 'contested', keys: plan.keysToLookUp })

  // Invariant 7: the feed's time is strictly increasing, whatever the clock does.
  const committedAt = Math.max(commit.at, tenant.committed_at + 1)
  const page = toLogPage(commit.transition)
  const commitFacts = { sync: entry.sync_id, cycle: inflight?.cycle ?? 0, page }
  await writeRows(session, transaction, plan, tables, {
    driftCollector,
    writer: entry.sync_id,
    committedAt,
    ownerIn: (database) => others.get(database) ?? owner,
  })
  await run((sql) => writeCommits(sql, listLoggedRanges(plan, tables), { ...commitFacts, committedAt }))
  if (sweeps) await recordSeen(session, transaction, plan, tables, { owner, cycle: inflight.cycle, page })
  await protectFromOtherSweeps(session, transaction, plan, entry.sync_id)
  await run((sql) => writeQuarantine(sql, entry, commit))
  await run((sql) => writePartitions(sql, entry, commit))

  let { headSequence } = plan
  // Swept rows come after the page with a commit time of their own: within one commit time the keys are ordered.
  const sweptAt = headSequence > tenant.sequence ? committedAt + 1 : committedAt
  const limits = sweeps && commit.transition.kind === 'complete' ? commit.transition.sweep : null
  if (inflight !== null && limits !== null) {
    const swept = await sweep(session, transaction, limits, {
      ...commitFacts,
      owner,
      startSequence: inflight.startSequence,
      headSequence,
      committedAt: sweptAt,
    })
    if (swept.kind !== 'swept') return rollback(swept)
    plan.counts.swept = swept.count
    const { allowedBy } = limits
    if (allowedBy !== undefined)
      await run((sql) =>
        appendAuditEntry(
          sql,
          entry,
          createAllowDeletesAuditEntry(entry.version, inflight.cycle, swept.count, { actor: allowedBy, at: commit.at }),
        ),
      )
    headSequence += swept.count
  }
  if (headSequence > tenant.sequence) {
    await transaction.run(
      'update tidemark_tenants set sequence = ?, committed_at = ? where tenant_id = ?',
      headSequence,
      plan.counts.swept > 0 ? sweptAt : committedAt,
      session.tenant,
    )
  }
  if (inflight !== null) await run((sql) => addPageToCycle(sql, inflight.cycle, plan.counts, commit))
  for (const { database, drift } of driftCollector.listChanged())
    await transaction.run(
      'update tidemark_databases set drift = ? where database_id = ?',
      drift,
      tableOf(tables, database).id,
    )
  const drift = [...(commit.drift === undefined ? [] : [commit.drift]), ...shapeDrift, ...driftCollector.descriptions]
  if (drift.length > 0)
    await run((sql) =>
      appendAuditEntry(sql, entry, createDriftAuditEntry(entry.version, commit.at, drift, inflight?.cycle ?? null)),
    )
  const version = await run((sql) => updateCheckpoint(sql, { entry, backfill }, commit))
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

/** The tables of a commit, with a column for every declared field and every field of its records. */
async function prepareTables(
  session: TenantSession,
  transaction: Transaction,
  commit: Commit,
  since: number,
): Promise<{
  tables: Map<string, Table>
  withoutColumns: ReadonlySet<string>
  driftCollector: DriftCollector
  drift: string[]
}> {
  const { columns, shapes = [], landings, quarantined, schemaModes = {}, historyDays = {} } = commit
  const names = [
    ...new Set([...Object.keys(columns), ...[...shapes, ...landings, ...quarantined].map(({ database }) => database)]),
  ]
  const tables = await ensureTables(session, transaction, names)
  const withoutColumns = databasesWithoutColumns(commit, (database) => tables.get(database))
  const driftCollector = new DriftCollector(schemaModes, commit.at, withoutColumns)
  const recordsOf = (database: string): JsonObject[] =>
    landings
      .filter((landing): landing is UpsertLanding => landing.type === 'upsert' && landing.database === database)
      .map(({ text }) => parseJson(text) as JsonObject)
  const drift: string[] = []
  for (const shape of shapes) {
    const known = tableOf(tables, shape.database)
    const mode = schemaModes[shape.database]
    if (!acceptsShape(known.columns, mode)) continue
    const shaped = addDeclaredColumns(known.columns, shape, since, (await limitsOf(session, known)).limits)
    const formatted = mode === undefined ? shaped.columns : withFormats(shaped.columns, recordsOf(shape.database))
    const key = isKeyUndecided(formatted, shape.key)
      ? refuseKey(shape.database, formatted, shape.key, 'this store does not support key constraints')
      : null
    tables.set(shape.database, await alterTable(session, transaction, known, key?.columns ?? formatted))
    drift.push(...shaped.drift, ...(key?.drift ?? []))
  }
  for (const table of tables.values()) {
    const { database, id } = table
    tables.set(database, await growTable(session, transaction, table, recordsOf(database), since, driftCollector))
    await writeMemberKinds(transaction, table, columns[database] ?? [])
    const days = historyDays[database]
    if (days !== undefined && days !== table.historyDays)
      await transaction.run('update tidemark_databases set history_days = ? where database_id = ?', days, id)
  }
  return { tables, withoutColumns, driftCollector, drift }
}

async function ensureOwner(
  { tenant }: TenantSession,
  transaction: Transaction,
  name: string,
  sweeps: boolean,
): Promise<number> {
  const find = () =>
    transaction.get<{ id: number; sweeps: number }>(
      'select owner_id as id, sweeps from tidemark_owners where tenant_id = ? and name = ?',
      tenant,
      name,
    )
  const known = await find()
  if (known !== undefined && (known.sweeps === 1 || !sweeps)) return known.id
  await transaction.run(
    'insert into tidemark_owners (tenant_id, name, sweeps) values (?, ?, ?) on duplicate key update sweeps = values(sweeps)',
    tenant,
    name,
    sweeps,
  )
  return required(await find(), `The owner ${name}`).id
}
