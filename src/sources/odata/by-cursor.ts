import type { SyncContext } from '../../contract/index.ts'
import { keyset, type Anchored, type KeysetQuery, type KeysetState } from '../../strategies/index.ts'
import { windowMs } from '../kit/safety-window.ts'
import type { EntitySet, RowPage } from './entity-set.ts'
import { changeOf, keyParts, type Row, type SetPlan } from './plan.ts'
import { above, compared, nextMillisecond, type Question } from './query.ts'
import type { CursorOptions } from './source.ts'
import { endBetweenMoments } from './whole-moments.ts'

export const LAG_MS = 30_000
/** Where stamps are whole seconds, a row may show that much later than it says. */
const STAMP_MS = 1_000

/** What changed, by (cursor, key), up to a horizon. */
export function byCursor(entitySet: EntitySet, { lagMs = LAG_MS, safetyWindow, since }: CursorOptions): Anchored<KeysetState> {
  const overlapMs = windowMs(safetyWindow)
  return keyset<{ readonly row: Row; readonly plan: SetPlan }>({
    async read(query, context) {
      const plan = await entitySet.plan(context)
      const answer = await readPage(entitySet, plan, query, context)
      const { rows, nextLink, page } = answer
      return {
        items: rows.map((row) => ({ row, plan })),
        // Neither a short page nor a missing link is trusted: a delta has no second chance.
        end: rows.length === 0 && nextLink === null,
        locator: entitySet.locator(answer, context),
        serverTime: page.answer.serverTime,
      }
    },
    timestamp: ({ row }) => row.stamp,
    id: ({ row }) => row.key,
    toChange: ({ row, plan }) => changeOf(row, plan),
    // How a service sorts texts and GUIDs is its own affair; what counts is that it compares them in the same order.
    compareIds: (a, b) => (a === b ? 0 : 1),
    lagMs: lagMs + STAMP_MS,
    limit: entitySet.limit,
    ...(since !== undefined && { since }),
    ...(overlapMs !== undefined && { overlapMs }),
  })
}

async function readPage(entitySet: EntitySet, plan: SetPlan, query: KeysetQuery, context: SyncContext): Promise<RowPage> {
  const question = plan.isExact ? byPlace(query, plan) : byMoment(query, plan)
  const located = query.locator === undefined ? null : await entitySet.follow(plan, query.locator, context)
  const answer = located ?? await entitySet.ask(plan, question, context)
  return plan.isExact ? answer : endBetweenMoments(answer, { top: query.limit, isShortLast: false }, entitySet, plan, context)
}

/** Above the last entity's cursor and key: those that share a moment are neither lost nor read twice. */
function byPlace({ after, until, limit }: KeysetQuery, plan: SetPlan): Question {
  const cursor = plan.cursor!
  const order = orderOf(plan)
  const isDay = cursor.type === 'Edm.Date'
  const lower = (): string => {
    if (after!.id === '') return compared(cursor, 'ge', after!.timestamp, plan)
    const parts = keyParts(after!.id, plan)
    const keys = order.slice(1).map((property) => parts[plan.key.indexOf(property)]!)
    return above(order, [isDay ? after!.timestamp.slice(0, 10) : after!.timestamp, ...keys], plan)
  }
  // Of a day that is not over there may be more to come.
  const upper = (): string => compared(cursor, isDay ? 'lt' : 'le', until!, plan)
  return { conditions: [...(after === undefined ? [] : [lower()]), ...(until === undefined ? [] : [upper()])], order, top: limit }
}

/** Where answers show no more than milliseconds: above the last one, all of it. */
function byMoment({ after, until, limit }: KeysetQuery, plan: SetPlan): Question {
  const cursor = plan.cursor!
  const lower = (): string => compared(cursor, 'ge', after!.id === '' ? after!.timestamp : nextMillisecond(after!.timestamp), plan)
  const upper = (): string => compared(cursor, 'lt', nextMillisecond(until!), plan)
  return { conditions: [...(after === undefined ? [] : [lower()]), ...(until === undefined ? [] : [upper()])], order: orderOf(plan), top: limit }
}

function orderOf({ cursor, key }: SetPlan): Question['order'] {
  return [cursor!, ...key.filter(({ name }) => name !== cursor!.name)]
}
