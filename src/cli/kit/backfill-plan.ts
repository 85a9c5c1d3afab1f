import { EMPTY_CHECKPOINT, type Store, type TimeRange } from '../../contract/index.ts'
import { continuesRange, toSyncName } from '../../engine/range-plan.ts'
import { readsPart, toBackfillName, type SyncPlan } from '../../engine/sync-plan.ts'
import { locateStore } from '../../stores/drivers.ts'
import { formatNumber, totalRows } from './counts.ts'
import { formatDuration } from './duration.ts'
import { toPrintable } from './printable.ts'
import type { Target } from './target.ts'

/** The effects of a backfill, and an estimate of its duration. */
export interface BackfillPlan {
  readonly sync: string
  /** Null to read everything. */
  readonly range: TimeRange | null
  /** The partitions to read; null for all. */
  readonly partitions: readonly string[] | null
  readonly databases: readonly string[]
  /** Rows that the copy has of it; null if the rows have no times. */
  readonly rows: number | null
  /** From the rate of earlier cycles; null without one. */
  readonly estimatedMs: number | null
  /** Whether rows that the source no longer returns are deleted. */
  readonly sweeps: boolean
  /** The unfinished cycle that it continues. */
  readonly resumes: UnfinishedCycle | null
  /** The unfinished cycle of another range that it drops. */
  readonly abandons: UnfinishedCycle | null
}

interface UnfinishedCycle {
  readonly cycle: number
  readonly pages: number
}

/** `store` is null if it does not exist yet. */
export async function estimateBackfill(target: Target, store: Store | null, plan: SyncPlan): Promise<BackfillPlan> {
  const { worker, sync, range = null, partitions } = plan
  const { inflight } = store === null ? EMPTY_CHECKPOINT : await store.readCheckpoint({ worker, sync })
  const unfinished = inflight === null ? null : { cycle: inflight.cycle, pages: inflight.page }
  const isContinued = inflight !== null && (!readsPart(plan) || continuesRange(plan, inflight))
  const rows = store === null ? 0 : await countRows(target, store, plan)
  const msPerRow = store === null ? null : await readMsPerRow(store, plan)
  return {
    sync,
    range,
    partitions: partitions?.keys ?? null,
    databases: plan.databases.map(({ name }) => name),
    rows,
    estimatedMs: msPerRow === null || rows === null || rows === 0 ? null : Math.round(rows * msPerRow),
    sweeps: partitions?.sweeps ?? range === null,
    resumes: isContinued ? unfinished : null,
    abandons: isContinued ? null : unfinished,
  }
}

export function formatBackfillPlan(plan: BackfillPlan): string[] {
  const { sync, range, partitions, databases, rows, estimatedMs, resumes, abandons } = plan
  const estimate = estimatedMs === null ? '' : `, about ${formatDuration(Math.max(1_000, estimatedMs))}`
  return [
    `Plan for ${toPrintable(sync)}:`,
    `  reads     ${describeRecords(plan)}`,
    `  into      ${databases.map((name) => toPrintable(name)).join(', ')}`,
    `  the copy  ${rows === null ? describeUnknownRows(plan) : `has ${formatNumber(rows)} ${rows === 1 ? 'row' : 'rows'} of it${estimate}`}`,
    `  deletes   ${describeDeletes(plan)}`,
    range === null && partitions === null
      ? '  keeps     the state of the delta'
      : '  keeps     the states of the sync and of its backfill; this read has a checkpoint of its own',
    ...(resumes === null ? [] : [`  resumes   cycle ${resumes.cycle} after page ${formatNumber(resumes.pages)}`]),
    ...(abandons === null
      ? []
      : [
          `  abandons  cycle ${abandons.cycle} of another read, unfinished after ${formatNumber(abandons.pages)} pages; its rows are kept`,
        ]),
    '',
  ]
}

function describeRecords({ range, partitions }: BackfillPlan): string {
  if (partitions !== null)
    return `the ${partitions.length === 1 ? 'partition' : 'partitions'} ${partitions.map((key) => toPrintable(key)).join(', ')}`
  return range === null ? 'every record of the source' : `the records with a time ${describeTimes(range)}`
}

function describeUnknownRows({ partitions }: BackfillPlan): string {
  return partitions === null
    ? 'has rows without times, so the number in the range is unknown'
    : 'has rows of all partitions; the number in these is not counted'
}

function describeDeletes({ sweeps, partitions }: BackfillPlan): string {
  if (partitions !== null)
    return sweeps
      ? 'rows of these partitions that the source no longer has, up to the delete limit, if their field is declared'
      : 'nothing: the sync does not delete rows that it does not return'
  return sweeps
    ? 'rows that the source no longer returns, up to the delete limit'
    : 'nothing: a record that is absent from a range may have another time by now'
}

function describeTimes({ from, to }: TimeRange): string {
  if (from === undefined) return `before ${to}`
  return to === undefined ? `from ${from} on` : `from ${from} to before ${to}`
}

/** The rows of the plan's databases, or those with a time in its range. */
async function countRows(
  target: Target,
  store: Store,
  { databases, range, partitions }: SyncPlan,
): Promise<number | null> {
  if (partitions !== undefined) return null
  const names = databases.map(({ name }) => name)
  const tables = (await store.databases()).filter(({ name, rows }) => names.includes(name) && rows > 0)
  if (range === undefined) return tables.reduce((sum, { rows }) => sum + rows, 0)
  const location = locateStore(target.settings.storeUrl, target.settings.folder)
  let total = 0
  for (const { table, hasDeleted } of tables) {
    const inside = [
      ...(range.from === undefined ? [] : [`_upstream_at >= '${range.from}'`]),
      ...(range.to === undefined ? [] : [`_upstream_at < '${range.to}'`]),
    ].join(' and ')
    const live = hasDeleted === true ? ' where _deleted_at is null' : ''
    const { rows } = await location.select(
      `select count(case when ${inside} then 1 end) as inside, count(_upstream_at) as dated from ${location.syntax.tableReference(table)}${live}`,
      { limit: 1, tenant: target.tenant },
    )
    const [counted, dated] = (rows[0] ?? []).map(Number)
    if (dated === 0) return null
    total += counted ?? 0
  }
  return total
}

/** The time per row of the newest cycle that read enough rows for an estimate. */
async function readMsPerRow(store: Store, plan: SyncPlan): Promise<number | null> {
  const { worker, sync } = plan
  const listed = readsPart(plan) ? toSyncName(sync) : sync
  const names = new Set([sync, toBackfillName(listed), listed])
  for (const name of names) {
    for (const { counts, startedAt, endedAt } of await store.cycles({ worker, sync: name }, { limit: CYCLES_MAX })) {
      const rows = totalRows(counts)
      if (endedAt !== null && rows >= ROWS_MIN) return (endedAt - startedAt) / rows
    }
  }
  return null
}

const CYCLES_MAX = 10
const ROWS_MIN = 10
