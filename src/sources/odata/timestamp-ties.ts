import { SyncError, type SyncContext } from '../../contract/index.ts'
import type { EntitySet, RowPage } from './entity-set.ts'
import type { EntityRow, EntitySetPlan } from './entity-set-plan.ts'
import { buildAfterCondition, buildCursorCondition, nextMillisecond } from './query.ts'

export interface PageEndRule {
  readonly top: number
  /** Whether a page that is shorter than asked for is taken for the last one. */
  readonly isShortPageLast: boolean
}

/**
 * For whoever goes on from a moment alone: a page that does not end among entities of one moment. The last moment is left for
 * the next page; when there is no other on it, that one is read whole, by key.
 */
export async function completeTimestampTies(answer: RowPage, { top, isShortPageLast: isShortLast }: PageEndRule, entitySet: EntitySet, plan: EntitySetPlan, context: SyncContext): Promise<RowPage> {
  const { rows, nextLink } = answer
  const last = rows.at(-1)
  const hasMore = nextLink !== null || rows.length >= top
  if (last === undefined || (!hasMore && isShortLast)) return answer
  const whole = rows.filter(({ timestamp: stamp }) => stamp !== last.timestamp)
  if (hasMore && whole.length > 0) return { ...answer, rows: whole, isTruncated: true }
  const moment = await readTimestampTies(last.timestamp, entitySet, plan, context)
  // All of it has moved on meanwhile: the page says nothing any more of what comes after it.
  if (whole.length + moment.length === 0) throw new SyncError('SOURCE_INVALID', `${plan.set}: all entities of a page changed while it was read. It is asked for again.`)
  return { ...answer, rows: [...whole, ...moment], isTruncated: hasMore }
}

/** What a page may grow to, as pages. */
const TIE_PAGES_MAX = 64

async function readTimestampTies(stamp: string, entitySet: EntitySet, plan: EntitySetPlan, context: SyncContext): Promise<EntityRow[]> {
  const cursor = plan.cursor!
  const moment = plan.hasExactCursor ? [buildCursorCondition(cursor, 'eq', stamp, plan)] : [buildCursorCondition(cursor, 'ge', stamp, plan), buildCursorCondition(cursor, 'lt', nextMillisecond(stamp), plan)]
  const rows: EntityRow[] = []
  for (let pages = 0; pages < TIE_PAGES_MAX; pages++) {
    const last = rows.at(-1)
    const { rows: more, nextLink } = await entitySet.query(plan, { conditions: [...moment, ...(last === undefined ? [] : [buildAfterCondition(plan.key, last.keyParts, plan)])], order: plan.key, top: entitySet.limit }, context)
    if (more.length === 0 && nextLink === null) return rows
    rows.push(...more)
  }
  throw new SyncError('SOURCE_INVALID', `${plan.set}: ${rows.length} entities and more share one "${cursor.name}". Raise \`pageSize\`.`)
}
