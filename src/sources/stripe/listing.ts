import type { Change, Execute } from '../../contract/index.ts'
import { token, type TokenState } from '../../strategies/index.ts'
import type { StripeApi } from './api.ts'
import { listed, upsertsOf, type Databases } from './changes.ts'
import { textOf } from './members.ts'
import { PageBudget } from './page-budget.ts'
import type { Resource } from './resources.ts'

/** The cursor is the id of the last object that was read whole. */
export type StripeListState = TokenState

/**
 * All objects of a type. A page whose nested lists need more requests than one page may make is cut after an object that
 * is whole, and the next page lists on from there.
 */
export function listing(api: StripeApi, stream: Resource, databases: Databases, requestsMax: number): Execute<StripeListState> {
  return token({
    read: async ({ token: after }, context) => {
      const { data, hasMore } = await api.list(stream, after, context)
      const changes: Change[] = []
      const budget = new PageBudget(requestsMax, context)
      const taken = await budget.takeWhile(data, context, async (object) => {
        const whole = await api.whole(object, stream.type, stream, budget, context)
        // Deleted since the page was listed.
        if (whole !== null) changes.push(...upsertsOf(whole.object, databases, listed(whole.object)))
      })
      return { changes, next: hasMore || taken < data.length ? textOf(data[taken - 1]!, 'id') : null }
    },
  })
}
