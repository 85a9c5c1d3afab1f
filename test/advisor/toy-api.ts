export interface Item {
  readonly id: string
  readonly name: string
  readonly created_at: string
  readonly updated_at: string
  readonly deleted?: boolean
}

type Query = URLSearchParams

/**
 * An API that answers whatever the advised workers ask: one table, read in every way there is. A page has 100 records, and
 * what was changed shows at once.
 */
export class ToyApi {
  readonly #items = new Map<string, Item>()
  readonly #deleted: { id: string; deleted_at: string }[] = []
  readonly #events: { id: string; type: string; created_at: string; item: Item }[] = []
  /** Whether the lists show deleted items, with a flag. */
  readonly #isFlagged: boolean
  requests = 0

  constructor({ isFlagged }: { isFlagged: boolean }) {
    this.#isFlagged = isFlagged
  }

  put(id: string, name: string, atMs: number): void {
    const at = new Date(atMs).toISOString()
    const item = { id, name, created_at: this.#items.get(id)?.created_at ?? at, updated_at: at }
    this.#items.set(id, item)
    this.#note('item.updated', item, item.updated_at)
  }

  drop(id: string, atMs: number): void {
    const at = new Date(atMs).toISOString()
    const item = this.#items.get(id)!
    if (this.#isFlagged) this.#items.set(id, { ...item, updated_at: at, deleted: true })
    else this.#items.delete(id)
    this.#deleted.push({ id, deleted_at: at })
    this.#note('item.deleted', item, at)
  }

  names(): Record<string, string> {
    return Object.fromEntries(
      [...this.#items.values()].filter(({ deleted }) => deleted !== true).map(({ id, name }) => [id, name]),
    )
  }

  readonly fetch = async (input: string | URL, init: RequestInit = {}): Promise<Response> => {
    this.requests++
    const url = new URL(input)
    if (new Headers(init.headers).get('authorization') !== 'Bearer API_TOKEN') return new Response('', { status: 401 })
    const body = typeof init.body === 'string' ? (JSON.parse(init.body) as Record<string, any>) : {}
    const answer = this.#answer(url.pathname, url.searchParams, body)
    return answer === undefined ? new Response('', { status: 404 }) : Response.json(answer)
  }

  #answer(path: string, query: Query, body: Record<string, any>): object | undefined {
    if (path === '/items') return this.#list(query)
    if (path === '/items/changes') return this.#changes(query)
    if (path === '/items/search') return this.#search(body)
    if (path === '/events') return this.#feed(query)
    if (path === '/deleted')
      return {
        data: page(
          this.#deleted.map((one) => ({ ...one, at: one.deleted_at })),
          query,
          'deleted',
        ),
      }
    return path === '/graphql'
      ? { data: this.#graphql(body['query'] as string, body['variables'] as Record<string, any>) }
      : undefined
  }

  #list(query: Query): object {
    const all = [...this.#items.values()]
    const limit = Number(query.get('limit') ?? all.length)
    if (query.get('sort') === 'newest') {
      const from = Number(query.get('page_token') ?? 0)
      return {
        data: all.toReversed().slice(from, from + limit),
        next: from + limit < all.length ? String(from + limit) : null,
      }
    }
    if (query.has('page'))
      return {
        data: all.slice((Number(query.get('page')) - 1) * limit, Number(query.get('page')) * limit),
        total: all.length,
      }
    if (query.has('offset'))
      return { data: all.slice(Number(query.get('offset')), Number(query.get('offset')) + limit), total: all.length }
    if (query.get('sort') === 'created_at,id')
      return {
        data: page(
          all.map((item) => ({ ...item, at: item.created_at })),
          query,
          'created',
        ),
      }
    const isWindow = query.has('updated_from') || query.has('updated_until')
    if (isWindow || (query.get('sort') === 'updated_at,id' && !query.has('page_token'))) {
      const found = page(
        all.map((item) => ({ ...item, at: item.updated_at })),
        query,
        'updated',
      )
      if (!query.has('sort')) return { data: found, next: null }
      return { data: found, next: found.length < limit ? null : String(limit) }
    }
    const from = Number(query.get('page_token') ?? 0)
    return {
      data: all
        .toSorted((a, b) => order({ ...a, at: a.updated_at }, { ...b, at: b.updated_at }))
        .slice(from, from + limit),
      next: from + limit < all.length ? String(from + limit) : null,
    }
  }

  /** The token is a number of events; without one, everything. */
  #changes(query: Query): object {
    const resume = `@${this.#events.length}`
    const token = query.get('token')
    if (token !== null && token.startsWith('@')) {
      const seen = new Map(
        this.#events
          .slice(Number(token.slice(1)))
          .map(({ type, item, created_at }) => [
            item.id,
            type === 'item.deleted' ? { ...item, updated_at: created_at, deleted: true } : item,
          ]),
      )
      return {
        data: [...seen.values()].filter((item) => this.#isFlagged || !('deleted' in item)),
        next: null,
        sync_token: resume,
      }
    }
    const { data, next } = this.#list(
      new URLSearchParams({ limit: query.get('limit')!, ...(token !== null && { page_token: token }) }),
    ) as { data: Item[]; next: string | null }
    return { data, next, sync_token: next === null ? resume : null }
  }

  #search({ updated, id, sort, limit }: Record<string, any>): object {
    const found = [...this.#items.values()].filter((item) => {
      const ms = Date.parse(item.updated_at)
      return (
        ms >= updated.from &&
        ms <= updated.until &&
        (id.above === undefined || Number(item.id) > Number(id.above)) &&
        (id.upTo === undefined || Number(item.id) <= Number(id.upTo))
      )
    })
    const sorted = found.toSorted((a, b) =>
      sort === 'id' ? Number(a.id) - Number(b.id) : a.updated_at < b.updated_at ? -1 : 1,
    )
    return { data: sorted.slice(0, limit as number), total: found.length }
  }

