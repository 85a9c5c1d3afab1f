import { SyncError, type TimeRange } from '../../contract/index.ts'
import { parseSince } from '../kit/since.ts'
import { formatTime, formatTimeAfter } from './record-mapping.ts'
import type { Parameters } from './request-template.ts'
import type { RestStream } from './stream.ts'

/** The parameters with which a stream selects records by time. */
export interface TimeFilter {
  /** The start date of the stream as an instant. */
  readonly start: string | undefined
  /** The parameters that select a range of times, rounded to include both ends. */
  select(range: TimeRange): Parameters
}

/** The time filter of a stream; undefined if it has none. Throws if a start date needs one. */
export function createTimeFilter({ name, since, page, follow, partitions, time }: RestStream): TimeFilter | undefined {
  const start = parseSince(since)
  const rule =
    follow?.kind === 'window' || follow?.kind === 'timestamp' ? follow : page.kind === 'timestamp' ? page : undefined
  const hasWindows = partitions !== undefined && 'from' in partitions
  if (start !== undefined && (rule === undefined || hasWindows))
    throw new SyncError(
      'SYNC_INVALID',
      hasWindows
        ? `Stream "${name}": set \`from\` of its windows instead of \`since\`.`
        : `Stream "${name}": \`since\` needs a time filter: \`follow\` by window or timestamp, or timestamp paging.`,
    )
  if (rule === undefined || hasWindows) return undefined
  return {
    start,
    select: ({ from, to }) => ({
      // One unit earlier, for a bound that is exclusive.
      ...(from !== undefined && { [rule.since]: formatTime(subtractMillisecond(from), time) }),
      ...(to !== undefined && rule.until !== undefined && { [rule.until]: formatTimeAfter(to, time) }),
    }),
  }
}

function subtractMillisecond(instant: string): string {
  return new Date(Date.parse(instant) - 1).toISOString()
}
