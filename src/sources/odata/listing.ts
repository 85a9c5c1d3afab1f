import type { Execute } from '../../contract/index.ts'
import { token, type TokenState } from '../../strategies/index.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import type { EntitySet } from './entity-set.ts'
import { toChange, checkKeyParts, parseJsonOrNull, type EntitySetPlan } from './entity-set-plan.ts'
import { buildAfterCondition } from './query.ts'

/** Progress of a listing; stored as the token of the next page. */
interface ListingCursor {
  /** The key of the last entity. */
  readonly after?: readonly string[]
  /** Whether the service has returned a full page, or a link to the rest. */
  readonly keepsWord: boolean
  /** Where to continue after an empty page that is not the end. */
  readonly link?: string
}

/** Reads all entities in key order. */
export function createListing(entitySet: EntitySet): Execute<TokenState> {
  return withLaggedTidemark(
    token({
      confirms: true,
      async read({ token: text }, context) {
        const plan = await entitySet.loadPlan(context)
        const { after, keepsWord: keepsPageSize, link } = parseListingCursor(text, plan)
        const followed = link === undefined ? null : await entitySet.followLink(plan, link, context)
        const answer =
          followed ??
          (await entitySet.query(
            plan,
            {
              conditions: after === undefined ? [] : [buildAfterCondition(plan.key, after, plan)],
              order: plan.key,
              top: entitySet.limit,
            },
            context,
          ))
        const { rows, nextLink } = answer
        const last = rows.at(-1)?.keyParts ?? after
        const locator = entitySet.getLocator(answer, context)
        // By the standard, a short page without a link is the last one. But some services truncate every page without
        // reporting it.
        const isEnd = nextLink === null && (rows.length === 0 || (keepsPageSize && rows.length < entitySet.limit))
        const next: ListingCursor = {
          keepsWord: keepsPageSize || nextLink !== null || rows.length >= entitySet.limit,
          ...(last !== undefined && { after: last }),
          ...(locator !== null && { link: locator }),
        }
        return { changes: rows.map((row) => toChange(row, plan)), next: isEnd ? null : JSON.stringify(next) }
      },
    }),
    LAG_MS,
  )
}

/** Maximum delay before a change becomes visible. */
const LAG_MS = 30_000

function parseListingCursor(text: string | undefined, plan: EntitySetPlan): ListingCursor {
  if (text === undefined) return { keepsWord: false }
  const { keepsWord, after, link } = (parseJsonOrNull(text) ?? {}) as Partial<ListingCursor>
  return {
    keepsWord: keepsWord === true,
    ...(after !== undefined && { after: checkKeyParts(after, plan) }),
    ...(typeof link === 'string' && { link }),
  }
}
