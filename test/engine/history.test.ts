import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Worker } from '../../src/worker/worker.ts'
import { SyncError, type Execute, type Store } from '../../src/contract/index.ts'
import { listDeclaredSyncs } from '../../src/runner/declared-sync.ts'
import { computeDueTime } from '../../src/runner/due.ts'
import { readKnownSyncs, readStatus, type SyncStatus } from '../../src/runner/status.ts'
import { setState } from '../strategies/run-strategy.ts'
import { HOUR, MINUTE, remove, EngineFixture, upsert, WORKER } from './engine-fixture.ts'

const DAY = 24 * HOUR
const RETENTION_MS = 30 * DAY

interface Event {
  readonly id: number
  readonly key: string
  readonly value: number | null
  readonly at: number
}

/**
 * A vendor with a list and a change log of 30 days. It rejects an older cursor or, in silent mode, omits the changes it
 * has dropped.
 */
class Vendor {
  readonly #now: () => number
  readonly items = new Map<string, number>()
  readonly events: Event[] = []
  refuses: 'cursor' | 'nothing' = 'nothing'
  pageSize = 2
  onAsk: (what: 'anchor' | 'list' | 'changes') => void = () => {}
  readonly asked: string[] = []

  constructor(now: () => number) {
    this.#now = now
  }

  put(key: string, value: number): void {
    this.items.set(key, value)
    this.#note(key, value)
  }

  drop(key: string): void {
    this.items.delete(key)
    this.#note(key, null)
  }

  truth(): Record<string, unknown> {
    return Object.fromEntries(
      [...this.items].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => [key, { value }]),
    )
  }

  worker(options: { paired?: boolean; declared?: boolean } = {}): Worker {
    const worker = new Worker({ name: WORKER })
    const database = worker.database('things')
    const changes: Execute<{ after: number }> = (state, context) => this.#changes(state, context)
    const delta = options.declared === false ? changes : Object.assign(changes, { retentionMs: RETENTION_MS })
    if (options.paired === false) worker.sync('shop', { database, mode: 'incremental', schedule: '5m', execute: delta })
    else worker.track('shop', { database, source: { backfill: this.#list, delta, anchor: async () => this.#anchor() } })
    return worker
  }

  #note(key: string, value: number | null): void {
    this.events.push({ id: this.events.length + 1, key, value, at: this.#now() })
  }

  #anchor(): { after: number } {
    this.#ask('anchor')
    return { after: this.events.length }
  }

  #ask(what: 'anchor' | 'list' | 'changes'): void {
    this.asked.push(what)
    this.onAsk(what)
  }

  readonly #list: Execute<{ after: string }> = async (state) => {
    this.#ask('list')
    const keys = [...this.items.keys()].toSorted().filter((key) => key > (state?.after ?? ''))
    const page = keys.slice(0, this.pageSize)
    return {
      changes: page.map((key) => upsert(key, { value: this.items.get(key)! })),
      hasMore: keys.length > page.length,
      nextState: { after: page.at(-1) ?? '' },
    }
  }

  readonly #changes: Execute<{ after: number }> = async (state = this.#anchor()) => {
    this.#ask('changes')
    const kept = this.events.filter(({ at }) => at > this.#now() - RETENTION_MS)
    const isKept = state.after === this.events.length || kept.some(({ id }) => id === state.after + 1)
    if (!isKept && this.refuses === 'cursor') throw new SyncError('CURSOR_REJECTED', 'no such event')
    const news = kept.filter(({ id }) => id > state.after)
    const page = news.slice(0, this.pageSize)
    return {
      changes: page.map(({ key, value }) => (value === null ? remove(key) : upsert(key, { value }))),
      hasMore: news.length > page.length,
      nextState: { after: page.at(-1)?.id ?? this.events.length },
    }
  }
}

let scene: EngineFixture
let vendor: Vendor

beforeEach(async () => {
  scene = await EngineFixture.open()
  vendor = new Vendor(() => scene.clock.now())
  for (const [at, key] of ['a', 'b', 'c', 'd', 'e'].entries()) vendor.put(key, at)
})
afterEach(() => scene.close())

async function statusOf(worker: Worker): Promise<Record<string, SyncStatus>> {
  const statuses = await readStatus({ store: scene.store, syncs: listDeclaredSyncs(worker), now: scene.clock.now() })
  return Object.fromEntries(statuses.map((status) => [status.sync, status]))
}

