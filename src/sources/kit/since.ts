import { SyncError, type Execute, type TimeRange } from '../../contract/index.ts'
import { parseInstantOrDate } from '../../values/instant.ts'

/** A start date in a manifest: `since`. Parse it with `parseSince`. */
export const SINCE_SCHEMA = {
  type: 'string',
  pattern: '^\\d{4}-\\d{2}-\\d{2}(?:[Tt ]\\d{2}:\\d{2}:\\d{2}(?:\\.\\d{1,9})?(?:[Zz]|[+-]\\d{2}:?\\d{2}))?$',
  description: 'a start date: write 2024-01-31, or a time with its zone such as 2024-01-31T08:00:00Z',
} as const

/** The start date as a canonical instant; undefined if not configured. A plain date is its midnight in UTC. */
export function parseSince(since: string | undefined): string | undefined {
  if (since === undefined) return undefined
  const instant = typeof since === 'string' ? parseInstantOrDate(since) : null
  if (instant !== null) return instant
  throw new SyncError(
    'SYNC_INVALID',
    `\`since\` is ${JSON.stringify(since)}. Write a date such as 2024-01-31, or a time such as 2024-01-31T08:00:00Z.`,
  )
}

/**
 * Puts the start date into the scope of every page: a listing with a later start date omits rows of the earlier one,
 * which are then deleted only after a confirmation.
 */
export function withSinceScope<State>(execute: Execute<State>, since: string | undefined): Execute<State> {
  if (since === undefined) return execute
  const scope = `since ${since}`
  const limited: Execute<State> = async (state, context) => {
    const page = await execute(state, context)
    return { ...page, scope: page.scope === undefined ? scope : `${page.scope} ${scope}` }
  }
  return Object.assign(limited, execute)
}

/** States why a source cannot read ranges of times; see Execute.rangeUnsupported. */
export function withoutRange<Read extends Execute<any>>(execute: Read, reason: string): Read {
  return Object.assign(execute, { rangeUnsupported: reason })
}

/** The part of a range that is not before the start date: the backfill would delete older rows again. */
export function limitRange(range: TimeRange, since: string | undefined): TimeRange {
  const { from } = range
  return since === undefined || (from !== undefined && from >= since) ? range : { ...range, from: since }
}
