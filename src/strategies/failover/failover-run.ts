import { DedupWindow } from './dedup-window.ts'
import type { ProviderHealth } from './circuit-breaker.ts'
import type { FailoverState } from './state.ts'

export const DEDUP_WINDOW_SIZE = 1_000
const WINDOWS_MAX = 3

/** In-memory state of one run of a cycle. */
export class FailoverRun {
  readonly failedProviders = new Set<string>()
  /** Rate-limited providers. The stored state may lack them: a step that fails as a whole commits nothing. */
  readonly rateLimitedProviders = new Map<string, ProviderHealth>()
  /** Keyed by the resulting state: a page that must be read again uses the window from before it. */
  readonly #windows: Array<{ readonly operation: string; readonly state: string; readonly window: DedupWindow }> = []

  withRateLimits(state: FailoverState): FailoverState {
    return this.rateLimitedProviders.size === 0
      ? state
      : { ...state, providers: { ...state.providers, ...Object.fromEntries(this.rateLimitedProviders) } }
  }

  getDedupWindow(
    operation: string,
    state: FailoverState | undefined,
    lastTransactionId: string | undefined,
  ): DedupWindow {
    const text = JSON.stringify(state)
    const kept = this.#windows.findLast((entry) => entry.operation === operation && entry.state === text)
    return kept?.window.copy() ?? DedupWindow.fromLastId(DEDUP_WINDOW_SIZE, lastTransactionId)
  }

  storeDedupWindow(operation: string, state: FailoverState, window: DedupWindow): void {
    this.#windows.push({ operation, state: JSON.stringify(state), window })
    if (this.#windows.length > WINDOWS_MAX) this.#windows.shift()
  }
}
