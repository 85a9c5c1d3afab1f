import type { Clock, SyncContext } from '../../src/contract/index.ts'
import { keyset, type KeysetAnswer, type KeysetOptions, type KeysetQuery } from '../../src/strategies/index.ts'
import { canonicalizeInstant } from '../../src/values/instant.ts'

export interface TableRow {
  readonly id: string
  readonly at: string
  readonly v: number
}

interface Stored extends TableRow {
  readonly visibleAt: number
  /** The version that a search still returns until the newer one is visible. */
  readonly before: Stored | undefined
}

/** A table of another system: sorted by (at, id), with an index that may lag and a clock that may be wrong. */
export class Table {
  readonly #clock: Clock
  readonly #rows = new Map<string, Stored>()
  /** Every question that was asked. */
  readonly asked: KeysetQuery[] = []
  clockErrorMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return this.#clock.now() + this.clockErrorMs
  }

  /** Stamped with the table's own time unless said otherwise. */
  put(
    id: string,
    { at = new Date(this.now()).toISOString(), lateMs = 0 }: { at?: string; lateMs?: number } = {},
  ): void {
    const before = this.#rows.get(id)
    this.#rows.set(id, { id, at, v: (before?.v ?? 0) + 1, visibleAt: this.#clock.now() + lateMs, before })
  }

  remove(id: string): void {
    this.#rows.delete(id)
  }

  /** As the copy should be. */
  truth(): Record<string, TableRow> {
    return Object.fromEntries([...this.#rows.values()].map(({ id, at, v }) => [id, { id, at, v }]))
  }

  select({ after, until, limit }: Pick<KeysetQuery, 'after' | 'until' | 'limit'>): TableRow[] {
    return this.visible()
      .filter(
        ({ at, id }) =>
          after === undefined ||
          instant(at) > instant(after.timestamp) ||
          (instant(at) === instant(after.timestamp) && id > after.id),
      )
      .filter(({ at }) => until === undefined || instant(at) <= instant(until))
      .slice(0, limit)
  }

  visible(): TableRow[] {
    const rows: Stored[] = []
    for (let row of this.#rows.values()) {
      while (row.visibleAt > this.#clock.now() && row.before !== undefined) row = row.before
      if (row.visibleAt <= this.#clock.now()) rows.push(row)
    }
    return rows
      .map(({ id, at, v }) => ({ id, at, v }))
      .toSorted((a, b) => (instant(a.at) < instant(b.at) || (instant(a.at) === instant(b.at) && a.id < b.id) ? -1 : 1))
  }

  async read(query: KeysetQuery, _context?: SyncContext): Promise<KeysetAnswer<TableRow>> {
    this.asked.push(query)
    const items = this.select(query)
    return { items, end: items.length < query.limit }
  }
}

/** A connector of the table, as an author would write it. */
export function keysetOf(
  table: Table,
  options: Partial<KeysetOptions<TableRow>> = {},
): ReturnType<typeof keyset<TableRow>> {
  return keyset<TableRow>({
    read: (query, context) => table.read(query, context),
    timestamp: ({ at }) => at,
    id: ({ id }) => id,
    toChange,
    lagMs: 15_000,
    limit: 100,
    ...options,
  })
}

export function toChange(row: TableRow): {
  type: 'upsert'
  key: string
  record: { id: string; at: string; v: number }
  upstreamUpdatedAt: string
} {
  return { type: 'upsert', key: row.id, record: { ...row }, upstreamUpdatedAt: row.at }
}

export function instant(text: string): string {
  return canonicalizeInstant(text)!
}
