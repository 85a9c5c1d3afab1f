import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A record of the simulated list. */
export interface ListedRecord {
  readonly id: string
  readonly updated_at: string | number
  readonly deleted?: boolean
}

/** One request, parsed. */
export interface ListQuestion {
  readonly url: URL
  readonly since: string | null
  readonly limit: number
  readonly cursor: string | null
  /** From 1. */
  readonly number: number
}

/** The behaviours of a server that a test replaces by a lie. */
export interface ApiBehaviour {
  readonly records: (number: number) => readonly ListedRecord[]
  readonly select: (records: readonly ListedRecord[], question: ListQuestion) => readonly ListedRecord[]
  readonly sort: (records: readonly ListedRecord[], question: ListQuestion) => readonly ListedRecord[]
  readonly sizeOf: (question: ListQuestion) => number
  /** The index of the first row of a page. */
  readonly startOf: (sorted: readonly ListedRecord[], question: ListQuestion) => number
  readonly nextOf: (page: readonly ListedRecord[], end: number) => string | null
  readonly headers: (question: ListQuestion) => Readonly<Record<string, string>>
  readonly hasMore: (end: number, sorted: readonly ListedRecord[], question: ListQuestion) => boolean
  readonly one: (record: ListedRecord | undefined) => { readonly status: number; readonly body: unknown }
  readonly page: (page: readonly ListedRecord[], question: ListQuestion) => readonly ListedRecord[]
}

const DAY_MS = 86_400_000

/** Forty records of four days in pairs with one time; the newest is an hour old. */
export function createRecords(count = 40): ListedRecord[] {
  const start = Math.floor(Date.now() / 1_000) * 1_000 - 4 * DAY_MS - 3_600_000
  return Array.from({ length: count }, (_, index) => ({
    id: `rec_${String(index).padStart(3, '0')}`,
    updated_at: new Date(
      start + Math.floor(index / 2) * ((4 * DAY_MS) / (count / 2)) + (index > 20 ? 137 : 421),
    ).toISOString(),
  }))
}

/** The behaviour of an API that does what it says. */
export function createHonestBehaviour(records: readonly ListedRecord[] = createRecords()): ApiBehaviour {
  return {
    records: () => records,
    select: (all, { since }) => all.filter(({ updated_at: at }) => since === null || String(at) >= since),
    sort: (all, { url }) => {
      const sorted = all.toSorted(compareByTime)
      return url.searchParams.get('order') === 'desc' ? sorted.toReversed() : sorted
    },
    sizeOf: ({ limit }) => Math.min(limit, 100),
    startOf: (sorted, { cursor }) => (cursor === null ? 0 : sorted.findIndex(({ id }) => id === cursor) + 1),
    nextOf: (page) => page.at(-1)?.id ?? null,
    headers: ({ number }) => ({ 'x-ratelimit-limit': '600', 'x-ratelimit-remaining': String(600 - number) }),
    hasMore: (end, sorted) => end < sorted.length,
    one: (record) =>
      record === undefined ? { status: 404, body: { error: 'not found' } } : { status: 200, body: record },
    page: (page) => page,
  }
}

/** Orders records by time, then by id. */
export function compareByTime(a: ListedRecord, b: ListedRecord): number {
  return a.updated_at < b.updated_at ? -1 : a.updated_at > b.updated_at ? 1 : a.id < b.id ? -1 : 1
}

/** A list API on a loopback port. */
export interface ServedApi extends AsyncDisposable {
  readonly url: string
  /** The requests that arrived. */
  readonly requests: readonly string[]
  readonly authorizations: readonly (string | undefined)[]
}

/** Serves a list with these behaviours. */
export async function serveApi(lies: Partial<ApiBehaviour> = {}, records = createRecords()): Promise<ServedApi> {
  const api = { ...createHonestBehaviour(records), ...lies }
  const requests: string[] = []
  const authorizations: (string | undefined)[] = []
  const server = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url ?? '/', 'http://127.0.0.1')
    authorizations.push(incoming.headers.authorization)
    requests.push(`${incoming.method} ${url.pathname}${url.search}`)
    const question: ListQuestion = {
      url,
      since: url.searchParams.get('updated_since'),
      limit: Number(url.searchParams.get('limit') ?? 20),
      cursor: url.searchParams.get('cursor'),
      number: requests.length,
    }
    const send = (status: number, body: unknown): void => {
      outgoing.writeHead(status, { 'content-type': 'application/json', ...api.headers(question) })
      outgoing.end(JSON.stringify(body))
    }
    const all = api.records(requests.length)
    const one = /^\/v1\/items\/(.+)$/.exec(url.pathname)?.[1]
    if (one !== undefined) {
      const { status, body } = api.one(all.find(({ id }) => id === one))
      return send(status, body)
    }
    const sorted = api.sort(api.select(all, question), question)
    const start = api.startOf(sorted, question)
    const page = api.page(sorted.slice(start, start + api.sizeOf(question)), question)
    const end = start + page.length
    const more = api.hasMore(end, sorted, question)
    send(200, { data: page, has_more: more, next_cursor: more ? api.nextOf(page, end) : null })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/items`,
    requests,
    authorizations,
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** The address to probe: its parameters are known to the API, and those without a value are not sent. */
export const QUERY = '?limit=20&cursor=&updated_since=&sort=updated_at&order=asc'
