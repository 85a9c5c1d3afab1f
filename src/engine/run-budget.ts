import type { CycleContext } from './cycle-context.ts'

/** The limit of a run that the page to commit reaches. */
export type ExceededBudget = 'max_pages' | 'timeout'

export function findExceededBudget({ plan, options, counters, startedAt }: CycleContext): ExceededBudget | null {
  const { pagesMax, minutesMax } = plan.limits
  if (counters.pages + 1 >= pagesMax) return 'max_pages'
  if (minutesMax > 0 && options.ports.clock.now() - startedAt >= minutesMax * 60_000) return 'timeout'
  return null
}
