import { SyncError, type SyncContext } from '../../../src/contract/index.ts'
import { runCycle } from '../../../src/engine/cycle.ts'
import { DEFAULT_LIMITS, DEFAULT_SWEEP, type SyncPlan } from '../../../src/engine/sync-plan.ts'
import { serializeHashes, type ChainProviderFactory } from '../../../src/sources/evm/chain-provider.ts'
import { evm, type Transfer } from '../../../src/sources/evm/source.ts'
import { getTransferKey, transferOperation } from '../../../src/sources/evm/transfer.ts'
import { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
import {
  failover,
  pagedProvider,
  type FailoverState,
  type Failover,
  type FetchRequest,
  type Provider,
  type ProviderPage,
} from '../../../src/strategies/index.ts'
import { FaultInjector, type FaultKind } from '../../../src/testing/simulation/fault-injector.ts'
import { createFaultyStore } from '../../../src/testing/simulation/faulty-store.ts'
import { FeedMirror } from '../../../src/testing/simulation/feed-mirror.ts'
import { RandomStream, Trace } from '../../../src/testing/simulation/random-stream.ts'
import { Scheduler, TIME_ZERO, type SimulatedProcess } from '../../../src/testing/simulation/scheduler.ts'
import { VirtualClock } from '../../../src/testing/simulation/virtual-clock.ts'

/**
 * Worlds drawn from a seed, under virtual time, with the production engine on a real store: a chain grows and is reorganised, three
 * providers report it in three forms, fail, return wrong data, lag and drop their tokens; the process crashes at any wait; the store answers
 * badly. After the faults end, the rows are those of the chain, and the feed contains each change once.
 */
export interface Outcome {
  readonly seed: number
  readonly problem: string | null
  readonly faults: number
  readonly switches: number
  readonly reorgs: number
  readonly crashes: number
}

/** `chain`: blocks may be replaced, providers say which block they mean. `ledger`: they may not, and one provider knows only times. */
export type WorldKind = 'chain' | 'ledger'

interface Block {
  readonly number: number
  readonly hash: string
  readonly at: number
  readonly transfers: readonly Transfer[]
}

const RATES: Partial<Record<FaultKind, number>> = {
  crash: 0.008,
  'store-busy': 0.01,
  'store-unavailable': 0.01,
  'applied-unknown': 0.01,
  'lost-unknown': 0.01,
  'server-error': 0.06,
  'rate-limited': 0.03,
  'timeout-before': 0.01,
  'timeout-after': 0.01,
  truncated: 0.03,
  'page-repeated': 0.03,
  'empty-page': 0.03,
  'end-flag-early': 0.03,
  'late-answer': 0.04,
  'rows-duplicated': 0.03,
}
const PROVIDER_FAULTS = [
  'server-error',
  'rate-limited',
  'timeout-before',
  'timeout-after',
  'truncated',
  'page-repeated',
  'empty-page',
  'end-flag-early',
  'late-answer',
  'rows-duplicated',
] as const
const BLOCK_MS = 12_000
const DEPTH = 8
const ME = `0x${'aa'.repeat(20)}`

export async function runFailoverWorld(
  seed: number,
  kind: WorldKind = seed % 2 === 0 ? 'chain' : 'ledger',
): Promise<Outcome> {
  const chance = new RandomStream(seed, 'world')
  const scheduler = new Scheduler(seed, new Trace())
  const faults = new FaultInjector(seed, RATES)
  const chain = new Chain(new RandomStream(seed, 'chain'))
  const store = await openSqliteStore({ file: ':memory:' })
  const fate = scheduler.start('fate')
  const views = ['north', 'south', 'east'].map(
    (name, at) => new View(name, chain, new RandomStream(seed, `view ${at}`)),
  )
  let [switches, crashes, calm, problem, done] = [0, 0, false, null as string | null, false]
  const isOver = (): boolean => done || problem !== null
  const violate = (what: string): void => void (problem ??= what)
  const mirror = new FeedMirror((oracle, message) => violate(`${oracle} ${message}`))

  const strategyIn = (process: SimulatedProcess): Failover<Transfer> => {
    const size = 2 + (seed % 5)
    if (kind === 'chain')
      return evm({
        address: ME,
        operations: ['token'],
        depth: DEPTH,
        deadlineMs: 20_000,
        providers: views.map((view, at) => view.reader(process, faults, at === 0 ? 'token' : 'range', size)),
      }).transfers.execute
    const forms = ['token', 'range', 'time'] as const
    return failover<Transfer>({
      deadlineMs: 20_000,
      operations: { token: transferOperation },
      providers: views.map((view, at) => view.provider(process, faults, forms[at]!, size)),
    })
  }

  const live = async (): Promise<void> => {
    const process = scheduler.start('runner')
    const clock = new VirtualClock(process)
    const life = new RandomStream(seed, `life ${crashes}`)
    let completed = 0
    while (!done) {
      const plan: SyncPlan = {
        worker: 'w',
        sync: 's',
        mode: 'incremental',
        databases: [{ name: 'd' }],
        owner: 'w/s',
        execute: strategyIn(process),
        pacers: [],
        sweep: DEFAULT_SWEEP,
        scope: null,
        upstreamToleranceMs: 0,
        limits: {
          ...DEFAULT_LIMITS,
          leaseTtlMs: 5_000,
          pagesMax: calm ? 10_000 : life.pick([1, 3, 10_000]),
          retriesMax: life.pick([0, 2]),
        },
      }
      const result = await runCycle(plan, {
        store: createFaultyStore(store, { process, faults, latencyMs: () => life.int(1, 40), runLater: () => {} }),
        ports: { clock, random: life, log: SILENT },
        fetch: () => Promise.reject(new Error('no network')),
        secrets: { get: (name) => name },
        holder: `life${crashes}`,
        trigger: 'campaign',
        isHolderGone: () => true,
      }).catch((error: unknown) => ({
        stopReason: 'error' as const,
        error: { code: String((error as SyncError).code), message: String((error as Error).message) },
      }))
      mirror.apply(await store.changes({ after: mirror.lastSequence, limit: 100_000 }))
      if (result.stopReason === 'complete') {
        const state = JSON.parse((await store.readCheckpoint({ worker: 'w', sync: 's' })).committed!) as FailoverState
        switches += state.session.switches
        if (kind === 'ledger') await noGap(state)
        completed = calm ? completed + 1 : 0
      } else if (result.error !== null && FATAL.has(result.error.code))
        violate(`${result.error.code} ${result.error.message}`)
      // One more cycle than there are providers: each may have to be tried once.
      if (completed >= 3) done = true
      await process.idle(calm ? 400_000 : life.int(1_000, 60_000))
    }
  }

  /** Whatever lies before the position is there. */
  const noGap = async (state: FailoverState): Promise<void> => {
    const { primary, alternatives = [] } = state.cursors.token!
    const place = [primary, ...alternatives].find(({ type }) => type === 'blockNumber')
    if (place === undefined) return
    const rows = new Set((await store.rows({ database: 'd', limit: 100_000 })).map(({ key }) => key))
    const missing = chain.blocks
      .filter(({ number }) => number < Number(place.value))
      .flatMap(({ transfers }) => transfers)
      .find((transfer) => !rows.has(getTransferKey(transfer)))
    if (missing !== undefined)
      violate(`block ${missing.block} lies before the position ${place.value} and is not landed`)
  }

  const nature = async (): Promise<void> => {
    for (let turn = 0; turn < 60; turn++) {
      await fate.idle(chance.int(1_000, 2 * BLOCK_MS))
      chain.mine(scheduler.now)
      if (kind === 'chain' && chance.chance(0.2)) chain.reorg(chance.pick([1, 1, 2, 3]), scheduler.now)
      for (const view of views) view.turn(kind)
    }
    calm = true
    faults.enabled = false
    for (const view of views) view.heal()
    for (let turn = 0; turn < 3; turn++) chain.mine(scheduler.now)
  }

  scheduler.onWait = (process, label) => {
    if (process === fate || faults.draw('runner', label, ['crash']) === null) return
    process.crash()
    crashes++
    void fate.idle(1_000).then(live)
  }
  void nature()
  void live()
  try {
    while (!isOver()) {
      if (!(await scheduler.step()) || scheduler.now - TIME_ZERO > 10 * 24 * 3_600_000 || scheduler.steps > 400_000)
        violate(`it does not come to an end (calm: ${calm}, ${scheduler.steps} steps)`)
    }
    if (problem === null) problem = await difference()
    return { seed, problem, faults: faults.injected.length, switches, reorgs: chain.reorgs, crashes }
  } finally {
    await store.close()
  }

  async function difference(): Promise<string | null> {
    mirror.apply(await store.changes({ after: mirror.lastSequence, limit: 100_000 }))
    const truth = new Map(
      chain.blocks.flatMap(({ transfers }) => transfers).map((transfer) => [getTransferKey(transfer), transfer]),
    )
    const rows = await store.rows({ database: 'd', limit: 100_000 })
    for (const { key, text } of rows) {
      if (mirror.rows.get(key)?.text !== text) return `the feed differs for ${key.slice(0, 12)}`
      const transfer = truth.get(key)
      if (transfer === undefined) return `${key.slice(0, 12)} is in no block and was not deleted`
      const row = JSON.parse(text) as { blockNumber: number; value: string; timestamp: string }
      if (row.blockNumber !== transfer.block)
        return `${key.slice(0, 12)} is in block ${transfer.block} and was committed from another`
      if (row.value !== transfer.value || Date.parse(row.timestamp) !== transfer.timeMs)
        return `${key} holds ${row.value}, not ${transfer.value} as its block does`
      truth.delete(key)
    }
    if (mirror.rows.size !== rows.length) return 'the feed has rows that are not there'
    const [missing] = truth.values()
    return missing === undefined
      ? null
      : `block ${missing.block} of ${chain.blocks.length} has a transfer that was never landed`
  }
}

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }

