import type { Clock } from '../../src/contract/index.ts'
import {
  search,
  type AnchoredExecute,
  type SearchAnswer,
  type SearchOptions,
  type SearchQuery,
  type SearchState,
} from '../../src/strategies/index.ts'

export interface Contact {
  readonly id: string
  readonly modifiedMs: number
  readonly v: number
}

interface Stored extends Contact {
  readonly visibleAt: number
  readonly before: Stored | undefined
}

/** A search that sorts by one field only, in an order of its own among equals that differs from call to call, and late to find. */
export class SearchIndex {
  readonly #clock: Clock
  readonly #contacts = new Map<string, Stored>()
  readonly asked: SearchQuery[] = []
  clockErrorMs = 0
  /** Searches that match more are refused: nothing is sent but the number. */
  windowMax = Number.POSITIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return this.#clock.now() + this.clockErrorMs
  }

  put(id: number | string, { at = this.now(), lateMs = 0 }: { at?: number; lateMs?: number } = {}): void {
    const before = this.#contacts.get(String(id))
    this.#contacts.set(String(id), {
      id: String(id),
      modifiedMs: at,
      v: (before?.v ?? 0) + 1,
      visibleAt: this.#clock.now() + lateMs,
      before,
    })
  }

  truth(): Record<string, unknown> {
    return Object.fromEntries([...this.#contacts.values()].map(({ id, modifiedMs, v }) => [id, { id, modifiedMs, v }]))
  }

  find({ fromMs, untilMs, sortBy, afterId, throughId, limit }: SearchQuery): { items: Contact[]; total: number } {
    const matches = this.#visible().filter(
      ({ id, modifiedMs }) =>
        modifiedMs >= fromMs &&
        modifiedMs <= untilMs &&
        (afterId === undefined || BigInt(id) > BigInt(afterId)) &&
        (throughId === undefined || BigInt(id) <= BigInt(throughId)),
    )
    if (matches.length > this.windowMax) return { items: [], total: matches.length }
    const salt = this.asked.length
    const sorted = matches.toSorted((a, b) =>
      sortBy === 'id'
        ? Number(BigInt(a.id) - BigInt(b.id))
        : a.modifiedMs - b.modifiedMs || shuffled(a.id, salt) - shuffled(b.id, salt),
    )
    return { items: sorted.slice(0, limit), total: matches.length }
  }

  async read(query: SearchQuery): Promise<SearchAnswer<Contact>> {
    this.asked.push(query)
    return this.find(query)
  }

  #visible(): Contact[] {
    const found: Contact[] = []
    for (let contact of this.#contacts.values()) {
      while (contact.visibleAt > this.#clock.now() && contact.before !== undefined) contact = contact.before
      if (contact.visibleAt <= this.#clock.now())
        found.push({ id: contact.id, modifiedMs: contact.modifiedMs, v: contact.v })
    }
    return found
  }
}

function shuffled(id: string, salt: number): number {
  return (Number(BigInt(id) % 1_000_003n) * 7_919 + salt * 104_729) % 10_007
}

/** A connector of the search, as an author would write it. */
export function searchOf(
  index: SearchIndex,
  options: Partial<SearchOptions<Contact>> = {},
): AnchoredExecute<SearchState> {
  return search<Contact>({
    read: (query) => index.read(query),
    modifiedMs: ({ modifiedMs }) => modifiedMs,
    id: ({ id }) => id,
    toChange: toUpsert,
    lagMs: 10_000,
    limit: 100,
    lookBackMs: 300_000,
    ...options,
  })
}

export function toUpsert(contact: Contact): {
  type: 'upsert'
  key: string
  record: { id: string; modifiedMs: number; v: number }
  upstreamUpdatedAt: string
} {
  return {
    type: 'upsert',
    key: contact.id,
    record: { ...contact },
    upstreamUpdatedAt: new Date(contact.modifiedMs).toISOString(),
  }
}