  #feed(query: Query): object {
    if (query.has('newest')) return { data: this.#events.slice(-1) }
    const at = this.#events.findIndex(({ id }) => id === query.get('after'))
    const data = this.#events.slice(at + 1, at + 101)
    return { data, has_more: at + 101 < this.#events.length }
  }

  #graphql(query: string, variables: Record<string, any>): object {
    const connection = (items: Item[], after: unknown): object => {
      const from = Number(after ?? 0)
      return {
        nodes: items.slice(from, from + (variables['first'] as number)),
        pageInfo: {
          hasNextPage: from + variables['first'] < items.length,
          endCursor: String(from + variables['first']),
        },
      }
    }
    const all = [...this.#items.values()]
    // Three parents; each holds every third item.
    const parent = (number: number, after: unknown): object => ({
      id: `parent${number}`,
      items: connection(
        all.filter((_, index) => index % 3 === number),
        after,
      ),
    })
    if (query.includes('parents('))
      return {
        parents: {
          nodes: [0, 1, 2].map((number) => parent(number, null)),
          pageInfo: { hasNextPage: false, endCursor: null },
        },
      }
    if (!query.includes('parent(')) return { items: connection(all, variables['after']) }
    const asked = Object.keys(variables)
      .filter((name) => name.startsWith('id'))
      .map((name) => name.slice(2))
    return Object.fromEntries(
      asked.map((n) => [`p${n}`, parent(Number((variables[`id${n}`] as string).slice(-1)), variables[`after${n}`])]),
    )
  }

  #note(type: string, item: Item, created_at: string): void {
    this.#events.push({ id: `e${String(this.#events.length).padStart(6, '0')}`, type, created_at, item })
  }
}

interface Placed {
  readonly id: string
  readonly at: string
}

function order(a: Placed, b: Placed): number {
  return a.at === b.at ? (a.id < b.id ? -1 : 1) : a.at < b.at ? -1 : 1
}

/** By time and id; `after` is above the place, `from` includes its moment. */
function page<One extends Placed>(all: readonly One[], query: Query, prefix: string): One[] {
  const [after, from, until, id] = [
    query.get(`${prefix}_after`),
    query.get(`${prefix}_from`),
    query.get(`${prefix}_until`) ?? '9',
    query.get('after_id'),
  ]
  return all
    .filter(
      ({ at, id: own }) =>
        at <= until &&
        (from === null || at >= from) &&
        (after === null || at > after || (at === after && id !== null && own > id)),
    )
    .toSorted(order)
    .slice(0, Number(query.get('limit') ?? all.length))
}
