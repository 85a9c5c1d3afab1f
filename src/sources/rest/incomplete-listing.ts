import type { Execute, SyncContext } from '../../contract/index.ts'

/** The calls in which an answer was ignored. */
const incomplete = new WeakSet<SyncContext>()

/** Notes that an answer of this call was ignored, so that its records are unknown. */
export function markIncomplete(context: SyncContext): void {
  incomplete.add(context)
}

/**
 * Gives a listing with ignored answers a scope of its own. After the first cycle with one the sweep stops and asks, because a
 * row that is missing is not known to be deleted.
 */
export function withScopeOfAnswers<State>(execute: Execute<State>): Execute<State> {
  const scoped: Execute<State> = async (state, context) => {
    const page = await execute(state, context)
    if (incomplete.has(context)) return { ...page, scope: 'some answers ignored' }
    return context.cycle.page === 1 ? { ...page, scope: 'all answers' } : page
  }
  return Object.assign(scoped, execute)
}
