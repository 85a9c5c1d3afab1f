import { afterEach, describe, expect, test } from 'vitest'
import { Worker } from '../../src/worker/worker.ts'
import { SyncError, type Mode } from '../../src/contract/index.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { offsets } from '../../src/strategies/offsets.ts'
import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { DATABASE, MINUTE, EngineFixture, WORKER } from '../engine/engine-fixture.ts'

interface Entry {
  readonly key: string
  readonly value: number | null
  readonly place: string
}

/** A log that is written, forgets its oldest entries, gets new partitions, and is compacted. */
class World {
  readonly random: RandomStream
  readonly partitions: (Entry | null)[][] = [[], []]
  readonly low: number[] = [0, 0]

  constructor(seed: number) {
    this.random = new RandomStream(seed, 'log')
  }

  int(below: number): number {
    return Math.floor(this.random.next() * below)
  }

  write(): void {
    const key = `k${this.int(12)}`
    const log = this.partitions[Number(key.slice(1)) % 2]!
    log.push({ key, value: this.random.next() < 0.3 ? null : this.int(3), place: '' })
  }

  /** A message that is no longer the last of its key is removed and leaves a gap. Tombstones stay, as they do for a day. */
  compact(): void {
    for (const log of this.partitions) {
      const last = new Map(log.map((entry, at) => [entry?.key, at]))
      for (const [at, entry] of log.entries()) if (entry !== null && last.get(entry.key) !== at) log[at] = null
    }
  }

  forget(): void {
    const at = this.int(this.partitions.length)
    this.low[at] = Math.max(this.low[at]!, this.int(this.partitions[at]!.length + 1))
  }

