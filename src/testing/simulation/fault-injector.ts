import { hashOf } from './random-stream.ts'

export const FAULT_KINDS = [
  // A process
  'crash', 'freeze', 'terminate', 'clock-step',
  // The store
  'store-busy', 'store-unavailable', 'applied-unknown', 'applied-late', 'lost-unknown',
  // The source
  'rate-limited', 'server-error', 'truncated', 'timeout-before', 'timeout-after', 'late-answer',
  // The page
  'page-repeated', 'rows-duplicated', 'short-page', 'empty-page', 'end-flag-early', 'end-flag-never', 'listing-lie',
] as const

/** What befalls a vendor's answers beyond that. */
export const RESPONSE_FAULT_KINDS = [
  'expired-token', 'partial-answer', 'login-page', 'auth-refused',
  // Answers that are well formed and wrong
  'wrong-date', 'wrong-total', 'cached-page', 'unsorted',
] as const

export type FaultKind = (typeof FAULT_KINDS)[number] | (typeof RESPONSE_FAULT_KINDS)[number]
  /** Only some vendors have nested pages, so a few hundred worlds may not meet it. */
  | 'cached-nested-page'

export interface Fault {
  /** Names the place, so that a fault can be left out and the others stay: process, label, how often it was there. */
  readonly id: string
  readonly kind: FaultKind
  readonly label: string
  /** Uniform in [0, 1): how bad. */
  readonly severity: number
}

/**
 * Decides at every place whether a fault strikes. What happens at a place depends on the seed and the place alone, not
 * on what was drawn before; so faults can be removed one by one from a failing run.
 */
export class FaultInjector {
  enabled = true
  readonly injected: Fault[] = []
  readonly #seed: number
  readonly #rates: Readonly<Partial<Record<FaultKind, number>>>
  readonly #only: ReadonlySet<string> | null
  readonly #visits = new Map<string, number>()

  constructor(seed: number, rates: Readonly<Partial<Record<FaultKind, number>>>, only: ReadonlySet<string> | null = null) {
    this.#seed = seed
    this.#rates = rates
    this.#only = only
  }

  draw(who: string, label: string, kinds: readonly FaultKind[]): Fault | null {
    const place = `${who} ${label}`
    const visit = (this.#visits.get(place) ?? 0) + 1
    this.#visits.set(place, visit)
    if (!this.enabled) return null
    let draw = hashOf(this.#seed, place, visit) / 4_294_967_296
    for (const kind of kinds) {
      const rate = this.#rates[kind] ?? 0
      if (draw >= rate) {
        draw -= rate
        continue
      }
      const id = `${place} #${visit}`
      if (this.#only !== null && !this.#only.has(id)) return null
      const fault: Fault = { id, kind, label, severity: rate === 0 ? 0 : draw / rate }
      this.injected.push(fault)
      return fault
    }
    return null
  }

  /** One that turned out to change nothing: it is not counted. */
  withdraw(fault: Fault): void {
    const at = this.injected.lastIndexOf(fault)
    if (at !== -1) this.injected.splice(at, 1)
  }
}
