import type { Random } from './ports.ts'

/** A fault that a vendor simulator injects into a response. */
export type ApiFault =
  /**
   * The vendor's own refusal. `retryAfter` replaces the value of its header: seconds, a date, or an invalid value.
   * `secondary` selects the other kind, where a vendor has two.
   */
  | { readonly kind: 'rate-limit'; readonly retryAfter?: string; readonly secondary?: boolean }
  | { readonly kind: 'server-error'; readonly status?: number }
  | { readonly kind: 'unauthorized' }
  /** `cut-off`: the connection breaks in the middle. `short`: the response ends properly with half a body. */
  | { readonly kind: 'truncated'; readonly how?: 'cut-off' | 'short' }
  | { readonly kind: 'slow'; readonly ms: number }
  /** A login or proxy page, with status 200. */
  | { readonly kind: 'html' }
  /** The end flag of a listing is wrong. */
  | { readonly kind: 'end-flag'; readonly value: 'end' | 'more' }
  /** Fewer records than requested, and more to follow. */
  | { readonly kind: 'short-page' }
  /** The requested order is not kept. */
  | { readonly kind: 'unsorted' }
  /** The previous response of the same endpoint, again. */
  | { readonly kind: 'duplicate-page' }
  /** The page token or cursor of this request has expired. */
  | { readonly kind: 'expired-token' }
  /** Status 200, but part of the response is missing and an error beside the data explains it. */
  | { readonly kind: 'partial' }

/** A kind of injected response fault. */
export type ApiFaultKind = ApiFault['kind']

interface PlannedFault {
  readonly fault: ApiFault
  readonly matches: (request: Request) => boolean
  times: number
}

/** Planned faults: one by one, or at a rate per request. */
export class ApiFaults {
  readonly #random: Random
  readonly #planned: PlannedFault[] = []
  #rates: ReadonlyArray<readonly [ApiFault, number]> = []

  constructor(random: Random) {
    this.#random = random
  }

  /** Applies this fault to the next `times` matching requests. */
  plan(fault: ApiFault, options: { readonly times?: number; readonly on?: (request: Request) => boolean } = {}): void {
    this.#planned.push({ fault, times: options.times ?? 1, matches: options.on ?? (() => true) })
  }

  /** From now on each request meets at most one of these, each with its share of all requests. */
  injectAtRates(rates: ReadonlyArray<readonly [ApiFault, number]>): void {
    this.#rates = rates
  }

  clear(): void {
    this.#planned.length = 0
    this.#rates = []
  }

  take(request: Request): ApiFault | undefined {
    const planned = this.#planned.find((candidate) => candidate.times > 0 && candidate.matches(request))
    if (planned !== undefined) {
      planned.times--
      return planned.fault
    }
    if (this.#rates.length === 0) return undefined
    let at = this.#random.next()
    for (const [fault, share] of this.#rates) {
      if (at < share) return fault
      at -= share
    }
    return undefined
  }
}
