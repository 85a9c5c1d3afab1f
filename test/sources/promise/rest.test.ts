import { describe, test } from 'vitest'
import { rest, type RestStream, type TrackedStream } from '../../../src/sources/rest/source.ts'
import { describeSource } from '../../../src/testing/describe-source.ts'
import type { SourceHarness } from '../../../src/testing/source-cases/harness.ts'
import { SkippingClock } from '../../../src/testing/skipping-clock.ts'

const BASE = 'https://api.example.com'
const PARENTS = ['p0', 'p1', 'p2']
const LAG_MS = 10_000
const START = Date.now()

interface Row {
  readonly id: string
  readonly parent: string
  readonly at: string
  readonly n: number
}

/** An API with its own way to answer each kind of stream. */
class ApiRows {
  readonly clock = new SkippingClock()
  readonly rows = new Map<string, Row>()
  readonly parents = new Set(PARENTS)
  #writes = 0

  set(id: string): void {
    const n = ++this.#writes
    const parents = [...this.parents]
    const parent = this.rows.get(id)?.parent ?? String(parents[n % parents.length])
    this.rows.set(id, { id, parent, n, at: new Date(this.clock.now()).toISOString() })
  }

  addParent(): void {
    this.parents.add(`p${this.parents.size + this.#writes}`)
  }

  removeParent(): void {
    const [parent = ''] = this.parents
    this.parents.delete(parent)
    for (const row of this.rows.values()) if (row.parent === parent) this.rows.delete(row.id)
  }

  sorted(): Row[] {
    return [...this.rows.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1))
  }
}

const page = (rows: readonly unknown[], after: string | null): { items: unknown[]; next: string | null } => {
  const start = Number(after ?? 0)
  return { items: rows.slice(start, start + 6), next: start + 6 < rows.length ? String(start + 6) : null }
}

const TOKEN = { kind: 'token', parameter: 'after', next: 'next' } as const
const ITEM = { name: 'items', key: 'id', records: 'items', updatedAt: 'at', lagMs: LAG_MS, page: TOKEN } as const

interface World {
  readonly streams: readonly RestStream[]
  readonly answer: (api: ApiRows, url: URL, body: unknown) => unknown
  readonly deltaReportsDeletes?: boolean
  readonly partitions?: 'fixed' | 'changing'
}

const answerChildren: World['answer'] = (api, { pathname, searchParams: query }) => {
  const after = query.get('after')
  if (pathname === '/parents')
    return page(
      [...api.parents].toSorted().map((id) => ({ id })),
      after,
    )
  const parent = /^\/parents\/(\w+)\/items$/.exec(pathname)?.[1] ?? query.get('parent')
  const since = query.get('since') ?? ''
  return page(
    api.sorted().filter((row) => row.parent === parent && row.at >= since),
    after,
  )
}

const WORLDS: Readonly<Record<string, World>> = {
  'children, listed': {
    streams: [
      { name: 'parents', path: '/parents', key: 'id', records: 'items', page: TOKEN },
      { ...ITEM, path: '/parents/{parent.id}/items', partitions: { parent: 'parents' } },
    ],
    answer: answerChildren,
    partitions: 'changing',
  },
  'children, followed': {
    streams: [
      { name: 'parents', path: '/parents', key: 'id', records: 'items', page: TOKEN },
      {
        ...ITEM,
        path: '/parents/{parent.id}/items',
        partitions: { parent: 'parents', concurrency: 2 },
        deletes: 'ignore',
        follow: { kind: 'window', since: 'since', page: TOKEN },
      },
    ],
    answer: answerChildren,
    deltaReportsDeletes: false,
    partitions: 'changing',
  },
  'a list of values': {
    streams: [
      {
        ...ITEM,
        path: '/items',
        query: { parent: '{partition}' },
        partitions: { values: PARENTS, concurrency: 2 },
      },
    ],
    answer: answerChildren,
    partitions: 'fixed',
  },
  'windows of time': {
    streams: [
      {
        ...ITEM,
        path: '/items',
        query: { from: '{from}', to: '{to}' },
        partitions: { since: 'from', until: 'to', from: new Date(START).toISOString(), step: 'PT2M' },
      },
    ],
    answer: (api, { searchParams: query }) =>
      page(
        api.sorted().filter(({ at }) => at > query.get('from')! && at < query.get('to')!),
        query.get('after'),
      ),
    partitions: 'fixed',
  },
  GraphQL: {
    streams: [
      {
        ...ITEM,
        path: '/graphql',
        graphql: { query: 'query($after: String) { items { nodes { id } } }' },
        records: 'data.items',
        page: { kind: 'relay' },
      },
    ],
    answer(api, _, body) {
      const { variables } = body as { variables: { after?: string } }
      const { items, next } = page(api.sorted(), variables.after ?? null)
      return { data: { items: { nodes: items, pageInfo: { hasNextPage: next !== null, endCursor: next } } } }
    },
  },
  'a search with a body': {
    streams: [
      {
        ...ITEM,
        path: '/search',
        body: { json: { from: '{since}', cursor: '{after}' } },
        deletes: 'ignore',
        follow: { kind: 'window', since: 'since', page: TOKEN },
      },
    ],
    answer(api, _, body) {
      const { from = '', cursor = null } = body as { from?: string; cursor?: string | null }
      return page(
        api.sorted().filter(({ at }) => at >= from),
        cursor,
      )
    },
    deltaReportsDeletes: false,
  },
}

function openHarness({ streams, answer, deltaReportsDeletes, partitions }: World): SourceHarness {
  const api = new ApiRows()
  let created = 0
  return {
    source: (rest({ baseUrl: BASE, streams }) as Record<string, TrackedStream>)['items'] as TrackedStream,
    clock: api.clock,
    fetch: async (input, init) => {
      const body: unknown = typeof init?.body === 'string' ? JSON.parse(init.body) : undefined
      const headers = { date: new Date(api.clock.now()).toUTCString() }
      return Response.json(answer(api, new URL(input), body), { headers })
    },
    create: (count) =>
      Array.from({ length: count }, () => {
        const id = `r${String(++created).padStart(4, '0')}`
        api.set(id)
        return id
      }),
    change: (keys) => keys.forEach((key) => api.set(key)),
    remove: (keys) => keys.forEach((key) => api.rows.delete(key)),
    rows: () => Object.fromEntries(api.rows),
    settle: () => api.clock.skip(5 * 60_000),
    ...(deltaReportsDeletes !== undefined && { deltaReportsDeletes }),
    ...(partitions !== undefined && {
      partitions: {
        timeOf: (record) => (record as Row).at,
        ...(partitions === 'changing' && { add: () => api.addParent(), remove: () => api.removeParent() }),
      },
    }),
  }
}

for (const [name, world] of Object.entries(WORLDS))
  describeSource(`rest ${name}`, () => openHarness(world), { runner: { describe, test } })
