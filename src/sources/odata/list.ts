import type { Execute } from '../../contract/index.ts'
import { token, type TokenState } from '../../strategies/index.ts'
import { behind } from '../../strategies/kit/behind.ts'
import type { EntitySet } from './entity-set.ts'
import { changeOf, checkParts, parsed, type SetPlan } from './plan.ts'
import { above } from './query.ts'

/** Where a listing stands; kept as the token of the next page. */
interface Place {
  /** The key of the last entity. */
  readonly after?: readonly string[]
  /** Whether the service has given as many as it was asked for, or a link to the rest. */
  readonly keepsWord: boolean
  /** Where to go on after an empty page that is not the end. */
  readonly link?: string
}

/** All of it by key, from the first entity to the last. */
export function list(entitySet: EntitySet): Execute<TokenState> {
  return behind(token({
    confirms: true,
    async read({ token: text }, context) {
      const plan = await entitySet.plan(context)
      const { after, keepsWord, link } = placeIn(text, plan)
      const followed = link === undefined ? null : await entitySet.follow(plan, link, context)
      const answer = followed ?? await entitySet.ask(plan, { conditions: after === undefined ? [] : [above(plan.key, after, plan)], order: plan.key, top: entitySet.limit }, context)
      const { rows, nextLink } = answer
      const last = rows.at(-1)?.parts ?? after
      const locator = entitySet.locator(answer, context)
      // A short page without a link is the last one, by the rules. But some services cut every page, and do not say so.
      const isEnd = nextLink === null && (rows.length === 0 || (keepsWord && rows.length < entitySet.limit))
      const next: Place = { keepsWord: keepsWord || nextLink !== null || rows.length >= entitySet.limit, ...(last !== undefined && { after: last }), ...(locator !== null && { link: locator }) }
      return { changes: rows.map((row) => changeOf(row, plan)), next: isEnd ? null : JSON.stringify(next) }
    },
  }), LAG_MS)
}

/** How long a change may take until the service shows it. */
const LAG_MS = 30_000

function placeIn(text: string | undefined, plan: SetPlan): Place {
  if (text === undefined) return { keepsWord: false }
  const { keepsWord, after, link } = (parsed(text) ?? {}) as Partial<Place>
  return { keepsWord: keepsWord === true, ...(after !== undefined && { after: checkParts(after, plan) }), ...(typeof link === 'string' && { link }) }
}
