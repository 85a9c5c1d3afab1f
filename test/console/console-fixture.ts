import { failover, frontier, pagedProvider, SyncError, Worker, type Change } from '../../src/index.ts'
import type { Destination, Ports, Store } from '../../src/contract/index.ts'
import { DestinationRunner } from '../../src/destinations/loop/destination-runner.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemFetch } from '../../src/platform/fetch.ts'
import { holderName } from '../../src/platform/lease-holder.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { createSecrets } from '../../src/platform/secrets.ts'
import { listDeclaredSyncs } from '../../src/runner/declared-sync.ts'
import { Runner } from '../../src/runner/runner.ts'
import { createServer, type Server, type ServerOptions } from '../../src/server/server.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { openMemoryDestination } from '../destinations/memory-destination.ts'

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
export const ports: Ports = { clock: systemClock, random: systemRandom, log: silent }
const RUNTIME = { ports, fetch: systemFetch, secrets: createSecrets({}) }

/**
 * A small shop: a pair, a list sorted newest first, a failing sync, one that another provider takes over, one with
 * invalid records, and a paused one. One destination follows, another rejects a record.
 */
export class ConsoleFixture {
  readonly store: Store
  readonly server: Server
  readonly url: string
  readonly source: ShopSource
  readonly #runner: Runner
  readonly #destinations: DestinationRunner

  private constructor(
    given: Pick<ConsoleFixture, 'store' | 'server' | 'url' | 'source'>,
    runner: Runner,
    destinations: DestinationRunner,
  ) {
    this.store = given.store
    this.server = given.server
    this.url = given.url
    this.source = given.source
    this.#runner = runner
    this.#destinations = destinations
  }

  static async open(options: Partial<ServerOptions> = {}): Promise<ConsoleFixture> {
    const store = await openSqliteStore({ file: ':memory:' })
    const source = new ShopSource()
    const syncs = listDeclaredSyncs(createShopWorker(source))
    await store.signalSync({ worker: 'shop', sync: 'refunds' }, { kind: 'pause', actor: 'ana', at: Date.now() })
    const runner = new Runner({ store, syncs, ...RUNTIME, holder: holderName(), pollMs: 100 })
    const destinations = createShopDestinations()
    const server = createServer({
      store,
      ports,
      sourceRuntime: RUNTIME,
      syncs,
      destinations,
      version: '0.0.0',
      ...options,
    })
    const url = await server.listen(0)
    await runner.start()
    const copies = new DestinationRunner({
      store,
      ports,
      holder: holderName(),
      newStoreId: () => crypto.randomUUID(),
      destinations,
      pollMs: 100,
    })
    copies.start()
    return new ConsoleFixture({ store, server, url, source }, runner, copies)
  }

  /** Edits the source and syncs at once. */
  async edit(key: string, change: Partial<Customer>): Promise<void> {
    this.source.edit(key, change)
    await this.#follow()
  }

  async remove(key: string): Promise<void> {
    this.source.remove(key)
    await this.#follow()
  }

  #follow(): Promise<void> {
    return this.store.signalSync(
      { worker: 'shop', sync: 'customers' },
      { kind: 'trigger', actor: 'test', at: Date.now() },
    )
  }

  async close(): Promise<void> {
    await this.#destinations.stop()
    await this.#runner.stop({ graceMs: 1_000 })
    await this.server.close()
    await this.store.close()
  }
}

function createShopDestinations() {
  const { destination } = openMemoryDestination()
  const strict: Destination = {
    ...openMemoryDestination().destination,
    location: 'PostgreSQL at warehouse.example/finance, schema shop',
    open: async (context) => {
      const session = await destination.open(context)
      return {
        ...session,
        apply: async (batch, step) => {
          if (batch.changes.some(({ key }) => key === 'ord_7'))
            throw new SyncError('DESTINATION_FAILED', 'The value violates the check constraint "short".')
          return session.apply(batch, step)
        },
      }
    },
  }
  const shared = { mode: 'mirror', schedule: { kind: 'continuous' } } as const
  const { destination: follower } = openMemoryDestination()
  return [
    {
      ...shared,
      name: 'lake',
      destination: { ...follower, location: 'Parquet in s3://lake/shop' },
      databases: ['customers'],
    },
    { ...shared, name: 'finance', destination: strict, databases: ['orders'] },
  ]
}

type Customer = { readonly name: string; readonly email: string; readonly spent: number; readonly vip: boolean }

/** The data of the shop's systems. */
export class ShopSource {
  readonly customers = new Map<string, Customer>()
  readonly #events: Change[] = []

  constructor() {
    const names = [
      'Ada Lovelace',
      'Grace Hopper',
      'Mary Somerville',
      'Emmy Noether',
      'Sofia Kovalevskaya',
      'Hypatia',
      'Katherine Johnson',
      'Maryam Mirzakhani',
    ]
    for (let n = 0; n < 64; n++) {
      const name = names[n % names.length]!
      this.customers.set(`cus_${1_000 + n}`, {
        name,
        email: `${name.split(' ')[0]!.toLowerCase()}${n}@example.com`,
        spent: n * 12.5,
        vip: n % 7 === 0,
      })
    }
  }

