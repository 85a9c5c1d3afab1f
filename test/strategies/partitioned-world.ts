import { SyncError, type Change, type Execute } from '../../src/contract/index.ts'
import { partitioned, type PartitionedOptions } from '../../src/strategies/partitioned.ts'
import type { FakeClock } from '../engine/fake-clock.ts'
import { iso } from './run-strategy.ts'

interface WorldRow {
  readonly id: string
  readonly at: number
  readonly version: number
}

type RowState = { readonly after: readonly [number, string] }

/** A source of partitions that changes while it is read. Deterministic for a seed. */
export class PartitionWorld {
  readonly partitions = new Map<string, Map<string, WorldRow>>()
  /** Every request as `list` or the key of a partition. */
  readonly requests: string[] = []
  /** The most requests that were open at once. */
  openMax = 0
  isCalm = false
  readonly #clock: FakeClock
  #seed: number
  #open = 0
  #created = 0

  constructor(clock: FakeClock, seed: number) {
    this.#clock = clock
    this.#seed = (seed * 2_654_435_761 + 1) >>> 0
    for (let count = 3 + this.roll(6); count > 0; count--) this.addPartition()
  }

  /** From 0 to n - 1. */
  roll(n: number): number {
    this.#seed = (Math.imul(this.#seed, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((this.#seed / 2 ** 32) * n)
  }

  addPartition(): void {
    // Not in the order of creation, so that new partitions appear before, between and after the others.
    const key = `p${(this.#created++ * 7) % 19}-${this.#created}`
    this.partitions.set(key, new Map())
    for (let count = this.roll(6); count > 0; count--) this.writeRow(key, `${key}/r${count}`)
  }

  writeRow(key: string, id: string): void {
    const rows = this.partitions.get(key)
    rows?.set(id, { id, at: this.#clock.now(), version: (rows.get(id)?.version ?? 0) + 1 })
  }

  /** A second passes, and something happens. */
  happen(): void {
    this.#clock.step(1_000)
    if (this.isCalm) return
    const keys = [...this.partitions.keys()]
    const key = keys[this.roll(keys.length)]
    const what = this.roll(10)
    if (what === 0) this.addPartition()
    else if (what === 1 && key !== undefined && keys.length > 3) this.partitions.delete(key)
    else if (key !== undefined) this.writeRow(key, `${key}/r${this.roll(8)}`)
  }

  rows(): WorldRow[] {
    return [...this.partitions.values()].flatMap((rows) => [...rows.values()])
  }

  truth(): Record<string, unknown> {
    return Object.fromEntries(
      this.rows()
        .toSorted((a, b) => (a.id < b.id ? -1 : 1))
        .map(({ id, version }) => [id, { version }]),
    )
  }

  /** `fails` is rolled for every request: one in so many fails. */
  execute(
    options: Partial<PartitionedOptions<string, RowState>> & { fails?: number; build?: typeof partitioned } = {},
  ): Execute<any> {
    const { fails = 0, build = partitioned, ...rest } = options
    const request = async <T>(what: string, answer: () => T): Promise<T> => {
      this.requests.push(what)
      this.openMax = Math.max(this.openMax, ++this.#open)
      this.happen()
      await Promise.resolve()
      try {
        if (!this.isCalm && fails > 0 && this.roll(fails) === 0)
          throw new SyncError('SOURCE_UNAVAILABLE', 'the source is down')
        return answer()
      } finally {
        this.#open--
      }
    }
    return build<string, RowState>({
      list: (cursor) =>
        request('list', () => {
          const keys = [...this.partitions.keys()].toSorted()
          const found = keys.filter((key) => cursor === undefined || key > String(cursor))
          const page = found.slice(0, 4)
          return {
            partitions: page.map((key) => ({ key, value: key })),
            ...(found.length > page.length && { next: page.at(-1) ?? null }),
            total: null,
          }
        }),
      read: ({ key }, state, { clock }) =>
        request(key, () => {
          const [time, last] = state?.after ?? [0, '']
          const found = [...(this.partitions.get(key)?.values() ?? [])]
            .filter(({ at, id }) => at > time || (at === time && id > last))
            .toSorted((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1))
          const page = found.slice(0, 2)
          const end = page.at(-1)
          const changes = page.map(({ id, at, version }): Change => ({
            type: 'upsert',
            key: id,
            record: { version },
            upstreamUpdatedAt: iso(at),
          }))
          const after: RowState['after'] = end === undefined ? [time, last] : [end.at, end.id]
          const hasMore = found.length > page.length
          return { changes, hasMore, nextState: { after }, ...(!hasMore && { tidemark: iso(clock.now()) }) }
        }),
      ...rest,
    })
  }
}
