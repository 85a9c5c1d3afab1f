import { SyncError, type TimeRange } from '../../contract/index.ts'
import { canonicalizeInstant, instantToMs, parseInstantOrDate } from '../../values/instant.ts'
import type { SqlDatabase } from './database.ts'
import type { TableOptions } from './source.ts'
import type { LowerBound, UpperBound } from './statements.ts'
import { requireCursor, type TablePlan } from './table-plan.ts'

/** The rows that the start date permits; null for all. Rows with a null cursor are not among them. */
export async function readSinceBound(
  database: SqlDatabase,
  plan: TablePlan,
  { since }: TableOptions,
): Promise<LowerBound | null> {
  if (since === undefined) return null
  const cursor = requireCursor(plan)
  const toBound = (text: string): LowerBound => ({ columns: [cursor], values: [text], bound: '>=' })
  if (cursor.kind === 'integer') {
    if (/^-?\d{1,19}$/.test(since)) return toBound(since)
    throw new SyncError(
      'SYNC_INVALID',
      `${plan.table.id}: \`since\` is ${JSON.stringify(since)}, but the cursor "${cursor.name}" is an integer. Set \`since\` of this table to a number.`,
    )
  }
  const instant = parseInstantOrDate(since)
  return toBound(instant === null ? since : formatLike(instant, await readExample(database, plan), 'down'))
}

/** The bounds of a range of times. */
export async function readRangeBounds(
  database: SqlDatabase,
  plan: TablePlan,
  { from, to }: TimeRange,
): Promise<{ readonly lower: LowerBound | null; readonly upper: UpperBound | null }> {
  const cursor = requireCursor(plan)
  if (cursor.kind !== 'instant')
    throw new SyncError(
      'RANGE_UNSUPPORTED',
      `${plan.table.id}: the cursor "${cursor.name}" is not a time, so a range of times cannot be read.`,
    )
  const example = await readExample(database, plan)
  return {
    lower: from === undefined ? null : { columns: [cursor], values: [formatLike(from, example, 'down')], bound: '>=' },
    upper: to === undefined ? null : { column: cursor, text: formatLike(to, example, 'up'), bound: '<' },
  }
}

/** The scope of a listing: a date and its midnight are the same. */
export function describeSince(since: string | undefined): string | undefined {
  return since === undefined ? undefined : (parseInstantOrDate(since) ?? since)
}

/** A value in the format of the column. */
async function readExample(database: SqlDatabase, plan: TablePlan): Promise<string> {
  return (await database.readHorizon(plan.table, requireCursor(plan), 0)).until
}

/**
 * Rounds to the second, or to the day of a date column. Without a fraction and a zone the text sorts before every value
 * of that second. A column without a zone is compared as it is written.
 */
function formatLike(instant: string, example: string, direction: 'up' | 'down'): string {
  const unitMs = example.length === 10 ? 86_400_000 : 1_000
  const floorMs = Math.floor(instantToMs(instant) / unitMs) * unitMs
  const floor = new Date(floorMs).toISOString()
  const rounded =
    direction === 'up' && canonicalizeInstant(floor) !== instant ? new Date(floorMs + unitMs).toISOString() : floor
  if (example.length === 10) return rounded.slice(0, 10)
  return `${rounded.slice(0, 10)}${example[10] ?? 'T'}${rounded.slice(11, 19)}`
}
