import type { Args } from './schema.ts'

/** An item of a connection with the place it has in the order, which its cursor encodes. */
export interface Placed<T> {
  readonly item: T
  readonly cursor: string
}

export interface Connection<T> {
  readonly nodes: readonly T[]
  readonly edges: ReadonlyArray<{ readonly cursor: string; readonly node: T }>
  readonly pageInfo: { readonly hasNextPage: boolean; readonly hasPreviousPage: boolean; readonly startCursor: string | null; readonly endCursor: string | null }
  readonly totalCount: number
}

/**
 * A Relay page of ordered items. `after` and `before` say for a cursor whether an item lies beyond it, so a cursor
 * outlives the item it was made from.
 */
export function connectionOf<T>(placed: ReadonlyArray<Placed<T>>, args: Args, beyond: { after: (cursor: string, placed: Placed<T>) => boolean; before: (cursor: string, placed: Placed<T>) => boolean }): Connection<T> {
  const { first, last, after, before } = args as { first?: number | null; last?: number | null; after?: string | null; before?: string | null }
  let window = [...placed]
  const total = window.length
  if (typeof after === 'string') window = window.filter((item) => beyond.after(after, item))
  const skippedBefore = total - window.length
  const untilBefore = window.length
  if (typeof before === 'string') window = window.filter((item) => beyond.before(before, item))
  const skippedAfter = untilBefore - window.length
  const inWindow = window.length
  if (typeof first === 'number') window = window.slice(0, first)
  else if (typeof last === 'number') window = last === 0 ? [] : window.slice(-last)
  const cut = inWindow - window.length
  return {
    nodes: window.map(({ item }) => item),
    edges: window.map(({ item, cursor }) => ({ cursor, node: item })),
    pageInfo: {
      hasNextPage: typeof first === 'number' ? cut > 0 : skippedAfter > 0,
      hasPreviousPage: typeof first === 'number' ? skippedBefore > 0 : cut > 0,
      startCursor: window[0]?.cursor ?? null,
      endCursor: window.at(-1)?.cursor ?? null,
    },
    totalCount: total,
  }
}
