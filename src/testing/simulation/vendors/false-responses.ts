import type { Fault } from '../fault-injector.ts'
import type { VendorRequest, VendorStream } from './vendor-stream.ts'
import { required } from '../../../values/required.ts'

interface StoredResponse {
  readonly at: number
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** Long enough for a page before a pause of the vendor. A response from before an absence of weeks is not repeated. */
const REPEAT_AGE_MAX_MS = 3_600_000

/** Responses that are well formed and not true. */
export class FalseResponses {
  readonly #stream: VendorStream
  readonly #now: () => number
  /** The last true response to each request. */
  readonly #stored = new Map<string, StoredResponse>()
  /** The last true response on each path, and the request that it answered. */
  readonly #last = new Map<string, { readonly key: string; readonly text: string }>()

  /** The paths whose last response was a repeated one. */
  readonly #repeatedPaths = new Set<string>()
  /** When each path last returned the current state. */
  readonly #answeredAt = new Map<string, number>()
  /** The replayed responses: when, and how old they were. */
  readonly #repeats: { readonly at: number; readonly ageMs: number }[] = []

  /** The largest lag of a Date header so far: a reader that trusts it stays that far behind. */
  dateBehindMs: number
  isDateWrong: boolean
  /** The oldest response served from a cache so far. */
  oldestCachedMs = 0
  /** The responses served from a cache: when, and when they were stored. */
  readonly #cachedResponses: { readonly at: number; readonly storedAt: number }[] = []
  readonly #dateSkewMs: number

  constructor(stream: VendorStream, now: () => number, dateSkewMs: number) {
    this.#stream = stream
    this.#now = now
    this.#dateSkewMs = dateSkewMs
    this.dateBehindMs = Math.max(0, -dateSkewMs)
    this.isDateWrong = dateSkewMs !== 0
  }

  /** Whether there is an earlier response to the same request that a cache may still hold. */
  hasStored(asked: VendorRequest): boolean {
    const kept = this.#stored.get(keyOf(asked))
    return kept !== undefined && this.#now() - kept.at <= this.#stream.lagMaxMs
  }

  /** Whether the last response on this path is the page before the requested one. */
  hasPreviousPage(asked: VendorRequest): boolean {
    const token = this.#stream.tokenOf(asked)
    const last = this.#last.get(asked.url.pathname)
    return token !== null && last !== undefined && last.key !== keyOf(asked) && last.text.includes(token)
  }