/** A minimal scheduler: runs everything that is due, and checks the oracle after every cycle. */
async function runDue(worker: Worker, store: Store = scene.store): Promise<void> {
  for (let round = 0; round < 20; round++) {
    const { now, syncs } = await readKnownSyncs(scene.store, listDeclaredSyncs(worker), scene.clock.now())
    const due = syncs.find((known) => {
      const next = computeDueTime(known.declared!, known, { now, since: now, pauseMs: 1_000 })
      return next.kind === 'at' && next.at <= now
    })
    if (due === undefined) return
    await scene.run(worker.plan(due.sync), { store })
    await judge(worker)
    scene.clock.step(1)
  }
  throw new Error('it does not come to rest')
}

/** The oracle: in a HEALTHY sync, every row that has not changed since its last complete cycle equals the vendor's. */
async function judge(worker: Worker): Promise<void> {
  const { health } = (await statusOf(worker)).shop!
  if (health !== 'HEALTHY') return
  const completeSince = (await scene.checkpoint('shop')).completeSince!
  const changed = new Set(vendor.events.filter(({ at }) => at >= completeSince).map(({ key }) => key))
  const settled = (rows: Record<string, unknown>): Record<string, unknown> =>
    Object.fromEntries(Object.entries(rows).filter(([key]) => !changed.has(key)))
  expect(settled(await scene.rows()), 'HEALTHY').toEqual(settled(vendor.truth()))
}

describe.each(['cursor', 'nothing'] as const)('a vendor that drops changes and rejects %s', (refuses) => {
  beforeEach(() => {
    vendor.refuses = refuses
  })

  test('XC32 XC16 changes and deletions during a gap longer than the retention: the backfill is requested, runs, and repairs', async () => {
    const worker = vendor.worker()
    await runDue(worker)
    expect((await statusOf(worker)).shop!.health).toBe('HEALTHY')
    vendor.drop('b')
    vendor.put('c', 30)
    scene.clock.step(31 * DAY)
    vendor.put('f', 6)
    const lost = await scene.run(worker.plan('shop'))
    expect(lost.error).toMatchObject({
      code: 'HISTORY_LOST',
      message: expect.stringMatching(/31 days.*30 days.*shop-backfill was requested/),
    })
    const { shop, 'shop-backfill': backfill } = await statusOf(worker)
    expect([shop!.health, backfill!.health]).toEqual(['WARNING', 'WARNING'])
    expect(shop!.backfillNeeded).toEqual(backfill!.backfillNeeded)
    expect(backfill!.due).toMatchObject({ kind: 'at', why: 'needed' })
    await runDue(worker)
    expect(await scene.rows()).toEqual(vendor.truth())
    expect((await statusOf(worker)).shop).toMatchObject({ health: 'HEALTHY', backfillNeeded: null })
  })

  test('XC32 an interrupted cycle that is resumed beyond the retention is not completed as if nothing were missing', async () => {
    const worker = vendor.worker()
    await runDue(worker)
    for (const key of ['g', 'h', 'i', 'j', 'k']) vendor.put(key, 1)
    vendor.drop('a')
    scene.clock.step(HOUR)
    const plan = worker.plan('shop')
    expect((await scene.run({ ...plan, limits: { ...plan.limits, pagesMax: 1 } })).stopReason).toBe('max_pages')
    scene.clock.step(31 * DAY)
    vendor.put('l', 1)
    await scene.run(plan)
    expect((await statusOf(worker)).shop!.health).not.toBe('HEALTHY')
    await runDue(worker)
    expect(await scene.rows()).toEqual(vendor.truth())
  })

  test('XC32 a backfill that was running when the history was lost does not count; the next one does', async () => {
    const worker = vendor.worker()
    await runDue(worker)
    const plan = worker.plan('shop-backfill')
    expect((await scene.run({ ...plan, limits: { ...plan.limits, pagesMax: 1 } })).stopReason).toBe('max_pages')
    scene.clock.step(31 * DAY)
    // Behind the first page of the unfinished backfill, and dropped from the log.
    vendor.put('a', 99)
    scene.clock.step(31 * DAY)
    vendor.put('z', 1)
    await scene.run(worker.plan('shop'))
    expect(await scene.run(worker.plan('shop-backfill'))).toMatchObject({ stopReason: 'complete', resumed: false })
    await runDue(worker)
    expect(await scene.rows()).toEqual(vendor.truth())
    expect((await statusOf(worker)).shop!.health).toBe('HEALTHY')
  })
})

