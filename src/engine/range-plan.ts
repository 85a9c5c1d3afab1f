import { SyncError, type Inflight, type TimeRange } from '../contract/index.ts'
import { parseInstantOrDate } from '../values/instant.ts'
import type { SyncPlan } from './sync-plan.ts'

/**
 * A range read: the records of a range of the source's times, read again through the ordinary commit. It is a listing
 * with a checkpoint of its own, so it resumes after a crash, and the states of the sync and of its backfill stay. Its
 * pages are ordered like those of a listing (invariant 6). A record that is absent from a range may only have another
 * time by now, so a range read deletes nothing.
 */
export function toRangePlan(plan: SyncPlan, range: TimeRange): SyncPlan {
  const { sync, execute, pair, scope } = plan
  if (execute.range === undefined)
    throw new SyncError(
      'RANGE_UNSUPPORTED',
      `${sync}: its source cannot read a range of times${describeReason(execute)}. ${describeAlternative(plan)}`,
    )
  const checked = checkRange(sync, range)
  const { pair: _, listings: __, retentionMs: ___, ...shared } = plan
  const described = describeRange(checked)
  return {
    ...shared,
    sync: toRangeName(pair?.role === 'backfill' ? pair.delta : sync),
    mode: 'replace',
    execute: execute.range(checked),
    range: checked,
    scope: scope === null ? described : `${described} ${scope}`,
  }
}

function describeReason({ rangeUnsupported }: SyncPlan['execute']): string {
  return rangeUnsupported === undefined ? '' : `: ${rangeUnsupported}`
}

function describeAlternative({ sync, mode, pair }: SyncPlan): string {
  if (pair !== undefined)
    return `Run \`tidemark backfill ${pair.role === 'delta' ? sync : pair.delta}\` without a range to read everything.`
  if (mode === 'replace') return `Run \`tidemark run ${sync}\`: every cycle reads everything.`
  return `Run \`tidemark state reset ${sync}\` to see what a start without state reads.`
}

/** The range as it is shown, and as the scope of its checkpoint. */
export function describeRange({ from, to }: TimeRange): string {
  return `range ${from ?? ''}..${to ?? ''}`
}

/** A name that no declared sync can have. */
export function toRangeName(sync: string): string {
  return `${sync}${RANGE_SUFFIX}`
}

/** The sync of a range read. */
export function toSyncName(range: string): string {
  return range.slice(0, -RANGE_SUFFIX.length)
}

export function isRangeName(sync: string): boolean {
  return sync.endsWith(RANGE_SUFFIX)
}

const RANGE_SUFFIX = '~range'

/** Whether the unfinished cycle belongs to the plan: its state is of no use for another range. */
export function continuesRange(
  { scope: planned }: SyncPlan,
  { page, scope }: Pick<Inflight, 'page' | 'scope'>,
): boolean {
  return page === 0 || scope === planned || (planned !== null && scope?.startsWith(`${planned} `) === true)
}

/** The times as canonical instants. */
function checkRange(sync: string, { from, to }: TimeRange): TimeRange {
  const range = {
    ...(from !== undefined && { from: parseRangeTime(sync, 'from', from) }),
    ...(to !== undefined && { to: parseRangeTime(sync, 'to', to) }),
  }
  if (range.from === undefined && range.to === undefined)
    throw new SyncError('ARGUMENT_INVALID', `${sync}: the range has neither \`from\` nor \`to\`. Give at least one.`)
  if (range.from !== undefined && range.to !== undefined && range.from >= range.to)
    throw new SyncError('ARGUMENT_INVALID', `${sync}: the range ends at ${to}, which is not after its start ${from}.`)
  return range
}

function parseRangeTime(sync: string, end: keyof TimeRange, text: string): string {
  const instant = parseInstantOrDate(text)
  if (instant !== null) return instant
  throw new SyncError(
    'ARGUMENT_INVALID',
    `${sync}: \`${end}\` is ${JSON.stringify(text)}. Write a date such as 2024-01-31, or a time such as 2024-01-31T08:00:00Z.`,
  )
}
