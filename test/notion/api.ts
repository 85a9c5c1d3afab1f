import type { ServerResponse } from 'node:http'
import { json, serve } from '../sources/kit/loopback.ts'

export interface Item {
  readonly id: string
  readonly updatedAt?: string
  readonly [member: string]: unknown
}

interface Event {
  readonly table: string
  readonly key: string
  /** Null for a row that is gone. */
  readonly name: string | null
  readonly at: string
}

/** Tables behind an HTTP API, for the workers beside this file: listed by page, by what changed, and as a feed of events. */
export class Api {
  readonly tables: Record<string, Item[]> = {}
  readonly events: Event[] = []
  readonly requests: string[] = []
  /** The number of requests that are still answered with a wait of one second. */
  refusals = 0
  url = ''

  static async start(tables: Record<string, Item[]> = {}): Promise<Api> {
    const api = new Api()
    Object.assign(api.tables, tables)
    api.url = await serve((request, response) => api.#answer(new URL(request.url, 'http://api'), response))
    return api
  }

  put(table: string, item: Item): void {
    this.tables[table] = [...this.tables[table]!.filter(({ id }) => id !== item.id), item]
  }

  drop(table: string, key: string): void {
    this.tables[table] = this.tables[table]!.filter(({ id }) => id !== key)
  }

  #answer({ pathname, search, searchParams }: URL, response: ServerResponse): void {
    this.requests.push(pathname + search)
    if (this.refusals > 0) {
      this.refusals--
      return json(response, {}, { status: 429, headers: { 'retry-after': '1' } })
    }
    const asked = (name: string): string => searchParams.get(name) ?? ''
    const size = Number(asked('size'))
    const [table = '', how] = pathname.slice(1).split('/')
    if (table === 'events') {
      const newer = this.events
        .map((event, index) => ({ id: index + 1, ...event }))
        .filter(({ id }) => id > Number(asked('after')))
      return json(response, { events: newer.slice(0, size), hasMore: newer.length > size })
    }
    const items = this.tables[table] ?? []
    if (how === 'changed') {
      const place = (at: string, id: string): string => `${at} ${id}`
      const newer = items
        .filter((item) => place(item.updatedAt!, item.id) > place(asked('since'), asked('after')))
        .toSorted((a, b) => (place(a.updatedAt!, a.id) < place(b.updatedAt!, b.id) ? -1 : 1))
      return json(response, { items: newer.slice(0, size), hasMore: newer.length > size })
    }
    const from = (Number(asked('page') || 1) - 1) * size
    json(response, { items: items.slice(from, from + size), hasMore: items.length > from + size })
  }
}
