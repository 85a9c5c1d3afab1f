import { SyncError, type Execute, type SyncContext } from '../../contract/index.ts'
import { watermark, type WatermarkQuery, type WatermarkState } from '../../strategies/index.ts'
import type { EntitySet, RowPage } from './entity-set.ts'
import type { SetPlan } from './plan.ts'
import { above, compared, type Question } from './query.ts'
import type { CursorOptions } from './source.ts'
import { endBetweenMoments } from './whole-moments.ts'

/** What is newer than the position and nothing else, as many tools ask. */
export function strictly(entitySet: EntitySet, { cursor, since, deleted, safetyWindow }: CursorOptions): Execute<WatermarkState> {
  if (deleted !== undefined || safetyWindow !== undefined) throw new SyncError('SYNC_INVALID', '`strict` asks for what is newer and nothing else: it goes with neither `deleted` nor `safetyWindow`.')
  return async (state, context) => {
    const plan = await entitySet.plan(context)
    const execute = watermark({
      streamId: entitySet.name,
      cursorField: cursor,
      key: plan.key.map(({ name }) => name),
      strict: true,
      limit: entitySet.limit,
      ...(since !== undefined && { since }),
      async read(query) {
        const answer = await readPage(entitySet, plan, query, context)
        const { rows, nextLink, page, isCut } = answer
        return { items: rows.map(({ record }) => record), end: nextLink === null && isCut !== true, page: entitySet.locator(answer, context), serverTime: page.answer.serverTime }
      },
    })
    return execute(state, context)
  }
}

async function readPage(entitySet: EntitySet, plan: SetPlan, { from, after, order, page, limit }: WatermarkQuery, context: SyncContext): Promise<RowPage> {
  const at = after?.cursor ?? from?.cursor
  const question: Question = order === 'key'
    ? { conditions: after === undefined ? [] : [above(plan.key, after.key.map(String), plan)], order: plan.key, top: limit }
    : { conditions: at === undefined ? [] : [compared(plan.cursor!, 'gt', String(at), plan)], order: [plan.cursor!], top: limit }
  const located = page === undefined ? null : await entitySet.follow(plan, page, context)
  const answer = located ?? await entitySet.ask(plan, question, context)
  return order === 'key' ? { ...answer, isCut: answer.rows.length >= limit } : endBetweenMoments(answer, { top: limit, isShortLast: true }, entitySet, plan, context)
}
