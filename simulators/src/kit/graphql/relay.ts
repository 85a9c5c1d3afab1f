import { countLeading } from '../sorted-view.ts'
import type { Args } from './schema.ts'

export interface Connection<T> {
  readonly nodes: readonly T[]
  readonly edges: ReadonlyArray<{ readonly cursor: string; readonly node: T }>
  readonly pageInfo: {
    readonly hasNextPage: boolean
    readonly hasPreviousPage: boolean
    readonly startCursor: string | null
    readonly endCursor: string | null
  }
  readonly totalCount: number
}

/** The ordering and cursors of a connection's sorted items. */
export interface ConnectionOptions<Item, Node> {
  readonly cursorOf: (item: Item) => string
  /** Compares the item with the cursor: below zero is before it. A cursor outlives the item it was made from. */
  readonly compare: (item: Item, cursor: string) => number
  readonly render: (item: Item) => Node
}

/** A Relay page of sorted items. */
export function paginateConnection<Item, Node>(
  sorted: readonly Item[],
  args: Args,
  { cursorOf, compare, render: show }: ConnectionOptions<Item, Node>,
): Connection<Node> {
  const { first, last, after, before } = args as {
    first?: number | null
    last?: number | null
    after?: string | null
    before?: string | null
  }
  const from = typeof after === 'string' ? countLeading(sorted, (item) => compare(item, after) <= 0) : 0
  const until = Math.max(
    from,
    typeof before === 'string' ? countLeading(sorted, (item) => compare(item, before) < 0) : sorted.length,
  )
  const start = typeof first !== 'number' && typeof last === 'number' ? Math.max(from, until - last) : from
  const end = typeof first === 'number' ? Math.min(until, from + first) : until
  const edges = sorted.slice(start, end).map((item) => ({ cursor: cursorOf(item), node: show(item) }))
  return {
    nodes: edges.map(({ node }) => node),
    edges,
    pageInfo: {
      hasNextPage: typeof first === 'number' ? end < until : until < sorted.length,
      hasPreviousPage: typeof first === 'number' ? from > 0 : start > from,
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
    totalCount: sorted.length,
  }
}