test('XC32 as soon as the source has dropped changes that the delta needs, and before anything runs, both syncs need a backfill', async () => {
  const worker = vendor.worker()
  await runDue(worker)
  scene.clock.step(29 * DAY)
  expect((await statusOf(worker)).shop).toMatchObject({ health: 'HEALTHY', backfillNeeded: null })
  const lostAt = (await scene.checkpoint('shop')).completeSince! + RETENTION_MS
  scene.clock.step(2 * DAY)
  const before = await statusOf(worker)
  expect([before.shop!.health, before['shop-backfill']!.health]).toEqual(['WARNING', 'WARNING'])
  expect(before.shop!.backfillNeeded).toMatchObject({
    since: lostAt,
    reason: expect.stringMatching(/^shop was last complete at .* for 30 days only\.$/),
  })
  expect(before['shop-backfill']!.backfillNeeded).toEqual(before.shop!.backfillNeeded)
  scene.clock.step(40 * DAY)
  expect((await statusOf(worker)).shop!.backfillNeeded).toEqual(before.shop!.backfillNeeded)
  // A complete backfill clears it, as it clears a request.
  await scene.run(worker.plan('shop-backfill'))
  expect((await statusOf(worker)).shop).toMatchObject({ health: 'HEALTHY', backfillNeeded: null })
  expect(await scene.run(worker.plan('shop'))).toMatchObject({ stopReason: 'complete' })
})

test('XC32 the same for a standalone sync, until it is reset and reads from the beginning', async () => {
  const worker = vendor.worker({ paired: false })
  expect((await statusOf(worker)).shop).toMatchObject({ health: 'INITIALIZING', backfillNeeded: null })
  await scene.run(worker.plan('shop'))
  expect((await statusOf(worker)).shop).toMatchObject({ health: 'HEALTHY', backfillNeeded: null })
  scene.clock.step(31 * DAY)
  expect((await statusOf(worker)).shop).toMatchObject({ health: 'WARNING', backfillNeeded: { cycle: null } })
  await scene.run(worker.plan('shop'))
  expect((await statusOf(worker)).shop).toMatchObject({ health: 'ERROR', lastError: { code: 'HISTORY_LOST' } })
  await setState(scene, null, 'shop')
  for (const key of ['g', 'h', 'i']) vendor.put(key, 1)
  const plan = worker.plan('shop')
  scene.clock.step(MINUTE)
  const again: typeof plan.execute = (state = { after: 0 }, context) => plan.execute(state, context)
  expect(await scene.run({ ...plan, execute: again, limits: { ...plan.limits, pagesMax: 1 } })).toMatchObject({
    stopReason: 'max_pages',
  })
  expect((await statusOf(worker)).shop).toMatchObject({ health: 'HEALTHY', backfillNeeded: null })
})

test('XC16 XC32 a source that declares nothing and rejects the committed state, also behind a page of another stream', async () => {
  vendor.refuses = 'cursor'
  const worker = vendor.worker({ declared: false })
  await runDue(worker)
  vendor.drop('b')
  scene.clock.step(31 * DAY)
  vendor.put('f', 6)
  const plan = worker.plan('shop')
  // As with several streams in one cycle: the first responds, the state of the second is rejected.
  let isFirst = true
  const behind: typeof plan.execute = async (state, context) => {
    isFirst = context.cycle.page === 1
    return isFirst
      ? { changes: [], hasMore: true, nextState: { ...state, second: true } }
      : plan.execute({ after: state.after }, context)
  }
  expect((await scene.run({ ...plan, execute: behind })).error?.code).toBe('HISTORY_LOST')
  expect(isFirst).toBe(false)
  await runDue(worker)
  expect(await scene.rows()).toEqual(vendor.truth())
  expect((await statusOf(worker)).shop!.health).toBe('HEALTHY')
})

test('XC32 within the retention no backfill is requested, and a regular backfill counts as a complete cycle of the delta', async () => {
  const worker = vendor.worker()
  await runDue(worker)
  scene.clock.step(29 * DAY)
  vendor.drop('c')
  await scene.run(worker.plan('shop-backfill'))
  scene.clock.step(29 * DAY)
  vendor.drop('d')
  expect(await scene.run(worker.plan('shop'))).toMatchObject({ stopReason: 'complete' })
  expect(await scene.rows()).toEqual(vendor.truth())
})

