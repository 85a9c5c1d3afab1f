import type { Execute } from '../../contract/index.ts'

/** For the range read of a strategy that only follows changes: without a state it reads from the start of the range. */
export function asIncremental<State>(execute: Execute<State>): Execute<State> {
  return (state, context) => execute(state, { ...context, cycle: { ...context.cycle, mode: 'incremental' } })
}
