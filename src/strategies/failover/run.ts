import { DedupWindow } from './dedup-window.ts'
import type { Health } from './breaker.ts'
import type { FailoverState } from './state.ts'

export const MANAGER_WINDOW = 1_000
const WINDOWS_KEPT = 3

/** What one run of a cycle remembers. */
export class Run {
  readonly tried = new Set<string>()
  /** Providers that asked to wait. The state may not have them: a step that fails as a whole lands none. */
  readonly refusals = new Map<string, Health>()
  /** By the state they led to: a page that must be read again is read with what was known before it. */
  readonly #windows: Array<{ readonly operation: string; readonly state: string; readonly window: DedupWindow }> = []

  withRefusals(state: FailoverState): FailoverState {
    return this.refusals.size === 0 ? state : { ...state, providers: { ...state.providers, ...Object.fromEntries(this.refusals) } }
  }

  windowFor(operation: string, state: FailoverState | undefined, lastTransactionId: string | undefined): DedupWindow {
    const text = JSON.stringify(state)
    const kept = this.#windows.findLast((entry) => entry.operation === operation && entry.state === text)
    return kept?.window.copy() ?? DedupWindow.seeded(MANAGER_WINDOW, lastTransactionId)
  }

  keepWindow(operation: string, state: FailoverState, window: DedupWindow): void {
    this.#windows.push({ operation, state: JSON.stringify(state), window })
    if (this.#windows.length > WINDOWS_KEPT) this.#windows.shift()
  }
}
