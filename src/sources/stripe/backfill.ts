import type { Change, Execute } from '../../contract/index.ts'
import { token, type TokenState } from '../../strategies/index.ts'
import type { StripeApi } from './api.ts'
import { getListedObjectFacts, toUpserts, type StreamDatabases } from './changes.ts'
import { requireString } from './object-fields.ts'
import { PageBudget } from './page-budget.ts'
import type { StripeResource } from './resources.ts'

/** The cursor is the id of the last object that was read whole. */
export type StripeListState = TokenState

/**
 * All objects of a type. A page whose nested lists need more requests than one page may make is cut after an object that
 * is whole, and the next page lists on from there.
 */
export function createBackfill(api: StripeApi, stream: StripeResource, databases: StreamDatabases, requestsMax: number): Execute<StripeListState> {
  return token({
    read: async ({ token: after }, context) => {
      const { data, hasMore } = await api.listObjects(stream, after, context)
      const changes: Change[] = []
      const budget = new PageBudget(requestsMax, context)
      const taken = await budget.processWithinBudget(data, context, async (object) => {
        const whole = await api.completeObject(object, stream.type, stream, budget, context)
        // Deleted since the page was listed.
        if (whole !== null) changes.push(...toUpserts(whole.object, databases, getListedObjectFacts(whole.object)))
      })
      return { changes, next: hasMore || taken < data.length ? requireString(data[taken - 1]!, 'id') : null }
    },
  })
}
