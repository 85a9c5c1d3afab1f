import type { Execute } from '../../contract/index.ts'
import { formatIso } from './instants.ts'

/** Adds the tidemark of a listing: it covers everything visible when the cycle began, minus the source's lag. */
export function withLaggedTidemark<State>(execute: Execute<State>, lagMs: number): Execute<State> {
  const read: Execute<State> = async (state, context) => {
    const page = await execute(state, context)
    return page.hasMore || page.tidemark !== undefined
      ? page
      : { ...page, tidemark: formatIso(context.cycle.startedAt - lagMs) }
  }
  return Object.assign(read, execute)
}