  /**
   * Whether the last response on this path is young enough to be repeated, as a proxy does within a connection. Not twice
   * in a row: a reader confirms an end by a second request, and two equal wrong answers look like right ones.
   */
  canRepeat({ url }: VendorRequest): boolean {
    const answeredAt = this.#answeredAt.get(url.pathname)
    if (this.#repeatedPaths.has(url.pathname)) return false
    return answeredAt === undefined || this.#now() - answeredAt <= REPEAT_AGE_MAX_MS
  }

  /** The oldest response replayed since. Its Date header is that of the replay. */
  oldestRepeatMs(sinceMs: number): number {
    return Math.max(0, ...this.#repeats.filter(({ at }) => at >= sinceMs).map(({ ageMs }) => ageMs))
  }

  /** When the newest of the responses was stored that a cache has served since; -Infinity if there is none. */
  newestCachedAt(sinceMs: number): number {
    return Math.max(...this.#cachedResponses.filter(({ at }) => at >= sinceMs).map(({ storedAt }) => storedAt))
  }

  async applyFault(response: Response, asked: VendorRequest, lie: Fault | null): Promise<Response> {
    if (response.status !== 200) return response
    this.#noteAge(asked.url.pathname, lie)
    if (isCached(lie)) {
      const { at, text, status, headers } = required(this.#stored.get(keyOf(asked)), 'an entry of stored')
      this.oldestCachedMs = Math.max(this.oldestCachedMs, this.#now() - at)
      this.#cachedResponses.push({ at: this.#now(), storedAt: at })
      return new Response(text, { status, headers })
    }
    const text = await response.text()
    const { status, headers } = response
    const before = this.#last.get(asked.url.pathname)
    this.#last.set(asked.url.pathname, { key: keyOf(asked), text })
    const isPageBefore = lie?.kind === 'page-repeated' && this.#stream.repeats === 'page-before'
    if (isPageBefore) return new Response(required(before, 'before').text, { status, headers })
    if (lie === null) this.#stored.set(keyOf(asked), { at: this.#now(), status, headers: new Headers(headers), text })
    switch (lie?.kind) {
      case 'empty-page':
        return new Response(JSON.stringify(this.#stream.withoutRows!(JSON.parse(text) as Record<string, unknown>)), {
          status,
          headers,
        })
      case 'wrong-total':
        return this.#withWrongTotal(text, new Headers(headers), status, lie.severity)
      default:
        return new Response(text, { status, headers })
    }
  }

  #noteAge(path: string, lie: Fault | null): void {
    const at = this.#now()
    const answeredAt = this.#answeredAt.get(path)
    if (lie?.kind === 'page-repeated') this.#repeatedPaths.add(path)
    else if (lie?.kind !== 'login-page') this.#repeatedPaths.delete(path)
    // Without an earlier response there is none to repeat.
    if (lie?.kind === 'page-repeated' && answeredAt !== undefined) this.#repeats.push({ at, ageMs: at - answeredAt })
    // A sign-in page comes from a proxy in front of the vendor, and is not repeated.
    else if (lie?.kind !== 'login-page') this.#answeredAt.set(path, at)
  }

  /** The Date header of a proxy or of a machine with a wrong clock: hours off, or missing. */
  applyDateFault(response: Response, lie: Fault | null): void {
    if (lie?.kind === 'wrong-date') this.isDateWrong = true
    if (lie?.kind === 'wrong-date' && lie.severity < 0.2) return response.headers.delete('date')
    const skewMs =
      lie?.kind === 'wrong-date'
        ? (lie.severity < 0.6 ? -1 : 1) * Math.round(((lie.severity * 5) % 1) ** 3 * DATE_OFF_MAX_MS)
        : this.#dateSkewMs
    if (skewMs === 0) return
    this.dateBehindMs = Math.max(this.dateBehindMs, -skewMs)
    // A cache keeps the header of the response that it stores.
    const dateMs = isCached(lie)
      ? Date.parse(required(response.headers.get('date'), 'an entry of response.headers'))
      : this.#now()
    response.headers.set('date', new Date(dateMs + skewMs).toUTCString())
  }

  /** Too high, too low or missing. */
  #withWrongTotal(text: string, headers: Headers, status: number, amount: number): Response {
    const total = required(this.#stream.total, 'stream.total')
    const wrong = (count: number): number | undefined =>
      amount < 1 / 3 ? count + 1 + Math.floor(30 * amount) : amount < 2 / 3 ? Math.floor(count / 2) : undefined
    if ('member' in total) {
      const body = JSON.parse(text) as Record<string, unknown>
      return new Response(JSON.stringify({ ...body, [total.member]: wrong(Number(body[total.member])) }), {
        status,
        headers,
      })
    }
    if ('path' in total) {
      const body = JSON.parse(text) as Record<string, any>
      const name = required(total.path.at(-1), 'an entry of total.path')
      const holder = total.path.slice(0, -1).reduce<any>((value, member) => value?.[member], body) ?? null
      // Other requests on the same path return no total.
      if (holder !== null) holder[name] = wrong(Number(holder[name]))
      return new Response(JSON.stringify(body), { status, headers })
    }
    const count = wrong(Number(headers.get(total.header)))
    if (count === undefined) headers.delete(total.header)
    else headers.set(total.header, String(count))
    return new Response(text, { status, headers })
  }
}

const DATE_OFF_MAX_MS = 6 * 3_600_000

function isCached(lie: Fault | null): boolean {
  return lie?.kind === 'cached-page' || lie?.kind === 'cached-nested-page'
}

function keyOf({ url, body }: VendorRequest): string {
  return `${url.href} ${body}`
}
