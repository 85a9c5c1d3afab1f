import { SyncError, type JsonValue, type SyncContext } from '../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../values/instant.ts'
import type { PartitionList } from './partitioned.ts'
import { formatIso } from './kit/instants.ts'

/** A window of time, RFC 3339 in UTC: `from` is included, `to` is not. */
export type DateWindow = {
  readonly from: string
  readonly to: string
}

/** The time span to divide, and the length of a window. */
export interface DateWindowsOptions {
  /** RFC 3339, or a date such as `2024-01-31`, which begins in UTC. */
  readonly from: string
  /** The start of the cycle by default. */
  readonly to?: string
  /** An ISO 8601 duration such as `P1D`, `PT6H` or `P1M`. Months and years follow the calendar. */
  readonly step: string
}

const WINDOWS_PER_PAGE = 500

/**
 * Windows of time as the partitions of `partitioned`, for an API that returns the records of a range. The last window
 * ends earlier if the span is not a multiple of the step; it grows with the next cycle.
 *
 * ```ts
 * import { dateWindows, partitioned, type Change, type DateWindow } from 'tidemark'
 *
 * export const orders = partitioned<DateWindow, { page: number }>({
 *   list: dateWindows({ from: '2020-01-01', step: 'P1M' }),
 *   read: async ({ value: { from, to } }, state, { fetch }) => {
 *     const page = state?.page ?? 1
 *     const response = await fetch(`https://shop.example/orders?from=${from}&to=${to}&page=${page}`)
 *     const { orders, pages } = (await response.json()) as { orders: { id: string }[]; pages: number }
 *     const changes = orders.map((order): Change => ({ type: 'upsert', key: order.id, record: order }))
 *     return { changes, hasMore: page < pages, nextState: { page: page + 1 } }
 *   },
 *   concurrency: 4,
 * })
 * ```
 */
export function dateWindows({
  from,
  to,
  step,
}: DateWindowsOptions): (cursor: JsonValue | undefined, context: SyncContext) => Promise<PartitionList<DateWindow>> {
  const startMs = parseTime('from', from)
  const endMs = to === undefined ? null : parseTime('to', to)
  const addSteps = parseStep(step)
  return async (cursor, { cycle }) => {
    const untilMs = endMs ?? cycle.startedAt
    const first = typeof cursor === 'number' ? cursor : 0
    const partitions: { key: string; value: DateWindow }[] = []
    for (let index = first; index < first + WINDOWS_PER_PAGE; index++) {
      // Counted from the start: the last day of a month would otherwise drift.
      const windowMs = addSteps(startMs, index)
      if (windowMs >= untilMs) return { partitions }
      const window = { from: formatIso(windowMs), to: formatIso(Math.min(addSteps(startMs, index + 1), untilMs)) }
      partitions.push({ key: window.from, value: window })
    }
    const next = first + WINDOWS_PER_PAGE
    return { partitions, ...(addSteps(startMs, next) < untilMs && { next }) }
  }
}

function parseTime(name: string, text: string): number {
  const canonical = canonicalizeInstant(DATE_PATTERN.test(text) ? `${text}T00:00:00Z` : text)
  if (canonical === null)
    throw new SyncError(
      'SYNC_INVALID',
      `dateWindows: \`${name}\` is ${JSON.stringify(text)}. Write a date such as 2024-01-31, or a time with a zone.`,
    )
  return instantToMs(canonical)
}

const DATE_PATTERN = /^\d{4}-\d\d-\d\d$/
const STEP_PATTERN = /^P(?=.)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/

/** Returns the time that many steps after a start. */
function parseStep(step: string): (startMs: number, steps: number) => number {
  const parts = STEP_PATTERN.exec(step)
    ?.slice(1)
    .map((digits) => Number(digits ?? 0))
  if (parts === undefined || parts.every((part) => part === 0))
    throw new SyncError(
      'SYNC_INVALID',
      `dateWindows: \`step\` is ${JSON.stringify(step)}. Write a duration above zero, such as P1D, PT6H or P1M.`,
    )
  const [years = 0, months = 0, weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts
  const stepMs = ((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000
  return (startMs, steps) => addMonths(startMs, steps * (years * 12 + months)) + steps * stepMs
}

/** The 31st becomes the last day of a shorter month. */
function addMonths(ms: number, months: number): number {
  if (months === 0) return ms
  const date = new Date(ms)
  const day = date.getUTCDate()
  date.setUTCDate(1)
  date.setUTCMonth(date.getUTCMonth() + months)
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
  date.setUTCDate(Math.min(day, lastDay))
  return date.getTime()
}