test('XC32 a page that arrives after the retention is not committed: a process may be suspended for a month', async () => {
  const worker = vendor.worker()
  await runDue(worker)
  vendor.drop('a')
  scene.clock.step(HOUR)
  vendor.onAsk = (what) => {
    if (what === 'changes') scene.clock.step(31 * DAY)
  }
  expect((await scene.run(worker.plan('shop'))).error?.code).toBe('HISTORY_LOST')
  vendor.onAsk = () => {}
  await runDue(worker)
  expect(await scene.rows()).toEqual(vendor.truth())
})

test('XC34 changes during the requested backfill are not lost: its anchor comes first', async () => {
  const worker = vendor.worker()
  await runDue(worker)
  scene.clock.step(31 * DAY)
  vendor.put('q', 1)
  await scene.run(worker.plan('shop'))
  let pages = 0
  vendor.onAsk = (what) => {
    if (what === 'list' && ++pages === 2) {
      vendor.put('a', 77)
      vendor.drop('e')
    }
  }
  vendor.asked.length = 0
  await runDue(worker)
  expect(vendor.asked.slice(0, 2)).toEqual(['anchor', 'list'])
  scene.clock.step(5 * MINUTE)
  await runDue(worker)
  expect(await scene.rows()).toEqual(vendor.truth())
})

test('XC32 a sync without a backfill is never HEALTHY after lost history, and its error names the remedy', async () => {
  const worker = vendor.worker({ paired: false })
  await scene.run(worker.plan('shop'))
  vendor.drop('a')
  scene.clock.step(31 * DAY)
  for (let round = 0; round < 3; round++) {
    const { error } = await scene.run(worker.plan('shop'))
    expect(error).toMatchObject({
      code: 'HISTORY_LOST',
      message: expect.stringContaining('declare it with `worker.track`'),
    })
    expect((await statusOf(worker)).shop!.health).toBe('ERROR')
    scene.clock.step(DAY)
  }
})

test('XC32 a pair is INITIALIZING until its first backfill, which a scheduler starts, is complete', async () => {
  const worker = vendor.worker()
  await scene.run(worker.plan('shop'))
  const before = await statusOf(worker)
  expect(before.shop!.health).toBe('INITIALIZING')
  expect(before['shop-backfill']!.due).toMatchObject({ kind: 'at', why: 'needed' })
  await scene.store.signalSync(
    { worker: WORKER, sync: 'shop-backfill' },
    { kind: 'pause', actor: 'ana', at: scene.clock.now() },
  )
  scene.clock.step(DAY)
  await scene.run(worker.plan('shop'))
  expect((await statusOf(worker)).shop!.health).toBe('INITIALIZING')
})

/** Counts the store calls from the loss on, in an undisturbed run. */
async function callsAfterTheLoss(dieAt: number): Promise<{ calls: number; died: boolean }> {
  const worker = vendor.worker()
  await runDue(worker)
  vendor.drop('b')
  scene.clock.step(31 * DAY)
  vendor.put('f', 6)
  const counter = { calls: 0 }
  // Before the call, like a killed process: later calls never reach the store.
  const store = dying(scene.store, counter, dieAt)
  let died = false
  await runDue(worker, store).catch(() => (died = true))
  return { calls: counter.calls, died: died || counter.calls >= dieAt }
}

test('XC32 killed before any store call between the loss and the end of the backfill, the pair is repaired by the next process', async () => {
  const { calls } = await callsAfterTheLoss(Infinity)
  expect(calls).toBeGreaterThan(10)
  expect(await scene.rows()).toEqual(vendor.truth())
  for (let dieAt = 1; dieAt <= calls; dieAt++) {
    await scene.close()
    scene = await EngineFixture.open()
    vendor = new Vendor(() => scene.clock.now())
    for (const [at, key] of ['a', 'b', 'c', 'd', 'e'].entries()) vendor.put(key, at)
    expect((await callsAfterTheLoss(dieAt)).died, `call ${dieAt}`).toBe(true)
    await judge(vendor.worker())
    // The lease expires.
    scene.clock.step(5 * MINUTE)
    await runDue(vendor.worker())
    expect(await scene.rows(), `killed before call ${dieAt}`).toEqual(vendor.truth())
    expect((await statusOf(vendor.worker())).shop!.health, `killed before call ${dieAt}`).toBe('HEALTHY')
  }
})

function dying(store: Store, counter: { calls: number }, dieAt: number): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (typeof member !== 'function') return member
      return (...args: unknown[]) => {
        counter.calls++
        if (counter.calls >= dieAt) return Promise.reject(new Error('killed'))
        return (member as (...args: unknown[]) => unknown).apply(target, args)
      }
    },
  })
}
