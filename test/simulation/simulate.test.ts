import { describe, expect, test } from 'vitest'
import type { Commit, Landing, Page, Store } from '../../src/contract/index.ts'
import { DEFAULT_LIMITS, DEFAULT_SWEEP, type SyncPlan } from '../../src/engine/sync-plan.ts'
import { SyncError } from '../../src/contract/index.ts'
import { simulate } from '../../src/testing/simulation/simulate.ts'
import { simulateWorker } from '../../src/testing/simulation/simulate-worker.ts'
import { installNondeterminismGuard } from '../../src/testing/simulation/nondeterminism-guard.ts'
import { shrink } from '../../src/testing/simulation/shrink.ts'
import { runWorld, type World, type WorldOptions } from '../../src/testing/simulation/world.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'

describe('a world', () => {
  test('is a pure function of its seed', async () => {
    for (let seed = 1; seed <= 6; seed++) {
      const [one, other] = [await runWorld({ seed }), await runWorld({ seed })]
      expect({ ...other, trail: [] }).toEqual({ ...one, trail: [] })
    }
    expect((await simulate({ seeds: 8 })).digest).toBe((await simulate({ seeds: 8 })).digest)
  })

  test('differs from seed to seed', async () => {
    const hashes = new Set<string>()
    for (let seed = 1; seed <= 8; seed++) hashes.add((await runWorld({ seed })).hash)
    expect(hashes.size).toBe(8)
  })

  test('that fails is shrunk to the necessary faults', async () => {
    const worldOf = (seed: number): WorldOptions => ({
      seed,
      kind: 'replace',
      store: { open: forgetfulStore },
      overrides: {
        operations: 30,
        gapMs: 3_000,
        runners: 2,
        rates: { 'applied-unknown': 0.05, 'store-busy': 0.1, 'server-error': 0.1, freeze: 0.01 },
      },
    })
    let verdict = await runWorld(worldOf(1))
    for (let seed = 2; seed <= 30 && (verdict.violations.length === 0 || verdict.faults.length < 4); seed++)
      verdict = await runWorld(worldOf(seed))
    expect(verdict.violations[0]?.oracle).toBe('O5')
    const { faults, trail } = await shrink(
      (seed, only) => runWorld({ ...worldOf(seed), ...(only && { only }) }),
      verdict,
      'O5',
    )
    expect(faults).toEqual([expect.stringMatching(/^applied-unknown at runner\d store\.commit #\d+$/)])
    expect(trail.length).toBeGreaterThan(10)
  })

  test('may lack a record that the source deleted unreported before any page returned it', async () => {
    const { failures, repeated, faults } = await simulate({ seeds: 1, firstSeed: 507_219, shrinks: false })
    expect({ failures, repeated }).toEqual({ failures: [], repeated: 1 })
    expect(faults).toBeGreaterThan(0)
  })

  test.each([
    ['record', 1, /^O9 a landed page returned .* is missing$/],
    ['change', 4, /^O9 a landed page returned .*"v":4.* is at .*"v":1\D/],
  ])('fails if a page returned such a %s and it did not land', async (_, v, message) => {
    let started: World | undefined
    const { violations } = await runWorld({
      ...SMALL_DELTA,
      store: {
        open: () =>
          losingStore(
            (landing) => landing.type === 'upsert' && landing.text.includes(`"v":${v}`),
            (key) => started?.source.write(key, { deleted: true }),
          ),
      },
      overrides: { ...SMALL_DELTA.overrides, deletions: 'none' },
      onStart: (world) => {
        started = world
        const [id] = world.source.ids().filter((each) => world.source.latest(each)?.v === 1)
        world.scheduleAfter(30_000, () => id !== undefined && world.source.write(id))
      },
    })
    expect(violations.map((violation) => `${violation.oracle} ${violation.message}`)).toEqual([
      expect.stringMatching(message),
    ])
  })

  test('compares the rows of deleted records where deletions are reported', async () => {
    const lost: string[] = []
    const { rows } = await runWorld({
      ...SMALL_DELTA,
      store: {
        open: () =>
          losingStore(
            ({ type }) => type === 'delete',
            (key) => void lost.push(key),
          ),
      },
      overrides: { ...SMALL_DELTA.overrides, deletions: 'inline' },
      onStart: (world) =>
        world.scheduleAfter(30_000, () => {
          for (const id of world.source.ids()) world.source.write(id, { deleted: true })
        }),
    })
    expect(lost).toHaveLength(1)
    expect(rows).toContain(lost[0])
  })
})

const SMALL_DELTA: WorldOptions = {
  seed: 1,
  kind: 'delta',
  overrides: { records: 3, operations: 0, gapMs: 60_000, unstorableShare: 0, plain: false, rates: {} },
}

/** Does not land one change, and reports its key as soon as its page has landed without it. */
async function losingStore(isLost: (landing: Landing) => boolean, onLost: (key: string) => void): Promise<Store> {
  const inner = await openSqliteStore({ file: ':memory:' })
  let hasLost = false
  const store: Store = {
    ...inner,
    forTenant: () => store,
    async commit(commit) {
      const lost = commit.landings.find(isLost)
      if (hasLost || lost === undefined) return inner.commit(commit)
      hasLost = true
      const outcome = await inner.commit({ ...commit, landings: commit.landings.filter((landing) => landing !== lost) })
      onLost(lost.key)
      return outcome
    },
  }
  return store
}

/** Claims that a retried commit landed, without checking. */
async function forgetfulStore(): Promise<Store> {
  const inner = await openSqliteStore({ file: ':memory:' })
  const sent = new Set<Commit>()
  const store: Store = {
    ...inner,
    forTenant: () => store,
    async commit(commit) {
      if (sent.has(commit))
        return {
          kind: 'landed',
          version: commit.version,
          headSequence: await inner.headSequence(),
          counts: { created: 0, updated: 0, deleted: 0, swept: 0, unchanged: 0, stale: 0, missing: 0, quarantined: 0 },
          paused: false,
        }
      sent.add(commit)
      return inner.commit(commit)
    },
  }
  return store
}

test('the guard reports code under test that uses the real time', () => {
  const wire = installNondeterminismGuard()
  try {
    Date.now()
    expect(wire.tripped()).toEqual([])
  } finally {
    wire.remove()
  }
  expect(Date.now.name).toBe('now')
})

// ── a user's own worker ──────────────────────────────────────────────────────────────────────────────────────────────

const ITEMS = Array.from({ length: 23 }, (_, index) => ({ id: `item-${String(index).padStart(2, '0')}`, n: index }))

/** An API with pages of five, as the user's machine would reach it. */
async function api(input: string | URL): Promise<Response> {
  const from = Number(new URL(input).searchParams.get('from'))
  return Response.json({ items: ITEMS.slice(from, from + 5), next: from + 5 < ITEMS.length ? from + 5 : null })
}

function plan(overrides: Partial<SyncPlan>): SyncPlan {
  return {
    worker: 'mine',
    sync: 'items',
    mode: 'replace',
    databases: [{ name: 'items' }],
    owner: 'items',
    pacers: [],
    limits: DEFAULT_LIMITS,
    sweep: DEFAULT_SWEEP,
    scope: null,
    upstreamToleranceMs: 0,
    execute: careful,
    ...overrides,
  }
}

const careful: SyncPlan['execute'] = async (state: { from: number } | undefined, { fetch }): Promise<Page> => {
  const response = await fetch(`https://api.test/items?from=${state?.from ?? 0}`)
  if (response.status === 429)
    throw new SyncError('RATE_LIMITED', 'Slow down.', {
      retryAfterMs: Number(response.headers.get('retry-after')) * 1_000,
    })
  if (!response.ok) throw new SyncError('SOURCE_UNAVAILABLE', `The API answered ${response.status}.`)
  const body = (await response.json().catch((cause: unknown) => {
    throw new SyncError('SOURCE_INVALID', 'The answer is not JSON.', { cause })
  })) as { items: typeof ITEMS; next: number | null }
  return {
    changes: body.items.map((item) => ({ type: 'upsert', key: item.id, record: item })),
    hasMore: body.next !== null,
    ...(body.next !== null && { nextState: { from: body.next } }),
  }
}

const options = { seeds: 25, fetch: api, secrets: { get: () => '' } }

describe("a user's own worker", () => {
  test('that is careful lands the same rows through crashes, lost answers and refusals', async () => {
    const { syncs, faults, sentence } = await simulateWorker([plan({})], options)
    expect(syncs[0]).toMatchObject({ rows: 23, seeds: 25, failure: null })
    expect(faults).toBeGreaterThan(100)
    expect(sentence).toBe(`1 syncs landed the same rows through ${faults} faults.`)
  })

  test('that takes a refusal for an empty page is detected, with the fewest faults needed', async () => {
    const careless: SyncPlan['execute'] = async (state: { from: number } | undefined, { fetch }) => {
      const body = (await (
        await fetch(`https://api.test/items?from=${state?.from ?? 0}`)
      )
        .json()
        .catch(() => ({}))) as { items?: typeof ITEMS; next?: number | null }
      return {
        changes: (body.items ?? []).map((item) => ({ type: 'upsert', key: item.id, record: item })),
        hasMore: body.next != null,
        ...(body.next != null && { nextState: { from: body.next } }),
      }
    }
    const { syncs } = await simulateWorker(
      [plan({ execute: careless, sweep: { maxShare: 1, allowEmpty: true } })],
      options,
    )
    expect(syncs[0]!.failure?.problem).toBe('lands other rows')
    expect(syncs[0]!.failure!.faults.length).toBeLessThan(4)
  })

  test('that keeps its cursor in memory instead of in state is detected', async () => {
    let from = 0
    const forgetful: SyncPlan['execute'] = async (state, context) => {
      if (state === undefined) from = 0
      const page = await careful(from === 0 ? undefined : { from }, context)
      from += 5
      return { ...page, ...(page.hasMore && { nextState: { page: from } }) }
    }
    const { syncs } = await simulateWorker([plan({ execute: forgetful })], { ...options, seeds: 60 })
    expect(syncs[0]!.failure?.problem).toBe('lands other rows')
  })

  test('that is not deterministic is distinguished from one that faults change', async () => {
    let calls = 0
    const { syncs } = await simulateWorker(
      [
        plan({
          execute: async () => ({
            changes: [{ type: 'upsert', key: 'one', record: { calls: ++calls } }],
            hasMore: false,
          }),
        }),
      ],
      options,
    )
    expect(syncs[0]!.failure).toMatchObject({ seed: 0, problem: 'differs by itself' })
  })

  test('that works in real time stops virtual time', async () => {
    const slow: SyncPlan['execute'] = async (state, context) => {
      await new Promise((resolve) => setTimeout(resolve, 3))
      return careful(state, context)
    }
    const { syncs } = await simulateWorker([plan({ execute: slow })], { ...options, seeds: 4 })
    expect(syncs[0]!.failure).toBeNull()
  })
})
