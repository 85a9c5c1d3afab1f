import { hashOf } from './random-stream.ts'

/** The faults that the simulation can inject into any world. */
export const FAULT_KINDS = [
  // Process
  'crash',
  'freeze',
  'terminate',
  'clock-step',
  // Store
  'store-busy',
  'store-unavailable',
  'applied-unknown',
  'applied-late',
  'lost-unknown',
  // Source
  'rate-limited',
  'server-error',
  'truncated',
  'timeout-before',
  'timeout-after',
  'late-answer',
  // Page
  'page-repeated',
  'rows-duplicated',
  'short-page',
  'empty-page',
  'end-flag-early',
  'end-flag-never',
  'listing-lie',
] as const

/** Further faults of a vendor's responses. */
export const RESPONSE_FAULT_KINDS = [
  'expired-token',
  'partial-answer',
  'login-page',
  'auth-refused',
  // Responses that are well formed and wrong
  'wrong-date',
  'wrong-total',
  'cached-page',
  'unsorted',
] as const

/** A kind of injected fault. */
export type FaultKind =
  | (typeof FAULT_KINDS)[number]
  | (typeof RESPONSE_FAULT_KINDS)[number]
  /** Only some vendors have nested pages, so a few hundred worlds may never reach it. */
  | 'cached-nested-page'

/** An injected fault. */
export interface Fault {
  /**
   * Identifies the injection point, so that one fault can be left out while the others stay: process, label,
   * occurrence.
   */
  readonly id: string
  readonly kind: FaultKind
  readonly label: string
  /** Uniform in [0, 1): severity. */
  readonly severity: number
}

/**
 * Decides at every injection point whether a fault strikes. The decision depends on the seed and the point alone, not
 * on earlier draws, so faults can be removed one by one from a failing run.
 */
export class FaultInjector {
  enabled = true
  readonly injected: Fault[] = []
  readonly #seed: number
  readonly #rates: Readonly<Partial<Record<FaultKind, number>>>
  readonly #only: ReadonlySet<string> | null
  readonly #visits = new Map<string, number>()

  constructor(
    seed: number,
    rates: Readonly<Partial<Record<FaultKind, number>>>,
    only: ReadonlySet<string> | null = null,
  ) {
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

  /** A fault that turned out to change nothing is not counted. */
  withdraw(fault: Fault): void {
    const at = this.injected.lastIndexOf(fault)
    if (at !== -1) this.injected.splice(at, 1)
  }
}
