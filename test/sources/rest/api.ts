import type { FakeClock } from '../../engine/fake-clock.ts'

export type Handler = (url: URL, init: RequestInit | undefined) => unknown

export interface RecordedRequest {
  readonly path: string
  readonly query: Record<string, string>
}

/** An in-memory API on the clock of the test. A handler returns the JSON of the response, or the response itself. */
export class Api {
  readonly asked: RecordedRequest[] = []
  /** The clock skew of the API. */
  skewMs = 0
  tellsTime = true
  readonly #clock: FakeClock
  readonly #handlers: Record<string, Handler>

  constructor(clock: FakeClock, handlers: Record<string, Handler>) {
    this.#clock = clock
    this.#handlers = handlers
  }

  readonly fetch = async (input: string | URL, init?: RequestInit): Promise<Response> => {
    const url = new URL(input)
    this.asked.push({ path: url.pathname, query: Object.fromEntries(url.searchParams) })
    const answer = this.#handlers[url.pathname]?.(url, init)
    if (answer instanceof Response) return answer
    const headers: Record<string, string> = this.tellsTime
      ? { date: new Date(this.#clock.now() + this.skewMs).toUTCString() }
      : {}
    return answer === undefined
      ? Response.json({ message: 'not found' }, { status: 404, headers })
      : Response.json(answer, { headers })
  }

  /** Returns and clears the queries of one path. */
  taken(): Array<Record<string, string>> {
    return this.asked.splice(0).map(({ query }) => query)
  }
}

export const BASE = 'https://api.example.com'
