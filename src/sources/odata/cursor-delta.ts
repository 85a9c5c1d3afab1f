import type { SyncContext } from '../../contract/index.ts'
import {
  keyset,
  type AnchoredExecute,
  type KeysetCursor,
  type KeysetQuery,
  type KeysetState,
} from '../../strategies/index.ts'
import { required } from '../../values/required.ts'
import { parseSafetyWindowMs } from '../kit/safety-window.ts'
import type { EntitySet, RowPage } from './entity-set.ts'
import { toChange, parseKey, requireCursor, type EntityRow, type EntitySetPlan } from './entity-set-plan.ts'
import { buildAfterCondition, buildCursorCondition, nextMillisecond, type EntityQuery } from './query.ts'
import type { CursorOptions } from './source.ts'
import { completeTimestampTies } from './timestamp-ties.ts'

export const LAG_MS = 30_000
/** With whole-second timestamps, a row may become visible this much later than its timestamp says. */
const TIMESTAMP_RESOLUTION_MS = 1_000

/** Reads changes by (cursor, key), up to a horizon. */
export function createCursorDelta(
  entitySet: EntitySet,
  { lagMs = LAG_MS, safetyWindow, since }: CursorOptions,
): AnchoredExecute<KeysetState> {
  const overlapMs = parseSafetyWindowMs(safetyWindow)
  return keyset<{ readonly row: EntityRow; readonly plan: EntitySetPlan }>({
    async read(query, context) {
      const plan = await entitySet.loadPlan(context)
      const answer = await readPage(entitySet, plan, query, context)
      const { rows, nextLink, page } = answer
      return {
        items: rows.map((row) => ({ row, plan })),
        // Neither a short page nor a missing link counts as the end: a delta has no second chance.
        end: rows.length === 0 && nextLink === null,
        locator: entitySet.getLocator(answer, context),
        serverTime: page.answer.serverTime,
      }
    },
    timestamp: ({ row }) => row.timestamp,
    id: ({ row }) => row.key,
    toChange: ({ row, plan }) => toChange(row, plan),
    // The sort order of strings and GUIDs is unknown; the service only has to compare them in the same order.
    compareIds: (a, b) => (a === b ? 0 : 1),
    lagMs: lagMs + TIMESTAMP_RESOLUTION_MS,
    limit: entitySet.limit,
    ...(since !== undefined && { since }),
    ...(overlapMs !== undefined && { overlapMs }),
  })
}

async function readPage(
  entitySet: EntitySet,
  plan: EntitySetPlan,
  query: KeysetQuery,
  context: SyncContext,
): Promise<RowPage> {
  const entityQuery = plan.hasExactCursor ? buildKeysetQuery(query, plan) : buildTimestampQuery(query, plan)
  const located = query.locator === undefined ? null : await entitySet.followLink(plan, query.locator, context)
  const answer = located ?? (await entitySet.query(plan, entityQuery, context))
  return plan.hasExactCursor
    ? answer
    : completeTimestampTies(answer, { top: query.limit, isShortPageLast: false }, entitySet, plan, context)
}

/** Starts after the last entity's cursor and key, so entities with equal cursors are neither lost nor read twice. */
function buildKeysetQuery({ after, until, limit }: KeysetQuery, plan: EntitySetPlan): EntityQuery {
  const cursor = requireCursor(plan)
  const order = listOrderProperties(plan)
  const isDay = cursor.type === 'Edm.Date'
  const lower = ({ id, timestamp }: KeysetCursor): string => {
    if (id === '') return buildCursorCondition(cursor, 'ge', timestamp, plan)
    const parts = parseKey(id, plan)
    const keys = order
      .slice(1)
      .map((property) => required(parts[plan.key.indexOf(property)], `key part ${property.name}`))
    return buildAfterCondition(order, [isDay ? timestamp.slice(0, 10) : timestamp, ...keys], plan)
  }
  // The current day may still get more entities.
  const upper = (bound: string): string => buildCursorCondition(cursor, isDay ? 'lt' : 'le', bound, plan)
  return {
    conditions: [...(after === undefined ? [] : [lower(after)]), ...(until === undefined ? [] : [upper(until)])],
    order,
    top: limit,
  }
}

/** For services that return only milliseconds: starts after the last millisecond as a whole. */
function buildTimestampQuery({ after, until, limit }: KeysetQuery, plan: EntitySetPlan): EntityQuery {
  const cursor = requireCursor(plan)
  const lower = ({ id, timestamp }: KeysetCursor): string =>
    buildCursorCondition(cursor, 'ge', id === '' ? timestamp : nextMillisecond(timestamp), plan)
  const upper = (bound: string): string => buildCursorCondition(cursor, 'lt', nextMillisecond(bound), plan)
  return {
    conditions: [...(after === undefined ? [] : [lower(after)]), ...(until === undefined ? [] : [upper(until)])],
    order: listOrderProperties(plan),
    top: limit,
  }
}

function listOrderProperties(plan: EntitySetPlan): EntityQuery['order'] {
  const cursor = requireCursor(plan)
  return [cursor, ...plan.key.filter(({ name }) => name !== cursor.name)]
}
