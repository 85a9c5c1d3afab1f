import { SyncError, type SyncContext } from '../../contract/index.ts'
import type { EntitySet, RowPage } from './entity-set.ts'
import { requireCursor, type EntityRow, type EntitySetPlan } from './entity-set-plan.ts'
import { buildAfterCondition, buildCursorCondition, nextMillisecond } from './query.ts'

export interface PageEndRule {
  readonly top: number
  /** Whether a page shorter than requested is the last one. */
  readonly isShortPageLast: boolean
}

/**
 * For reads that resume from a timestamp alone: a page must not end inside a group of equal timestamps. The last group
 * is left for the next page; if it is the only one on the page, it is read completely, by key.
 */
export async function completeTimestampTies(
  answer: RowPage,
  { top, isShortPageLast }: PageEndRule,
  entitySet: EntitySet,
  plan: EntitySetPlan,
  context: SyncContext,
): Promise<RowPage> {
  const { rows, nextLink } = answer
  const last = rows.at(-1)
  const hasMore = nextLink !== null || rows.length >= top
  if (last === undefined || (!hasMore && isShortPageLast)) return answer
  const complete = rows.filter(({ timestamp }) => timestamp !== last.timestamp)
  if (hasMore && complete.length > 0) return { ...answer, rows: complete, isTruncated: true }
  const ties = await readTimestampTies(last.timestamp, entitySet, plan, context)
  // All of them have changed meanwhile, so the page no longer proves what follows it.
  if (complete.length + ties.length === 0)
    throw new SyncError(
      'SOURCE_INVALID',
      `${plan.set}: all entities of a page changed while it was read. It will be requested again.`,
    )
  return { ...answer, rows: [...complete, ...ties], isTruncated: hasMore }
}

/** Maximum number of pages that one page may grow to. */
const TIE_PAGES_MAX = 64

async function readTimestampTies(
  timestamp: string,
  entitySet: EntitySet,
  plan: EntitySetPlan,
  context: SyncContext,
): Promise<EntityRow[]> {
  const cursor = requireCursor(plan)
  const conditions = plan.hasExactCursor
    ? [buildCursorCondition(cursor, 'eq', timestamp, plan)]
    : [
        buildCursorCondition(cursor, 'ge', timestamp, plan),
        buildCursorCondition(cursor, 'lt', nextMillisecond(timestamp), plan),
      ]
  const rows: EntityRow[] = []
  let isEmptyBefore = false
  for (let pages = 0; pages < TIE_PAGES_MAX; pages++) {
    const last = rows.at(-1)
    const { rows: more, nextLink } = await entitySet.query(
      plan,
      {
        conditions: [
          ...conditions,
          ...(last === undefined ? [] : [buildAfterCondition(plan.key, last.keyParts, plan)]),
        ],
        order: plan.key,
        top: entitySet.limit,
      },
      context,
    )
    const isEmpty = more.length === 0 && nextLink === null
    // The cursor moves beyond the tie, so one empty answer is not enough.
    if (isEmpty && isEmptyBefore) return rows
    isEmptyBefore = isEmpty
    rows.push(...more)
  }
  throw new SyncError(
    'SOURCE_INVALID',
    `${plan.set}: more than ${rows.length} entities share one "${cursor.name}". Increase \`pageSize\`.`,
  )
}
