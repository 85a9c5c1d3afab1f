import type { CycleTotals, CycleTotalsQuery } from '../../contract/index.ts'
import { SYNC_ID_SQL } from './registry.ts'
import type { Sql, Steps } from './sql/port.ts'

/** Processes number and time their cycles at almost the same time, on clocks that differ a little. */
const CLOCK_SKEW_MS = 60_000

const ROWS_SQL = 'created + updated + deleted + swept'

/**
 * Computes the totals from the cycle records. Cycles are numbered in the order of their start, so a binary search finds the
 * first one of the range, and older records are not read. A sync runs one cycle at a time: of its older ones, only the
 * newest can reach into the range.
 */
export function* readCycleTotals(sql: Sql, query: CycleTotalsQuery): Steps<CycleTotals[]> {
  const { ref, from, stepMs, steps } = query
  // One sync has an index; all syncs are read in the order of their numbers.
  const cycles = ref === null ? '{cycles_by_id}' : '{cycles}'
  const where = `tenant_id = :tenant${ref === null ? '' : ` and sync_id = ${SYNC_ID_SQL}`}`
  const floor = yield* findFirstCycle(sql, `${cycles} where ${where}`, query)
  // Integer division differs between databases, and the remainder does not.
  const begin = (column: string): string => `${column} - :from - (${column} - :from) % :stepMs`
  // A group is a step, or one cycle that runs in several steps or still runs.
  const group = `case when started_at >= :from and ${begin('started_at')} = ${begin('ended_at')} then ${begin('ended_at')} else -cycle_id end`
  const isInRange = '(ended_at >= :from and started_at < :until or ended_at is null and page is not null)'
  const select = (table: string, condition: string): string =>
    `select ${group} as "group", count(*) as cycles, count(error_code) as failed,
       sum(${ROWS_SQL}) as "rows", sum(waited_ms) as "waitedMs", sum(retries) as retries,
       max(case when stop_reason = 'complete' then started_at end) as "completeSince",
       min(started_at) as "startedAt", max(ended_at) as "endedAt"
     from ${table} where ${where} and ${isInRange} and ${condition} group by 1`
  const groups = yield* sql.all<CycleGroup>(
    `${select(cycles, 'cycle_id >= :floor')} union all ${select(
      '{cycles_by_id}',
      `cycle_id in (
         select (select max(o.cycle_id) from {cycles} o where o.tenant_id = :tenant and o.sync_id = g.sync_id and o.cycle_id < :floor)
         from {registry} g where g.tenant_id = :tenant)`,
    )}`,
    { ...ref, floor, from, stepMs, until: from + steps * stepMs },
  )
  const totals = new Map<number, Mutable<CycleTotals>>()
  for (const found of groups) addGroup(totals, mapNumbers(found), query)
  return [...totals.values()]
    .map((total) => ({ ...total, rows: Math.round(total.rows), waitedMs: Math.round(total.waitedMs) }))
    .toSorted((one, other) => one.step - other.step)
}

type Mutable<T> = { -readonly [Member in keyof T]: T[Member] }

/** A sum may be a decimal, which some drivers return as text. */
function mapNumbers(row: CycleGroup): CycleGroup {
  const numbers = Object.entries(row).map(([name, value]) => [name, value === null ? null : Number(value)])
  return Object.fromEntries(numbers) as unknown as CycleGroup
}

interface CycleGroup extends Omit<CycleTotals, 'step'> {
  /** The begin of the step after `from`; negative for a single cycle. */
  readonly group: number
  /** The first start, and the last end; null for a cycle that runs. */
  readonly startedAt: number
  readonly endedAt: number | null
}

function* findFirstCycle(sql: Sql, table: string, { ref, from }: CycleTotalsQuery): Steps<number> {
  const newest = yield* sql.one<{ id: number | null }>(`select max(cycle_id) as id from ${table}`, { ...ref })
  let [low, high] = [0, (newest.id ?? 0) + 1]
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const found = yield* sql.get<{ id: number; at: number }>(
      `select cycle_id as id, started_at as at from ${table} and cycle_id >= :middle order by cycle_id limit 1`,
      { ...ref, middle },
    )
    if (found === undefined || found.at >= from - CLOCK_SKEW_MS) high = middle
    else low = found.id + 1
  }
  return low
}

/** Adds the cycles of a step, or divides a long one among its steps. */
function addGroup(
  totals: Map<number, Mutable<CycleTotals>>,
  { group: begin, rows, waitedMs, startedAt, endedAt, ...counts }: CycleGroup,
  { from, stepMs, steps, at }: CycleTotalsQuery,
): void {
  const totalOf = (step: number): Mutable<CycleTotals> => {
    const total = totals.get(step) ?? { ...EMPTY_TOTALS, step }
    totals.set(step, total)
    return total
  }
  const stepOf = (time: number): number => Math.floor((time - from) / stepMs)
  const isStep = begin >= 0
  const end = Math.max(startedAt + 1, endedAt ?? at)
  const last = isStep ? begin / stepMs : stepOf(end - 1)
  for (let step = isStep ? last : Math.max(0, stepOf(startedAt)); step <= Math.min(last, steps - 1); step++) {
    const overlap = Math.min(end, from + (step + 1) * stepMs) - Math.max(startedAt, from + step * stepMs)
    const share = isStep ? 1 : overlap / (end - startedAt)
    const total = totalOf(step)
    total.rows += rows * share
    total.waitedMs += waitedMs * share
  }
  if (endedAt === null || stepOf(endedAt) >= steps) return
  const total = totalOf(stepOf(endedAt))
  total.cycles += counts.cycles
  total.failed += counts.failed
  total.retries += counts.retries
  if (counts.completeSince !== null) total.completeSince = Math.max(total.completeSince ?? 0, counts.completeSince)
}

const EMPTY_TOTALS = { cycles: 0, failed: 0, rows: 0, waitedMs: 0, retries: 0, completeSince: null }
