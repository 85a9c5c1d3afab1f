import type { Execute, SyncContext } from '../../contract/index.ts'

/** The calls in which an answer was ignored. */
const incomplete = new WeakSet<SyncContext>()

/** Notes that an answer of this call was ignored, so that its records are unknown. */
export function markIncomplete(context: SyncContext): void {
  incomplete.add(context)
}

export function isMarkedIncomplete(context: SyncContext): boolean {
  return incomplete.has(context)
}

/** Marks the pages of calls in which an answer was ignored, because a row that is missing is not known to be deleted. */
export function reportIncomplete<Reader extends Execute<any>>(execute: Reader): Reader {
  const reported: Execute<any> = async (state, context) => {
    const page = await execute(state, context)
    return incomplete.has(context) ? { ...page, isIncomplete: true } : page
  }
  return Object.assign(reported, execute)
}

/** With these statuses the source says that there is nothing, so that its rows may be deleted. */
export const GONE_STATUSES: readonly number[] = [404, 410]
