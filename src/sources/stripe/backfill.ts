import type { Change, Execute } from '../../contract/index.ts'
import { token, type TokenState } from '../../strategies/index.ts'
import { required } from '../../values/required.ts'
import type { StripeApi } from './api.ts'
import { getListedObjectFacts, toUpserts, type StreamDatabases } from './changes.ts'
import { isCreatedIn, type CreatedRange } from './created-range.ts'
import { requireString } from './object-fields.ts'
import { PageBudget } from './page-budget.ts'
import type { StripeResource } from './resources.ts'

/** The cursor is the id of the last object that was read completely. */
export type StripeListState = TokenState

/**
 * Reads the objects of a type that were created in the range. A page whose nested lists exceed the request budget ends after a complete object, and the next
 * page continues from there.
 */
export function createBackfill(
  api: StripeApi,
  stream: StripeResource,
  databases: StreamDatabases,
  requestsMax: number,
  created: CreatedRange,
): Execute<StripeListState> {
  return token({
    read: async ({ token: after }, context) => {
      const { data, hasMore } = await api.listObjects(stream, after, context, created)
      const changes: Change[] = []
      const budget = new PageBudget(requestsMax, context)
      const taken = await budget.processWithinBudget(data, context, async (object) => {
        if (!isCreatedIn(object, created)) return
        const complete = await api.completeObject(object, stream.type, stream, budget, context)
        // Null: deleted since the page was listed.
        if (complete !== null)
          changes.push(...toUpserts(complete.object, databases, getListedObjectFacts(complete.object)))
      })
      return {
        changes,
        next:
          hasMore || taken < data.length
            ? requireString(required(data[taken - 1], 'The last object of the page'), 'id')
            : null,
      }
    },
  })
}
