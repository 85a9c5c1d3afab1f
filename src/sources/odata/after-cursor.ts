import { SyncError, type Execute, type SyncContext } from '../../contract/index.ts'
import { watermark, type WatermarkQuery, type WatermarkState } from '../../strategies/index.ts'
import type { EntitySet, RowPage } from './entity-set.ts'
import { requireCursor, type EntitySetPlan } from './entity-set-plan.ts'
import { buildAfterCondition, buildCursorCondition, type EntityQuery } from './query.ts'
import type { CursorOptions } from './source.ts'
import { completeTimestampTies } from './timestamp-ties.ts'

/** Reads only entities strictly after the cursor, as many tools do. */
export function createAfterCursorDelta(
  entitySet: EntitySet,
  { cursor, since, deleted, safetyWindow }: CursorOptions,
): Execute<WatermarkState> {
  if (deleted !== undefined || safetyWindow !== undefined)
    throw new SyncError(
      'SYNC_INVALID',
      '`strict` reads only newer entities: remove `deleted` and `safetyWindow`, or `strict`.',
    )
  return watermark({
    streamId: entitySet.name,
    cursorField: cursor,
    key: async (context) => (await entitySet.loadPlan(context)).key.map(({ name }) => name),
    strict: true,
    limit: entitySet.limit,
    ...(since !== undefined && { since }),
    async read(query, context) {
      const plan = await entitySet.loadPlan(context)
      const answer = await readPage(entitySet, plan, query, context)
      const { rows, nextLink, page, isTruncated } = answer
      return {
        items: rows.map(({ record }) => record),
        end: nextLink === null && isTruncated !== true,
        page: entitySet.getLocator(answer, context),
        serverTime: page.answer.serverTime,
      }
    },
  })
}

async function readPage(
  entitySet: EntitySet,
  plan: EntitySetPlan,
  { from, after, order, page, limit }: WatermarkQuery,
  context: SyncContext,
): Promise<RowPage> {
  const at = after?.cursor ?? from?.cursor
  const entityQuery: EntityQuery =
    order === 'key'
      ? {
          conditions: after === undefined ? [] : [buildAfterCondition(plan.key, after.key.map(String), plan)],
          order: plan.key,
          top: limit,
        }
      : {
          conditions: at === undefined ? [] : [buildCursorCondition(requireCursor(plan), 'gt', String(at), plan)],
          order: [requireCursor(plan)],
          top: limit,
        }
  const located = page === undefined ? null : await entitySet.followLink(plan, page, context)
  const answer = located ?? (await entitySet.query(plan, entityQuery, context))
  return order === 'key'
    ? { ...answer, isTruncated: answer.rows.length >= limit }
    : completeTimestampTies(answer, { top: limit, isShortPageLast: true }, entitySet, plan, context)
}