  edit(key: string, change: Partial<Customer>): void {
    const record: Customer = { ...this.customers.get(key)!, ...change }
    this.customers.set(key, record)
    this.#events.push({ type: 'upsert', key, record, upstreamUpdatedAt: new Date().toISOString() })
  }

  remove(key: string): void {
    this.customers.delete(key)
    this.#events.push({ type: 'delete', key, upstreamUpdatedAt: new Date().toISOString() })
  }

  /** The end of the event list. */
  get end(): number {
    return this.#events.length
  }

  eventsFrom(place: number): Change[] {
    return this.#events.slice(place)
  }
}

function createShopWorker(source: ShopSource): Worker {
  const worker = new Worker({ name: 'shop' })
  const customers = worker.database('customers')
  const orders = worker.database('orders', {
    schema: { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] },
  })
  worker.database('stars')
  worker.database('refunds')
  worker.database('transfers')
  worker.track('customers', {
    database: customers,
    schedule: 'continuous',
    backfillSchedule: '1h',
    source: {
      anchor: async () => ({ place: source.end }),
      lookup: async (key: string) =>
        source.customers.has(key) ? { type: 'upsert', key, record: source.customers.get(key)! } : null,
      backfill: async (state: { page: number } | undefined) => {
        const page = state?.page ?? 0
        const keys = [...source.customers.keys()].slice(page * 16, page * 16 + 16)
        const changes = keys.map((key): Change => ({ type: 'upsert', key, record: source.customers.get(key)! }))
        return (page + 1) * 16 < source.customers.size
          ? { changes, hasMore: true, nextState: { page: page + 1 } }
          : { changes, hasMore: false, nextState: { page } }
      },
      delta: async (state: { place: number } | undefined) => ({
        changes: source.eventsFrom(state?.place ?? 0),
        hasMore: false,
        nextState: { place: source.end },
      }),
    },
  })
  worker.sync('orders', {
    database: orders,
    mode: 'replace',
    schedule: '1h',
    execute: async () => ({
      changes: [
        ...Array.from({ length: 12 }, (_, n): Change => ({
          type: 'upsert',
          key: `ord_${n}`,
          record: { total: n * 10, big: 9_007_199_254_740_993n as never, lines: [{ sku: `sku-${n}` }] },
        })),
        { type: 'upsert', key: 'ord_bad', record: { total: 'a lot' } },
      ],
      hasMore: false,
    }),
  })
  worker.sync('stars', {
    database: 'stars',
    mode: 'incremental',
    schedule: '15m',
    limits: { retriesMax: 0 },
    execute: frontier<{ id: string }>(
      async ({ cursor }) => {
        const page = Number(cursor ?? 0)
        if (page === 3) throw new SyncError('SOURCE_UNAVAILABLE', 'https://stars.example answered 503.')
        return {
          items: Array.from({ length: 5 }, (_, n) => ({ id: `star_${page * 5 + n}` })),
          nextCursor: String(page + 1),
        }
      },
      { id: ({ id }) => id, toChange: (item) => ({ type: 'upsert', key: item.id, record: item }) },
    ),
  })
  worker.sync('invoices', {
    database: orders,
    mode: 'incremental',
    schedule: '1h',
    execute: async () => {
      throw new SyncError('AUTH_REJECTED', 'https://billing.example answered 401: the token has ended.')
    },
  })
  worker.sync('transfers', {
    database: 'transfers',
    mode: 'incremental',
    schedule: '1h',
    execute: createTransfersSource(),
  })
  worker.sync('refunds', {
    database: 'refunds',
    mode: 'incremental',
    schedule: '5m',
    execute: async () => ({ changes: [], hasMore: false, nextState: {} }),
  })
  return worker
}

/** North returns the first page and then fails; south continues. */
function createTransfersSource() {
  type Transfer = { readonly id: string; readonly block: number }
  const provider = (name: string, isGone: (from: number) => boolean) =>
    pagedProvider<Transfer>({
      name,
      supports: ['blockNumber'],
      prefers: 'blockNumber',
      fetchPage: async ({ cursor }) => {
        const from = Number(cursor?.value ?? 0)
        if (isGone(from)) throw new SyncError('SOURCE_UNAVAILABLE', `${name} does not answer.`)
        const items = Array.from({ length: 3 }, (_, n) => ({ id: `tx_${from + n}`, block: from + n })).filter(
          ({ block }) => block < 6,
        )
        return { items, through: { type: 'blockNumber', value: Math.min(6, from + 3) }, end: from + 3 >= 6 }
      },
    })
  return failover<Transfer>({
    providers: [provider('north', (from) => from > 0), provider('south', () => false)],
    operations: {
      transfers: {
        id: ({ id }) => id,
        cursors: ({ block }) => [{ type: 'blockNumber', value: block }],
        toChange: (transfer) => ({ type: 'upsert', key: transfer.id, record: transfer }),
      },
    },
  })
}
