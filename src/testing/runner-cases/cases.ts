import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { syncRef, rule, type RunnerCase } from './harness.ts'
import { required } from '../../values/required.ts'

const MINUTE = 60_000
/** Long enough for a second process to repeat the work, if it did. */
const OBSERVATION_MS = 700

/** How late a request may arrive after its slot on a busy machine; the next one is then that much closer. */
const LATENESS_MAX_MS = 1_500

/** The contract of a runner, in the order in which one would implement it. */
export const runnerCases: readonly RunnerCase[] = [
  rule(
    'a sync that is due at the start runs, lands and is reported; one that is not due does not run',
    async (scene) => {
      for (let row = 0; row < 25; row++) scene.source.table('minutely').put(row, row)
      await scene.start()
      await scene.waitUntil('a cycle of the due one', async () => (await scene.status('minutely')).health === 'HEALTHY')
      assert.deepEqual(await scene.rows(), scene.source.table('minutely').rows)
      const { lastCycle, due } = await scene.status('minutely')
      assert.equal(required(lastCycle, 'lastCycle').stopReason, 'complete')
      assert.deepEqual(due, { kind: 'at', at: required(lastCycle, 'lastCycle').startedAt + MINUTE, why: 'schedule' })
      assert.deepEqual([scene.source.requestsOf('m0'), scene.source.requestsOf('yearly')], [[], []])
      assert.deepEqual((await scene.status('m0')).due, { kind: 'never', why: 'manual' })
      const yearly = (await scene.status('yearly')).due
      assert.deepEqual(yearly, { kind: 'at', at: Date.UTC(new Date().getUTCFullYear() + 1, 0, 1), why: 'schedule' })
    },
  ),
  rule('N17 a trigger starts one cycle, however many processes there are, and each trigger another', async (scene) => {
    await scene.start()
    for (let round = 1; round <= 3; round++) {
      await scene.harness.trigger('m0')
      await scene.waitUntil('a cycle', async () => (await scene.version('m0')) >= round)
      await sleep(OBSERVATION_MS)
      assert.equal(scene.source.requestsOf('m0').length, round)
    }
    assert.deepEqual(scene.source.requestsOf('m1'), [])
    assert.equal(required((await scene.store.cycles(syncRef('m0')))[0], 'the result of cycles[0]').trigger, 'trigger')
  }),
  rule('F.2 a pause lands the current page and no further one; a resume continues after it', async (scene) => {
    for (let row = 0; row < 60; row++) scene.source.table('m0').put(row, row)
    scene.source.setBehaviour({ pageMs: 150 }, 'm0')
    await scene.start()
    await scene.harness.trigger('m0')
    await scene.waitUntil('the second page', () => scene.source.requestsOf('m0').length >= 2)
    await scene.harness.pause('m0')
    await scene.waitUntil(
      'the sync to stop reading',
      async () => (await scene.store.readCheckpoint(syncRef('m0'))).heldBy === null,
    )
    const asked = scene.source.requestsOf('m0').length
    const { health, unfinished } = await scene.status('m0')
    assert.equal(health, 'PAUSED')
    assert.ok(unfinished !== null && unfinished.page < 6)
    await sleep(OBSERVATION_MS)
    assert.equal(scene.source.requestsOf('m0').length, asked)
    await scene.harness.resume('m0')
    await scene.waitUntil('the remaining pages', async () => (await scene.version('m0')) === 1)
    assert.deepEqual(await scene.rows(), scene.source.table('m0').rows)
    assert.equal((await scene.store.cycles(syncRef('m0'))).length, 1)
  }),
  rule(
    'XB18 slots missed long ago are made up for by one cycle, in one process, and the next slot is counted from there',
    async (scene) => {
      await scene.recordCycleAt('minutely', Date.now() - 10 * MINUTE)
      await scene.start()
      await scene.waitUntil('a cycle', async () => (await scene.version('minutely')) === 2)
      await sleep(OBSERVATION_MS)
      const cycles = await scene.store.cycles(syncRef('minutely'))
      assert.equal(cycles.length, 2)
      assert.deepEqual((await scene.status('minutely')).due, {
        kind: 'at',
        at: required(cycles[0], 'cycles[0]').startedAt + MINUTE,
        why: 'schedule',
      })
    },
  ),
  rule('XB18 a slot runs when it is due and not before, in one process', async (scene) => {
    const last = Date.now() - MINUTE + 6_000
    await scene.recordCycleAt('minutely', last)
    await scene.start()
    await scene.waitUntil('a cycle', async () => (await scene.version('minutely')) === 2)
    await sleep(OBSERVATION_MS)
    const [cycle, ...others] = await scene.store.cycles(syncRef('minutely'))
    assert.equal(others.length, 1)
    assert.ok(
      required(cycle, 'cycle').startedAt >= last + MINUTE,
      `it ran ${last + MINUTE - required(cycle, 'the cycle').startedAt} ms early`,
    )
  }),
  rule(
    'XB1, XB19 processes that start together never read one sync concurrently, and every sync gets its turns',
    async (scene) => {
      const syncs = Array.from({ length: 8 }, (_, i) => `c${i}`)
      scene.source.setBehaviour({ pageMs: 20 })
      await scene.start({ continuous: syncs.length })
      await scene.waitUntil('three cycles of each', async () =>
        (await Promise.all(syncs.map((sync) => scene.version(sync)))).every((version) => version >= 3),
      )
      await scene.waitUntil(
        'both processes to run a cycle',
        () => new Set(scene.source.requests.map(({ process }) => process)).size === 2,
      )
      await scene.harness.stop()
      assert.deepEqual(scene.source.overlaps, [])
      for (const sync of syncs) assert.equal((await scene.store.readCheckpoint(syncRef(sync))).failures, 0)
    },
  ),
  rule(
    'XA10 on a stop signal the current page lands or is dropped, leases are released, and a later start continues',
    async (scene) => {
      for (let row = 0; row < 80; row++) scene.source.table('m0').put(row, row)
      scene.source.setBehaviour({ pageMs: 150 }, 'm0')
      await scene.start()
      await scene.harness.trigger('m0')
      await scene.waitUntil('the third page', () => scene.source.requestsOf('m0').length >= 3)
      await scene.harness.stop()
      const { heldBy, inflight, failures } = await scene.store.readCheckpoint(syncRef('m0'))
      assert.deepEqual({ heldBy, failures }, { heldBy: null, failures: 0 })
      assert.ok(inflight !== null && inflight.page >= 1)
      const asked = scene.source.requests.length
      await sleep(OBSERVATION_MS)
      assert.equal(scene.source.requests.length, asked)
      await scene.start()
      await scene.waitUntil('the remaining pages', async () => (await scene.version('m0')) === 1)
      assert.deepEqual(await scene.rows(), scene.source.table('m0').rows)
      assert.equal((await scene.store.cycles(syncRef('m0'))).length, 1)
      // Every page is read once, except the one in flight at the stop.
      assert.ok(scene.source.requestsOf('m0').length <= 10)
    },
  ),
  rule(
    'XA11 the cycle of a killed process is taken over when its lease expires, and continues after the last committed page',
    async (scene) => {
      const syncs = Array.from({ length: 4 }, (_, i) => `m${i}`)
      for (const sync of syncs) for (let row = 0; row < 80; row++) scene.source.table(sync).put(row, row)
      scene.source.setBehaviour({ pageMs: 200 })
      await scene.start({ leaseMs: 4_000, manual: syncs.length, concurrency: 2 })
      for (const sync of syncs) await scene.harness.trigger(sync)
      await scene.waitUntil('both processes to be reading a second page', () => {
        const pages = new Map<string, number>()
        for (const { sync, process } of scene.source.requests)
          if (syncs.includes(sync)) pages.set(process, (pages.get(process) ?? 0) + 1)
        return pages.size === 2 && [...pages.values()].every((count) => count >= 3)
      })
      const killed = await scene.harness.kill()
      await scene.waitUntil('the other process to complete all syncs', async () =>
        (await Promise.all(syncs.map((sync) => scene.version(sync)))).every((version) => version === 1),
      )
      const expected = Object.assign({}, ...syncs.map((sync) => scene.source.table(sync).rows)) as Record<
        string,
        number
      >
      assert.deepEqual(await scene.rows(), expected)
      assert.deepEqual(scene.source.overlaps, [])
      for (const sync of syncs) {
        assert.equal((await scene.store.cycles(syncRef(sync))).length, 1)
        const asked = scene.source.requestsOf(sync)
        if (asked.some(({ process }) => process === killed))
          assert.ok(asked.length <= 10, `${sync} was started from the beginning`)
      }
    },
  ),
  rule('SX6 a sync that fails backs off and affects no other; a resume clears the backoff', async (scene) => {
    scene.source.setBehaviour({ fails: true }, 'm0')
    await scene.start()
    await scene.harness.trigger('m0')
    await scene.waitUntil('the failure', async () => (await scene.status('m0')).failures === 1)
    const { lastError, retryAt, health } = await scene.status('m0')
    assert.equal(health, 'WARNING')
    assert.ok(required(retryAt, 'retryAt') - required(lastError, 'lastError').at >= 30_000)
    await scene.harness.trigger('m1')
    await scene.waitUntil('the other sync', async () => (await scene.version('m1')) === 1)
    await sleep(OBSERVATION_MS)
    assert.equal(scene.source.requestsOf('m0').length, 1)
    scene.source.setBehaviour({}, 'm0')
    await scene.harness.resume('m0')
    await scene.harness.trigger('m0')
    await scene.waitUntil('its recovery', async () => (await scene.status('m0')).health === 'HEALTHY')
  }),
  rule(
    'N16 a full listing and a delta run concurrently over one table, and it converges to the source',
    async (scene) => {
      const table = scene.source.table('items')
      for (let row = 0; row < 50; row++) table.put(row, row)
      scene.source.setBehaviour({ pageMs: 100 })
      await scene.start()
      await scene.harness.trigger('items-backfill')
      await scene.waitUntil('the listing to be under way', () => scene.source.requestsOf('items-backfill').length >= 3)
      for (let row = 0; row < 50; row += 3) table.put(row, row % 2 === 0 ? null : row + 1_000)
      table.put(99, 99)
      await scene.harness.trigger('items')
      await scene.waitUntil('the end of the listing', async () => (await scene.version('items-backfill')) === 1)
      const before = await scene.version('items')
      await scene.harness.trigger('items')
      await scene.waitUntil(
        'the changes',
        async () =>
          (await scene.version('items')) > before &&
          (await scene.store.readCheckpoint(syncRef('items'))).heldBy === null,
      )
      assert.deepEqual(await scene.rows('items'), table.rows)
    },
  ),
  rule(
    'NX1 a request budget is shared by all processes: no interval exceeds it, and a killed process does not use it up',
    async (scene) => {
      const syncs = Array.from({ length: 4 }, (_, i) => `c${i}`)
      const perSecond = 2
      await scene.start({ continuous: syncs.length, perSecond, leaseMs: 2_000 })
      const asked = (): number[] => scene.source.requests.filter(({ sync }) => syncs.includes(sync)).map(({ at }) => at)
      await scene.waitUntil('two requests for each', () => asked().length >= 8)
      await scene.harness.kill()
      await scene.waitUntil('every sync to continue', () =>
        syncs.every((sync) => scene.source.requestsOf(sync).length >= 4),
      )
      const at = asked()
      for (const [i, from] of at.entries()) {
        for (const [more, to] of at.slice(i).entries()) {
          const allowed = ((to - from + LATENESS_MAX_MS) / 1_000) * perSecond
          assert.ok(
            more <= allowed,
            `${more} requests after one of them in ${to - from} ms, where ${allowed.toFixed(1)} were allowed`,
          )
        }
      }
    },
  ),
  rule('NX1 a sync may use the share of a budget that others leave unused', async (scene) => {
    const syncs = Array.from({ length: 8 }, (_, i) => `c${i}`)
    for (const sync of syncs.slice(1)) await scene.harness.pause(sync)
    await scene.start({ continuous: syncs.length, perSecond: 1 })
    // An even share would be one request every eight seconds.
    const gaps = (): number[] =>
      scene.source
        .requestsOf('c0')
        .slice(1)
        .map(({ at }, i) => at - required(scene.source.requestsOf('c0')[i], 'the result of requestsOf[i]').at)
    await scene.waitUntil('two requests close to each other', () => gaps().some((gap) => gap < 6_000))
    assert.deepEqual(scene.source.requestsOf('c1'), [])
  }),
  rule('a sync runs after its parents have completed, once, in whichever processes they ran', async (scene) => {
    await scene.start({ child: true })
    const runs = (): number => scene.source.requestsOf('child').length
    for (let round = 1; round <= 3; round++) {
      await scene.harness.trigger('m0')
      await scene.waitUntil('the first parent', async () => (await scene.version('m0')) === round)
      await sleep(OBSERVATION_MS)
      assert.equal(runs(), round - 1)
      await scene.harness.trigger('items')
      await scene.waitUntil('the child', async () => (await scene.version('child')) === round)
      // A continuous sync would run again after a second.
      await sleep(2 * OBSERVATION_MS)
      assert.equal(runs(), round)
    }
    await scene.harness.trigger('child')
    await scene.waitUntil('a triggered cycle of the child', async () => (await scene.version('child')) === 4)
  }),
  rule('XB19 a small tenant is served beside a large one', async (scene) => {
    const many = Array.from({ length: 60 }, (_, i) => `m${i}`)
    scene.source.setBehaviour({ pageMs: 30 })
    for (const sync of many) await scene.harness.trigger(sync, 'large')
    for (const sync of many.slice(0, 3)) await scene.harness.trigger(sync, 'small')
    await scene.start({ manual: many.length, concurrency: 1, tenants: ['large', 'small'] })
    const manual = (): string[] =>
      scene.source.requests
        .filter(({ sync }) => sync.startsWith('m') && sync !== 'minutely')
        .map(({ tenant }) => tenant)
    await scene.waitUntil('all cycles', () => manual().length >= many.length + 3)
    // In first-in, first-out order it would come last; with fair turns of two processes it is done among the first few.
    assert.ok(
      manual().lastIndexOf('small') < 20,
      `the last cycle of the small tenant came as number ${manual().lastIndexOf('small')}`,
    )
  }),
]
