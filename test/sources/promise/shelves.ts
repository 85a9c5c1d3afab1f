import type { Change, SyncContext } from '../../../src/contract/index.ts'
import { createHttpClient } from '../../../src/sources/kit/http-client.ts'
import { partitioned, type Partition } from '../../../src/strategies/partitioned.ts'
import type { SourceHarness } from '../../../src/testing/source-cases/harness.ts'
import { SkippingClock } from '../../../src/testing/skipping-clock.ts'

/** Mistakes that a source can make when it is read in partitions. */
export interface PartitionMistakes {
  /** A page has the records of all partitions. */
  readonly onePage?: boolean
  /** Where a partition is read is kept in memory. */
  readonly forgetsPage?: boolean
  /** Each partition ends a cycle of its own. */
  readonly endsEarly?: boolean
  /** The tidemark is the time of the end of the cycle. */
  readonly lateTidemark?: boolean
  /** The list of partitions is read once. */
  readonly remembersList?: boolean
  /** The records of a partition that vanished are kept. */
  readonly keepsVanished?: boolean
}

interface Book {
  readonly id: string
  readonly shelf: string
  readonly at: string
  readonly n: number
}

type Progress = { readonly since: string; readonly until?: string; readonly after?: string }

const PAGE_SIZE = 6
const LAG_MS = 1_000

/** A library with shelves of books, and a source that reads it shelf by shelf. */
export function openShelves(mode: 'replace' | 'incremental', mistakes: PartitionMistakes = {}): SourceHarness {
  const clock = new SkippingClock()
  const books = new Map<string, Book>()
  const shelves = new Set(['s0', 's1', 's2'])
  let [writes, created] = [0, 0]
  const put = (id: string): void => {
    const n = ++writes
    const shelf = books.get(id)?.shelf ?? String([...shelves][n % shelves.size])
    books.set(id, { id, shelf, n, at: new Date(clock.now()).toISOString() })
  }
  const answer = ({ pathname, searchParams: query }: URL): unknown => {
    if (pathname === '/shelves') return [...shelves].toSorted()
    const [since, until, after] = ['since', 'until', 'after'].map((name) => query.get(name) ?? '')
    return [...books.values()]
      .filter(({ shelf, at, id }) => `/shelves/${shelf}` === pathname && at >= since! && at < until! && id > after!)
      .toSorted((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, query.has('all') ? undefined : PAGE_SIZE)
  }
  return {
    source: { mode, execute: createSource(mistakes) },
    clock,
    fetch: async (input) => Response.json(answer(new URL(String(input)))),
    create: (count) =>
      Array.from({ length: count }, () => {
        const id = `b${String(++created).padStart(4, '0')}`
        put(id)
        return id
      }),
    change: (keys) => keys.forEach((key) => put(key)),
    remove: (keys) => keys.forEach((key) => books.delete(key)),
    rows: () => Object.fromEntries(books),
    settle: () => clock.skip(5 * LAG_MS),
    multiPageCount: 120,
    deltaReportsDeletes: false,
    partitions: {
      timeOf: (record) => (record as Book).at,
      add: () => void shelves.add(`s${shelves.size + ++writes}`),
      remove() {
        const [shelf = ''] = shelves
        shelves.delete(shelf)
        for (const book of books.values()) if (book.shelf === shelf) books.delete(book.id)
      },
    },
  }
}

function createSource(mistakes: PartitionMistakes) {
  const client = createHttpClient({ baseUrl: 'https://library.test' })
  const memory = new Map<string, Progress>()
  const vanished = new Map<string, Book[]>()
  let remembered: string[] | null = null
  const get = async <Body>(path: string, query: Record<string, string>, context: SyncContext): Promise<Body> => {
    try {
      return (await client.get(path, query, context)).body as Body
    } catch (error) {
      memory.clear()
      throw error
    }
  }
  const listShelves = async (context: SyncContext): Promise<string[]> => {
    const found = remembered ?? (await get<string[]>('/shelves', {}, context))
    if (mistakes.remembersList) remembered = found
    return mistakes.keepsVanished ? [...new Set([...found, ...vanished.keys()])] : found
  }
  const readShelf = async ({ key }: Partition, stored: Progress | undefined, context: SyncContext) => {
    const state = (mistakes.forgetsPage ? memory.get(key) : stored) ?? stored ?? { since: '' }
    const until = state.until ?? new Date(context.clock.now() - LAG_MS).toISOString()
    const query = { since: state.since, until, after: state.after ?? '' }
    const all = mistakes.onePage ? { all: '1' } : {}
    const read = (): Promise<Book[]> => get(`/shelves/${key}`, { ...query, ...all }, context)
    // An empty answer may be wrong, so it is requested twice.
    let found = await read()
    if (found.length === 0) found = await read()
    if (mistakes.keepsVanished) {
      if (found.length > 0) vanished.set(key, [...(vanished.get(key) ?? []), ...found])
      else if (state.after === undefined) found = vanished.get(key) ?? []
    }
    const hasMore = found.length === PAGE_SIZE && !mistakes.onePage
    const next: Progress = hasMore ? { ...state, until, after: String(found.at(-1)?.id) } : { since: until }
    if (hasMore) memory.set(key, next)
    else memory.delete(key)
    const changes = found.map((book): Change => ({ type: 'upsert', key: book.id, record: { ...book } }))
    // Forgotten: the state says only that the partition is not read yet.
    const nextState = mistakes.forgetsPage && hasMore ? { since: state.since, n: context.clock.now() } : next
    return { changes, hasMore, nextState, ...(!hasMore && { tidemark: until }) }
  }
  const execute = partitioned<null, Progress>({
    list: async (_, context) => ({
      partitions: (await listShelves(context)).map((key) => ({ key, value: null })),
    }),
    read: readShelf,
    concurrency: mistakes.onePage ? 32 : 1,
    lagMs: LAG_MS,
  })
  let turn = 0
  return async (state: any, context: SyncContext) => {
    if (mistakes.endsEarly) {
      const keys = await listShelves(context)
      const key = String(keys[turn % keys.length])
      const page = await readShelf({ key, value: null }, state, context)
      if (!page.hasMore) turn++
      return page
    }
    const page = await execute(state, context)
    return mistakes.lateTidemark && !page.hasMore
      ? { ...page, tidemark: new Date(context.clock.now()).toISOString() }
      : page
  }
}