/** The checks that no failure of a provider or of the store may violate. */
const FATAL: ReadonlySet<string> = new Set([
  'STATE_INVALID',
  'STATE_MISSING',
  'STATE_TOO_LARGE',
  'PAGE_INVALID',
  'CURSOR_CYCLE',
  'CURSOR_REJECTED',
  'EMPTY_PAGES',
  'CONNECTOR_FAILED',
  'INTERNAL',
])

class Chain {
  blocks: Block[] = []
  reorgs = 0
  readonly #chance: RandomStream
  #serial = 0

  constructor(chance: RandomStream) {
    this.#chance = chance
    for (let n = 0; n < 20; n++) this.mine(TIME_ZERO + n)
  }

  mine(now: number, again: readonly Transaction[] = [], at = Math.max(now, (this.blocks.at(-1)?.at ?? 0) + 1)): void {
    const number = this.blocks.length
    const fresh = Array.from({ length: this.#chance.pick([0, 0, 1, 1, 2, 4]) }, () => ({
      hash: this.#hash(),
      values: this.#chance.pick([1, 2, 3]),
    }))
    const transactions = this.#chance.chance(0.5) ? [...again, ...fresh] : [...fresh, ...again]
    // The index of a log counts through the block. Logs of a transaction differ by their value.
    const logs = transactions.flatMap(({ hash, values }) =>
      Array.from({ length: values }, (_, at) => ({ hash, value: String(at + 1) })),
    )
    const transfers = logs.map(({ hash, value }, logIndex): Transfer => ({
      kind: 'token',
      hash,
      logIndex,
      block: number,
      timeMs: at,
      from: ME,
      to: ME,
      value,
      contract: ME,
    }))
    this.blocks = [...this.blocks, { number, hash: this.#hash(), at, transfers }]
  }

  /** The last blocks go; some of what was in them comes back in others, often at the same time and at another place of its block. */
  reorg(depth: number, now: number): void {
    this.reorgs++
    const gone = this.blocks.slice(-depth)
    this.blocks = this.blocks.slice(0, -depth)
    const blocks = this.#chance.int(Math.max(1, depth - 1), depth + 1)
    const isSameTime = this.#chance.chance(0.7)
    for (let n = 0; n < blocks; n++) {
      const before = gone[n]
      const again =
        before === undefined ? [] : transactionsOf(before).filter(() => isSameTime || this.#chance.chance(0.6))
      this.mine(now + n, again, isSameTime ? before?.at : undefined)
    }
  }

  #hash(): string {
    return `0x${(++this.#serial).toString(16).padStart(64, '0')}`
  }
}

interface Transaction {
  readonly hash: string
  /** The number of its transfers. */
  readonly values: number
}

function transactionsOf({ transfers }: Block): Transaction[] {
  const hashes = [...new Set(transfers.map(({ hash }) => hash))]
  return hashes.map((hash) => ({ hash, values: transfers.filter((transfer) => transfer.hash === hash).length }))
}

type Form = 'range' | 'time' | 'token'

/** The chain as one provider sees it. */
class View {
  readonly name: string
  readonly #chain: Chain
  readonly #chance: RandomStream
  #behind = 0
  #down = false
  #frozen: readonly Block[] | null = null
  #previous: ProviderPage<Transfer> | null = null