  /** The last value of every key that is kept. */
  truth(): Record<string, unknown> {
    const rows = new Map<string, unknown>()
    for (const [partition, log] of this.partitions.entries()) {
      for (const entry of log.slice(this.low[partition])) {
        if (entry === null) continue
        if (entry.value === null) rows.delete(entry.key)
        else rows.set(entry.key, { value: entry.value })
      }
    }
    return Object.fromEntries([...rows].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  }

  source() {
    return offsets<Entry>({
      bounds: async () =>
        Object.fromEntries(
          this.partitions.map((log, at) => [at, { low: String(this.low[at]), end: String(log.length) }]),
        ),
      read: async ({ from, until }) => {
        const messages: Entry[] = []
        const next: Record<string, string> = {}
        const limit = 1 + this.int(4)
        for (const [partition, offset] of Object.entries(from)) {
          const log = this.partitions[Number(partition)]!
          let at = Number(offset)
          if (at < this.low[Number(partition)]!) throw new SyncError('HISTORY_LOST', 'no longer retained')
          for (; at < Number(until[partition]) && messages.length < limit; at++)
            if (log[at] !== null) messages.push({ ...log[at]!, place: `${partition}:${at}` })
          next[partition] = String(at)
        }
        return { messages, next }
      },
      cursor: ({ place }) => place,
      toChanges: ({ key, value }) =>
        value === null ? { type: 'delete', key } : { type: 'upsert', key, record: { value } },
    })
  }
}

/** More by hand: TIDEMARK_SEEDS=1000 npx vitest run test/strategies/offsets-worlds */
const SEEDS = Array.from({ length: Number(process.env['TIDEMARK_SEEDS'] ?? 12) }, (_, seed) => seed)

describe('worlds of a log', () => {
  let scene: EngineFixture
  afterEach(() => scene.close())

  /** As many pages as the dice say: a cycle that is left is taken up by the next run, as after a crash. */
  async function run(plan: SyncPlan, world: World, isWhole = false): Promise<string> {
    scene.clock.step(MINUTE)
    const pagesMax = isWhole ? 10_000 : 1 + world.int(4)
    const { stopReason, error } = await scene.run(
      { ...plan, limits: { ...plan.limits, retriesMax: 0, pagesMax, emptyPagesMax: 10_000 } },
      { allowDeletes: true },
    )
    return error?.code ?? stopReason
  }

  async function openWorld(seed: number, mode: Mode): Promise<{ world: World; plan: SyncPlan }> {
    scene = await EngineFixture.open()
    const world = new World(seed)
    const worker = new Worker({ name: WORKER })
    worker.sync('log', { database: worker.database(DATABASE), mode, execute: world.source() })
    return { world, plan: worker.plan('log') }
  }

  async function openPair(seed: number): Promise<{ world: World; plans: { backfill: SyncPlan; delta: SyncPlan } }> {
    scene = await EngineFixture.open()
    const world = new World(seed)
    const worker = new Worker({ name: WORKER })
    const source = world.source()
    const { backfill, delta } = worker.track('log', {
      database: worker.database(DATABASE),
      source: { backfill: source, delta: source, anchor: (context) => source.anchor(context) },
    })
    return { world, plans: { backfill: worker.plan(backfill), delta: worker.plan(delta) } }
  }

  test.each(SEEDS)('delta alone, seed %i: the rows are the last values', async (seed) => {
    const { world, plan } = await openWorld(seed, 'incremental')
    for (let step = 0; step < 60; step++) {
      for (let writes = world.int(4); writes > 0; writes--) world.write()
      if (world.random.next() < 0.1) world.compact()
      if (world.random.next() < 0.6) await run(plan, world)
    }
    // The one in progress, and the one that brings the rest.
    expect([await run(plan, world, true), await run(plan, world, true)]).toEqual(['complete', 'complete'])
    expect(await scene.rows()).toEqual(world.truth())
  })

  test.each(SEEDS)('replace alone, seed %i: the rows are the last values of what is kept', async (seed) => {
    const { world, plan } = await openWorld(seed, 'replace')
    for (let step = 0; step < 40; step++) {
      for (let writes = world.int(4); writes > 0; writes--) world.write()
      if (world.random.next() < 0.1) world.forget()
      if (world.random.next() < 0.6) await run(plan, world)
    }
    expect([await run(plan, world, true), await run(plan, world, true)]).toEqual(['complete', 'complete'])
    expect(await scene.rows()).toEqual(world.truth())
  })

  test.each(SEEDS)('both at once, seed %i: whichever ends last, the rows are the last values', async (seed) => {
    const { world, plans } = await openPair(seed)
    for (let step = 0; step < 60; step++) {
      for (let writes = world.int(4); writes > 0; writes--) world.write()
      const dice = world.random.next()
      await run(dice < 0.4 ? plans.backfill : plans.delta, world)
    }
    // The cycles in progress end, in either order, and the delta brings what came since; no refresh makes up for anything.
    for (const plan of world.random.next() < 0.5 ? [plans.backfill, plans.delta] : [plans.delta, plans.backfill])
      expect(await run(plan, world, true)).toBe('complete')
    expect(await run(plans.delta, world, true)).toBe('complete')
    expect(await scene.rows()).toEqual(world.truth())
  })

  test.each(SEEDS)('history lost, seed %i: the backfill that is asked for makes the rows whole', async (seed) => {
    const { world, plans } = await openPair(seed)
    const runs = async (plan: SyncPlan, isWhole: boolean): Promise<void> => {
      const said = await run(plan, world, isWhole)
      expect(['complete', 'max_pages', 'HISTORY_LOST']).toContain(said)
      if (said !== 'HISTORY_LOST') return
      expect((await scene.checkpoint('log-backfill')).backfillNeeded).not.toBeNull()
      expect(await run(plans.backfill, world, true)).toBe('complete')
    }
    for (let step = 0; step < 40; step++) {
      for (let writes = world.int(6); writes > 0; writes--) world.write()
      if (world.random.next() < 0.15) world.forget()
      await runs(plans.delta, false)
    }
    await runs(plans.delta, true)
    await runs(plans.delta, true)
    // Rows of messages that retention deleted stay, as for every reader of a log; the rest is exact.
    const rows = await scene.rows()
    for (const [key, row] of Object.entries(world.truth())) expect(rows[key], key).toEqual(row)
    const dead = [...world.partitions.entries()].flatMap(([partition, log]) =>
      [...new Set(log.slice(world.low[partition]).map((entry) => entry?.key))].filter(
        (key) => key !== undefined && !(key in world.truth()),
      ),
    )
    for (const key of dead) expect(rows[key!], key).toBeUndefined()
  })
})
