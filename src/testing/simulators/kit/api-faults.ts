import type { Random } from '../../../contract/index.ts'

export type ApiFault =
  /**
   * The vendor's own refusal. `retryAfter` replaces what its header would say: seconds, a date, or rubbish.
   * `secondary` asks for the other kind, where a vendor has two.
   */
  | { readonly kind: 'rate-limit'; readonly retryAfter?: string; readonly secondary?: boolean }
  | { readonly kind: 'server-error'; readonly status?: number }
  | { readonly kind: 'unauthorized' }
  /** `cut-off`: the connection breaks in the middle. `short`: the answer ends properly with half a body. */
  | { readonly kind: 'truncated'; readonly how?: 'cut-off' | 'short' }
  | { readonly kind: 'slow'; readonly ms: number }
  /** A page of a login or of a proxy, with status 200. */
  | { readonly kind: 'html' }
  /** The flag that tells the end of a listing says the wrong thing. */
  | { readonly kind: 'end-flag'; readonly value: 'end' | 'more' }
  /** Fewer records than asked for, and more to follow. */
  | { readonly kind: 'short-page' }
  /** The order that the request asks for is not kept. */
  | { readonly kind: 'unsorted' }
  /** The previous answer of the same endpoint, again. */
  | { readonly kind: 'duplicate-page' }
  /** The page token or cursor of this request is no longer known. */
  | { readonly kind: 'expired-token' }
  /** Status 200, but part of the answer is missing and an error beside the data says why. */
  | { readonly kind: 'partial' }

export type ApiFaultKind = ApiFault['kind']

interface PlannedFault {
  readonly fault: ApiFault
  readonly matches: (request: Request) => boolean
  times: number
}

/** Faults to come: planned one by one, or at a rate per request. */
export class ApiFaults {
  readonly #random: Random
  readonly #planned: PlannedFault[] = []
  #rates: ReadonlyArray<readonly [ApiFault, number]> = []

  constructor(random: Random) {
    this.#random = random
  }

  /** The next `times` requests that match meet this fault. */
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
