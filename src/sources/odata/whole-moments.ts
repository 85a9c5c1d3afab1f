import { SyncError, type SyncContext } from '../../contract/index.ts'
import type { EntitySet, RowPage } from './entity-set.ts'
import type { Row, SetPlan } from './plan.ts'
import { above, compared, nextMillisecond } from './query.ts'

export interface Ending {
  readonly top: number
  /** Whether a page that is shorter than asked for is taken for the last one. */
  readonly isShortLast: boolean
}

/**
 * For whoever goes on from a moment alone: a page that does not end among entities of one moment. The last moment is left for
 * the next page; when there is no other on it, that one is read whole, by key.
 */
export async function endBetweenMoments(answer: RowPage, { top, isShortLast }: Ending, entitySet: EntitySet, plan: SetPlan, context: SyncContext): Promise<RowPage> {
  const { rows, nextLink } = answer
  const last = rows.at(-1)
  const hasMore = nextLink !== null || rows.length >= top
  if (last === undefined || (!hasMore && isShortLast)) return answer
  const whole = rows.filter(({ stamp }) => stamp !== last.stamp)
  if (hasMore && whole.length > 0) return { ...answer, rows: whole, isCut: true }
  const moment = await readMoment(last.stamp, entitySet, plan, context)
  // All of it has moved on meanwhile: the page says nothing any more of what comes after it.
  if (whole.length + moment.length === 0) throw new SyncError('SOURCE_INVALID', `${plan.set}: all entities of a page changed while it was read. It is asked for again.`)
  return { ...answer, rows: [...whole, ...moment], isCut: hasMore }
}

/** What a page may grow to, as pages. */
const PAGES_MAX = 64

async function readMoment(stamp: string, entitySet: EntitySet, plan: SetPlan, context: SyncContext): Promise<Row[]> {
  const cursor = plan.cursor!
  const moment = plan.isExact ? [compared(cursor, 'eq', stamp, plan)] : [compared(cursor, 'ge', stamp, plan), compared(cursor, 'lt', nextMillisecond(stamp), plan)]
  const rows: Row[] = []
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const last = rows.at(-1)
    const { rows: more, nextLink } = await entitySet.ask(plan, { conditions: [...moment, ...(last === undefined ? [] : [above(plan.key, last.parts, plan)])], order: plan.key, top: entitySet.limit }, context)
    if (more.length === 0 && nextLink === null) return rows
    rows.push(...more)
  }
  throw new SyncError('SOURCE_INVALID', `${plan.set}: ${rows.length} entities and more share one "${cursor.name}". Raise \`pageSize\`.`)
}
