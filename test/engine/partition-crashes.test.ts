import { describe, expect, test } from 'vitest'
import type { Mode } from '../../src/contract/index.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { partitioned } from '../../src/strategies/partitioned.ts'
import { Process } from './crashing-process.ts'
import { EngineFixture, planOf, ref, upsert } from './engine-fixture.ts'

interface Source {
  readonly plan: SyncPlan
  /** Every request, in order. */
  readonly requests: string[]
}

/** Partitions of one to three pages, one without rows; the list has two pages. */
const PAGES: Readonly<Record<string, readonly (readonly string[])[]>> = {
  a: [['a1', 'a2'], ['a3'], ['a4']],
  b: [['b1']],
  c: [[]],
  d: [['d1'], ['d2']],
  e: [['e1']],
}

function sourceOf(mode: Mode, version: number, concurrency: number): Source {
  const requests: string[] = []
  const keys = Object.keys(PAGES)
  const execute = partitioned<string, { page: number; version: number }>({
    list: async (cursor) => {
      requests.push(`list ${String(cursor ?? 0)}`)
      const [start, end] = cursor === undefined ? [0, 3] : [3, 5]
      return {
        partitions: keys.slice(start, end).map((key) => ({ key, value: `value of ${key}` })),
        ...(cursor === undefined && { next: 1 }),
      }
    },
    read: async ({ key, value }, state, { cycle }) => {
      const page = state === undefined || state.version !== version ? 0 : state.page
      requests.push(`${cycle.id} ${key}${page}`)
      const pages = PAGES[key] ?? []
      return {
        changes: (pages[page] ?? []).map((row) => upsert(row, { v: version, value })),
        hasMore: page + 1 < pages.length,
        nextState: { page: page + 1, version },
      }
    },
    concurrency,
  })
  return { plan: planOf({ mode, execute }), requests }
}

interface Survival {
  readonly landed: unknown
  readonly partitions: unknown
  readonly checkpoint: unknown
  readonly requests: readonly string[]
  readonly places: number
}

async function survive(mode: Mode, concurrency: number, crashes: readonly number[]): Promise<Survival> {
  const scene = await EngineFixture.open()
  await scene.run(sourceOf(mode, 1, 1).plan)
  const { plan, requests } = sourceOf(mode, 2, concurrency)
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
    const { version, committed, inflight } = await scene.checkpoint()
    const feed = (await scene.feed()).map(({ sequence, action, key, text }) => `${sequence} ${action} ${key} ${text}`)
    const survival = {
      landed: { rows: await scene.rows(), feed },
      partitions: await scene.store.partitions(ref(), { limit: 100 }),
      checkpoint: { version, committed, inflight },
      requests,
      places: process.places,
    }
    await scene.close()
    return survival
  }
}

describe.each([
  ['incremental', 2],
  ['replace', 2],
] as const)('an %s cycle over partitions, %i at a time', (mode, concurrency) => {
  test('XA1 XA2 invariant 1: after a crash at any point, rows, feed and the states of partitions equal those of a run without one', async () => {
    const whole = await survive(mode, concurrency, [])
    expect(whole.places).toBeGreaterThan(20)
    const distinct = new Set(whole.requests).size
    expect(whole.requests.length).toBe(distinct)
    for (let place = 0; place < whole.places; place++) {
      const survival = await survive(mode, concurrency, [place])
      expect(survival.landed, `place ${place}`).toEqual(whole.landed)
      // After the last commit nothing is left to resume: the next run is a new cycle.
      const isNewCycle = survival.requests.filter((request) => request === 'list 0').length > 1 && place > 8
      if (isNewCycle) continue
      expect(survival.checkpoint, `place ${place}`).toEqual(whole.checkpoint)
      expect(survival.partitions, `place ${place}`).toEqual(whole.partitions)
      // At most the page in commit and the page that is read ahead are requested again.
      expect(survival.requests.length - distinct, `place ${place}`).toBeLessThanOrEqual(2 * Math.max(concurrency, 2))
      expect(new Set(survival.requests)).toEqual(new Set(whole.requests))
    }
  })
})
