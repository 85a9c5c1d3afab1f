import type { SyncContext } from '../../contract/index.ts'
import { keyset, type AnchoredExecute, type KeysetQuery, type KeysetState } from '../../strategies/index.ts'
import { parseSafetyWindowMs } from '../kit/safety-window.ts'
import type { EntitySet, RowPage } from './entity-set.ts'
import { toChange, parseKey, type EntityRow, type EntitySetPlan } from './entity-set-plan.ts'
import { buildAfterCondition, buildCursorCondition, nextMillisecond, type EntityQuery } from './query.ts'
import type { CursorOptions } from './source.ts'
import { completeTimestampTies } from './timestamp-ties.ts'

export const LAG_MS = 30_000
/** Where stamps are whole seconds, a row may show that much later than it says. */
const TIMESTAMP_RESOLUTION_MS = 1_000

/** What changed, by (cursor, key), up to a horizon. */
export function createCursorDelta(entitySet: EntitySet, { lagMs = LAG_MS, safetyWindow, since }: CursorOptions): AnchoredExecute<KeysetState> {
  const overlapMs = parseSafetyWindowMs(safetyWindow)
  return keyset<{ readonly row: EntityRow; readonly plan: EntitySetPlan }>({
    async read(query, context) {
      const plan = await entitySet.loadPlan(context)
      const answer = await readPage(entitySet, plan, query, context)
      const { rows, nextLink, page } = answer
      return {
        items: rows.map((row) => ({ row, plan })),
        // Neither a short page nor a missing link is trusted: a delta has no second chance.
        end: rows.length === 0 && nextLink === null,
        locator: entitySet.getLocator(answer, context),
        serverTime: page.answer.serverTime,
      }
    },
    timestamp: ({ row }) => row.timestamp,
    id: ({ row }) => row.key,
    toChange: ({ row, plan }) => toChange(row, plan),
    // How a service sorts texts and GUIDs is its own affair; what counts is that it compares them in the same order.
    compareIds: (a, b) => (a === b ? 0 : 1),
    lagMs: lagMs + TIMESTAMP_RESOLUTION_MS,
    limit: entitySet.limit,
    ...(since !== undefined && { since }),
    ...(overlapMs !== undefined && { overlapMs }),
  })
}

async function readPage(entitySet: EntitySet, plan: EntitySetPlan, query: KeysetQuery, context: SyncContext): Promise<RowPage> {
  const question = plan.hasExactCursor ? buildKeysetQuery(query, plan) : buildTimestampQuery(query, plan)
  const located = query.locator === undefined ? null : await entitySet.followLink(plan, query.locator, context)
  const answer = located ?? await entitySet.query(plan, question, context)
  return plan.hasExactCursor ? answer : completeTimestampTies(answer, { top: query.limit, isShortPageLast: false }, entitySet, plan, context)
}

/** Above the last entity's cursor and key: those that share a moment are neither lost nor read twice. */
function buildKeysetQuery({ after, until, limit }: KeysetQuery, plan: EntitySetPlan): EntityQuery {
  const cursor = plan.cursor!
  const order = listOrderProperties(plan)
  const isDay = cursor.type === 'Edm.Date'
  const lower = (): string => {
    if (after!.id === '') return buildCursorCondition(cursor, 'ge', after!.timestamp, plan)
    const parts = parseKey(after!.id, plan)
    const keys = order.slice(1).map((property) => parts[plan.key.indexOf(property)]!)
    return buildAfterCondition(order, [isDay ? after!.timestamp.slice(0, 10) : after!.timestamp, ...keys], plan)
  }
  // Of a day that is not over there may be more to come.
  const upper = (): string => buildCursorCondition(cursor, isDay ? 'lt' : 'le', until!, plan)
  return { conditions: [...(after === undefined ? [] : [lower()]), ...(until === undefined ? [] : [upper()])], order, top: limit }
}

/** Where answers show no more than milliseconds: above the last one, all of it. */
function buildTimestampQuery({ after, until, limit }: KeysetQuery, plan: EntitySetPlan): EntityQuery {
  const cursor = plan.cursor!
  const lower = (): string => buildCursorCondition(cursor, 'ge', after!.id === '' ? after!.timestamp : nextMillisecond(after!.timestamp), plan)
  const upper = (): string => buildCursorCondition(cursor, 'lt', nextMillisecond(until!), plan)
  return { conditions: [...(after === undefined ? [] : [lower()]), ...(until === undefined ? [] : [upper()])], order: listOrderProperties(plan), top: limit }
}

function listOrderProperties({ cursor, key }: EntitySetPlan): EntityQuery['order'] {
  return [cursor!, ...key.filter(({ name }) => name !== cursor!.name)]
}
