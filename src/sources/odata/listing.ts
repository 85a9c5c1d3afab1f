import type { Execute } from '../../contract/index.ts'
import { token, type TokenState } from '../../strategies/index.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import type { EntitySet } from './entity-set.ts'
import { toChange, checkKeyParts, parseJsonOrNull, type EntitySetPlan } from './entity-set-plan.ts'
import { buildAfterCondition } from './query.ts'

/** Where a listing stands; kept as the token of the next page. */
interface ListingCursor {
  /** The key of the last entity. */
  readonly after?: readonly string[]
  /** Whether the service has given as many as it was asked for, or a link to the rest. */
  readonly keepsWord: boolean
  /** Where to go on after an empty page that is not the end. */
  readonly link?: string
}

/** All of it by key, from the first entity to the last. */
export function createListing(entitySet: EntitySet): Execute<TokenState> {
  return withLaggedTidemark(token({
    confirms: true,
    async read({ token: text }, context) {
      const plan = await entitySet.loadPlan(context)
      const { after, keepsWord, link } = parseListingCursor(text, plan)
      const followed = link === undefined ? null : await entitySet.followLink(plan, link, context)
      const answer = followed ?? await entitySet.query(plan, { conditions: after === undefined ? [] : [buildAfterCondition(plan.key, after, plan)], order: plan.key, top: entitySet.limit }, context)
      const { rows, nextLink } = answer
      const last = rows.at(-1)?.keyParts ?? after
      const locator = entitySet.getLocator(answer, context)
      // A short page without a link is the last one, by the rules. But some services cut every page, and do not say so.
      const isEnd = nextLink === null && (rows.length === 0 || (keepsWord && rows.length < entitySet.limit))
      const next: ListingCursor = { keepsWord: keepsWord || nextLink !== null || rows.length >= entitySet.limit, ...(last !== undefined && { after: last }), ...(locator !== null && { link: locator }) }
      return { changes: rows.map((row) => toChange(row, plan)), next: isEnd ? null : JSON.stringify(next) }
    },
  }), LAG_MS)
}

/** How long a change may take until the service shows it. */
const LAG_MS = 30_000

function parseListingCursor(text: string | undefined, plan: EntitySetPlan): ListingCursor {
  if (text === undefined) return { keepsWord: false }
  const { keepsWord, after, link } = (parseJsonOrNull(text) ?? {}) as Partial<ListingCursor>
  return { keepsWord: keepsWord === true, ...(after !== undefined && { after: checkKeyParts(after, plan) }), ...(typeof link === 'string' && { link }) }
}
