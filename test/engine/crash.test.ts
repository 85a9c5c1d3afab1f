import { describe, expect, test } from 'vitest'
import type { Execute } from '../../src/contract/index.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { Process } from './crashing-process.ts'
import { planOf, ref, remove, EngineFixture, upsert } from './engine-fixture.ts'

const listed = [
  ['a', 'b'],
  ['c', 'd'],
  ['e', 'f'],
]
const backfill = planOf({
  mode: 'replace',
  execute: async (state = 0) => ({
    changes: listed[state]!.map((key) => upsert(key, { v: key })),
    hasMore: state < 2,
    nextState: state + 1,
  }),
})
const changed = [[upsert('a', { v: 2 }), remove('b')], [upsert('g', { v: 2 })], [upsert('c', { v: 2 }), remove('h')]]
const delta = planOf({
  execute: (async (state = 0) => ({
    changes: changed[state % 3]!,
    hasMore: state % 3 < 2,
    nextState: state + 1,
  })) as Execute<number>,
})

/** Rows of an earlier cycle: some change, some disappear, some stay. */
async function before(plan: SyncPlan): Promise<EngineFixture> {
  const scene = await EngineFixture.open()
  const earlier = ['a', 'b', 'c', 'h', ...(plan.mode === 'replace' ? ['gone'] : [])]
  await scene.run({
    ...plan,
    execute: async () => ({ changes: earlier.map((key) => upsert(key, { v: 1 })), hasMore: false }),
  })
  return scene
}

interface Survival {
  readonly landed: { readonly rows: unknown; readonly feed: readonly string[] }
  readonly registry: unknown
  readonly places: number
}

/** Restarts until a process completes; returns everything that is visible afterwards. */
async function survive(plan: SyncPlan, crashes: readonly number[]): Promise<Survival> {
  const scene = await before(plan)
  for (let run = 0; ; run++) {
    const process = new Process(crashes[run])
    const holder = `process-${run}`
    const running = scene.start(process.plan(plan), {
      store: process.store(scene.store),
      holder,
      isHolderGone: (other) => other !== holder,
    })
    const ended = await scene.clock.drive(Promise.race([running, process.death]))
    if (ended === 'crashed') continue
    expect(ended).toMatchObject({ stopReason: 'complete', error: null })
    expect(run).toBe(crashes.length)
    const { version, committed, inflight } = await scene.checkpoint()
    const audit = (await scene.store.audit(ref())).map((entry) => `${entry.action} ${entry.version}`)
    const feed = (await scene.feed()).map(({ sequence, action, key, text }) => `${sequence} ${action} ${key} ${text}`)
    const seen = {
      landed: { rows: await scene.rows(), feed },
      registry: { version, committed, inflight, audit },
      places: process.places,
    }
    await scene.close()
    return seen
  }
}

/**
 * acquire, begin, three pages requested and committed, release; two crash points each, the last commit at 14 and 15.
 */
const PLACES = 20
const COMPLETED = 15

describe.each([
  ['a replace cycle', backfill],
  ['an incremental cycle', delta],
])('%s', (_, plan) => {
  test('XA1 XA2 XA5 XA9 invariant 1: after a crash at any point, rows, feed, state and audit equal those of a run without one', async () => {
    const whole = await survive(plan, [])
    expect(whole.places).toBe(PLACES)
    expect(whole.landed.feed.length).toBeGreaterThan(7)
    for (let place = 0; place < PLACES; place++) {
      const { landed, registry } = await survive(plan, [place])
      expect(landed, `place ${place}`).toEqual(whole.landed)
      // Once the last page is committed nothing is left to resume: the next run is a new cycle, and repeats nothing.
      if (place < COMPLETED) expect(registry, `place ${place}`).toEqual(whole.registry)
    }
  })

  test('XA8 XA9 after a crash and a crash of the recovery from it', async () => {
    const whole = await survive(plan, [])
    for (let first = 0; first < PLACES; first++) {
      for (let second = first % 3; second < 12; second += 3) {
        expect((await survive(plan, [first, second])).landed, `places ${first} and ${second}`).toEqual(whole.landed)
      }
    }
  })
})