  constructor(name: string, chain: Chain, chance: RandomStream) {
    this.name = name
    this.#chain = chain
    this.#chance = chance
  }

  turn(kind: WorldKind): void {
    const chance = this.#chance
    if (chance.chance(0.1)) this.#down = !this.#down
    if (chance.chance(0.1)) this.#behind = chance.pick([0, 0, 0, 1, 3, 6])
    if (kind === 'chain' && chance.chance(0.05)) this.#frozen = this.#frozen === null ? this.#chain.blocks : null
  }

  heal(): void {
    this.#down = false
    this.#behind = 0
    this.#frozen = null
  }

  get blocks(): readonly Block[] {
    const blocks = this.#frozen ?? this.#chain.blocks
    return blocks.slice(0, Math.max(1, blocks.length - this.#behind))
  }

  reader(process: SimulatedProcess, faults: FaultInjector, form: Form, size: number): ChainProviderFactory {
    return () => ({
      ...this.provider(process, faults, form, size, true),
      getBlockHash: async (block, context) => {
        await this.#line(process, faults, 'hash', context)
        return this.blocks[block]?.hash ?? null
      },
    })
  }

  provider(
    process: SimulatedProcess,
    faults: FaultInjector,
    form: Form,
    size: number,
    hashes = false,
  ): Provider<Transfer> {
    return pagedProvider<Transfer>({
      name: this.name,
      supports: { token: ['pageToken', 'blockNumber'], range: ['blockNumber'], time: ['timestamp'] }[form] as never,
      prefers: form === 'time' ? 'timestamp' : 'blockNumber',
      replay: { blocks: 2, ms: 2 * BLOCK_MS },
      fetchPage: (request, context) => this.#page(process, faults, form, size, hashes, request, context),
    })
  }

  /** The faults of every request. */
  async #line(
    process: SimulatedProcess,
    faults: FaultInjector,
    label: string,
    { signal }: SyncContext,
  ): Promise<(typeof PROVIDER_FAULTS)[number] | null> {
    await process.wait(`${this.name}:${label}`, this.#chance.int(5, 400), signal)
    const fault = faults.draw(this.name, label, PROVIDER_FAULTS)?.kind ?? null
    if (this.#down || fault === 'server-error') throw new SyncError('SOURCE_UNAVAILABLE', `${this.name} is down`)
    if (fault === 'rate-limited')
      throw new SyncError('RATE_LIMITED', 'slow', { retryAfterMs: this.#chance.int(100, 90_000) })
    if (fault === 'timeout-before' || fault === 'timeout-after')
      await process.wait(`${this.name}:hangs`, 10 ** 9, signal)
    return fault as (typeof PROVIDER_FAULTS)[number] | null
  }

  async #page(
    process: SimulatedProcess,
    faults: FaultInjector,
    form: Form,
    size: number,
    hashes: boolean,
    { cursor }: FetchRequest,
    context: SyncContext,
  ): Promise<ProviderPage<Transfer>> {
    const fault = await this.#line(process, faults, 'page', context)
    if (fault === 'late-answer' && cursor?.type === 'pageToken') throw new SyncError('CURSOR_REJECTED', 'expired')
    if (fault === 'page-repeated' && this.#previous !== null && !hashes) return this.#previous
    if (fault === 'empty-page') return { items: [] }
    const page = this.#answer(form, size, hashes, cursor, fault === 'end-flag-early')
    this.#previous = page
    await process.wait(`${this.name}:after`, this.#chance.int(5, 400), context.signal)
    if (fault === 'truncated' && page.items.length > 0)
      return { ...page, items: [...page.items.slice(0, -1), null as never] }
    if (fault === 'rows-duplicated') return { ...page, items: page.items.flatMap((item) => [item, item]) }
    return page
  }

  #answer(
    form: Form,
    size: number,
    hashes: boolean,
    cursor: FetchRequest['cursor'],
    endsEarly: boolean,
  ): ProviderPage<Transfer> {
    const { blocks } = this
    const head = blocks.length - 1
    const tokenAt =
      cursor?.type === 'pageToken' ? (JSON.parse(cursor.value) as { at: number; to: number; skip: number }) : null
    const from =
      tokenAt?.at ??
      (cursor === undefined ? 0 : form === 'time' ? firstAt(blocks, Number(cursor.value)) : Number(cursor.value))
    const settled = hashes ? head - DEPTH : head
    if (form === 'token' && (tokenAt !== null || from <= settled)) {
      // By items, so that a page may end inside a block.
      const to = tokenAt?.to ?? settled
      const all = blocks
        .slice(from, to + 1)
        .flatMap(({ transfers }) => transfers)
        .slice(tokenAt?.skip ?? 0)
      const items = all.slice(0, size)
      const skip = (tokenAt?.skip ?? 0) + items.length
      if (all.length > items.length && !endsEarly)
        return { items, next: JSON.stringify({ at: from, to, skip }), end: false }
      if (endsEarly) return { items, end: true }
      return hashes ? { items, through: { type: 'blockNumber', value: to + 1 }, end: false } : { items, end: true }
    }
    if (from > head)
      return {
        items: [],
        through:
          form === 'time'
            ? { type: 'timestamp', value: (blocks.at(-1)?.at ?? 0) + 1 }
            : { type: 'blockNumber', value: head + 1 },
        end: true,
      }
    const to = form === 'token' ? head : Math.min(head, from + size - 1)
    const range = blocks.slice(from, to + 1)
    return {
      items: range.flatMap(({ transfers }) => transfers),
      end: to === head || endsEarly,
      through:
        form === 'time' ? { type: 'timestamp', value: range.at(-1)!.at + 1 } : { type: 'blockNumber', value: to + 1 },
      ...(hashes && {
        custom: serializeHashes(
          from,
          blocks
            .slice(Math.max(0, from - 1), to + 1)
            .filter(({ number }) => number > head - DEPTH)
            .map(({ number, hash }) => [number, hash]),
        ),
      }),
    }
  }
}

function firstAt(blocks: readonly Block[], at: number): number {
  const found = blocks.findIndex((block) => block.at >= at)
  return found === -1 ? blocks.length : found
}
