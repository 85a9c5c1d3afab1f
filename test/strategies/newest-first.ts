import { SyncError, type Clock, type Execute } from '../../src/contract/index.ts'
import {
  frontier,
  type FetchContext,
  type FrontierOptions,
  type FrontierPage,
  type FrontierState,
} from '../../src/strategies/index.ts'

export interface Entry {
  readonly id: string
  /** Its rank in the list; a source need not report it. */
  readonly at: number
  /** Since when it has been in the list without a break, wherever it stood. */
  readonly since: number
}

/** A list of bookmarks: newest first, no item is ever inserted in between, and an item that is bookmarked again is at the top. */
export class NewestFirst {
  readonly #clock: Clock
  readonly #places = new Map<string, { at: number; since: number }>()
  #last = 0
  /** How long a token of the next page holds. */
  tokenMs = Number.POSITIVE_INFINITY
  limit = 10
  /** The requests, in order. */
  readonly asked: Array<Pick<FetchContext, 'cursor' | 'sinceItemId' | 'phase'>> = []

  constructor(clock: Clock, ...ids: string[]) {
    this.#clock = clock
    this.add(...ids)
  }

  /** In this order, so that the last is the newest. One that is there already moves to the top. */
  add(...ids: string[]): void {
    for (const id of ids) {
      const since = this.#places.get(id)?.since ?? this.#clock.now()
      this.#places.delete(id)
      this.#places.set(id, { at: ++this.#last, since })
    }
  }

  remove(...ids: string[]): void {
    for (const id of ids) this.#places.delete(id)
  }

  /** Newest first. */
  get ids(): string[] {
    return this.entries.map(({ id }) => id)
  }

  get entries(): Entry[] {
    return [...this.#places].map(([id, place]) => ({ id, ...place })).toReversed()
  }

  read({ cursor, sinceItemId, phase }: Pick<FetchContext, 'cursor' | 'sinceItemId' | 'phase'>): FrontierPage<Entry> {
    this.asked.push({ cursor, sinceItemId, phase })
    const [below, givenAt] =
      cursor === null
        ? [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
        : (cursor.split('@').map(Number) as [number, number])
    if (this.#clock.now() - givenAt > this.tokenMs) throw new SyncError('CURSOR_REJECTED', 'The token is too old.')
    const rest = this.entries.filter(({ at }) => at < below)
    const items = rest.slice(0, this.limit)
    return { items, nextCursor: rest.length > items.length ? `${items.at(-1)!.at}@${this.#clock.now()}` : null }
  }

  /** The requests since the last call, as `forward null`. */
  takeAsked(): string[] {
    return this.asked
      .splice(0)
      .map(({ cursor, phase }) => `${phase} ${cursor === null ? 'null' : cursor.split('@')[0]}`)
  }
}

/** A sync of the list, whose items do not show their order by default. */
export function frontierOf(
  list: NewestFirst,
  options: Partial<FrontierOptions<Entry>> = {},
  fetchPage: (context: FetchContext) => Promise<FrontierPage<Entry>> = async (context) => list.read(context),
): Execute<FrontierState> {
  return frontier<Entry>(fetchPage, {
    id: ({ id }) => id,
    toChange: ({ id }) => ({ type: 'upsert', key: id, record: { id } }),
    ...options,
  })
}

/** first, …, last: `numbered('b', 3)` is b01, b02, b03. */
export function numbered(letter: string, count: number): string[] {
  return Array.from({ length: count }, (_, n) => `${letter}${String(n + 1).padStart(2, '0')}`)
}
