import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SourceServerFixture } from '../../../src/testing/runner-cases/source-server-fixture.ts'
import { syncRef, RunnerCaseFixture } from '../../../src/testing/runner-cases/harness.ts'
import { RestateHarness } from '../restate-harness.ts'

const YEARS_AHEAD = Date.now() + 30 * 24 * 3_600_000

/** Behaviour of the real server for timers, calls and attempts that the tests under virtual time assume. */
describe('on a real Restate server', () => {
  let stage: SourceServerFixture
  let harness: RestateHarness
  let scene: RunnerCaseFixture

  beforeAll(async () => {
    stage = await SourceServerFixture.open()
    harness = await RestateHarness.open((folder) => `sqlite:${join(folder, 'stage.db')}`, stage.url)
    scene = new RunnerCaseFixture(harness, stage)
    await harness.start({
      processes: 1,
      concurrency: 3,
      leaseMs: 30_000,
      tenants: ['default'],
      manual: 6,
      sliceMs: 400,
    })
  })
  afterAll(async () => {
    await harness.close()
    await stage.close()
  })

  const timers = (sync: string): Promise<Array<Record<string, unknown>>> =>
    harness.invocations(`target_service_key = 'default/${sync}' and status != 'completed'`)

  test('a call is retried forever, and a turn may take long', async () => {
    const service = (await (await fetch(`${harness.server.admin}/services/tidemark.stage`)).json()) as {
      retry_policy: { max_attempts: number }
      handlers: Array<{ name: string; inactivity_timeout: string; public: boolean }>
    }
    expect(service.retry_policy.max_attempts).toBeGreaterThan(1e9)
    const run = service.handlers.find(({ name }) => name === 'run')!
    expect(run.public).toBe(false)
    expect(run.inactivity_timeout).toMatch(/1[0-9]m|h/)
  })

  test('a cycle of many slices is one cycle, and reads each page once', async () => {
    for (let row = 0; row < 80; row++) stage.table('m0').put(row, row)
    stage.setBehaviour({ pageMs: 150 }, 'm0')
    await harness.call('m0', 'trigger')
    await scene.waitUntil('its end', async () => (await scene.version('m0')) === 1)
    expect(stage.requestsOf('m0').length).toBe(8)
    expect((await scene.store.cycles(syncRef('m0'))).length).toBe(1)
  })

  test('a sync that was triggered repeatedly has one timer left, for its next slot; a manual one has none', async () => {
    await scene.waitUntil('its timer', async () => (await timers('yearly')).length === 1)
    for (let round = 1; round <= 3; round++) {
      await harness.call('yearly', 'trigger')
      await scene.waitUntil('a cycle', async () => (await scene.version('yearly')) === round)
    }
    await scene.waitUntil(
      'one timer',
      async () => (await timers('yearly')).map(({ status }) => status).join() === 'scheduled',
    )
    expect((await harness.call<{ timer: number }>('yearly', 'status')).timer).toBe(
      Date.UTC(new Date().getUTCFullYear() + 1, 0, 1),
    )
    await scene.waitUntil('none', async () => (await timers('m0')).length === 0)
    // The time is later than the one it knows, so nothing happens.
    await harness.call('yearly', 'wake', { at: YEARS_AHEAD * 2 })
    expect((await timers('yearly')).length).toBe(1)
  })

  test('cancel does not wait for the current page; committed pages remain, and a resume continues', async () => {
    for (let row = 0; row < 30; row++) stage.table('m1').put(row, row)
    await harness.call('m1', 'trigger')
    await scene.waitUntil('its end', async () => (await scene.version('m1')) === 1)
    for (let row = 0; row < 30; row++) stage.table('m1').put(row, row + 1)
    stage.setBehaviour({ pageMs: 60_000 }, 'm1')
    await harness.call('m1', 'trigger')
    await scene.waitUntil('a page that hangs', () => stage.requestsOf('m1').some(({ endedAt }) => endedAt === null))
    await harness.call('m1', 'cancel')
    await scene.waitUntil('it rests', async () => (await scene.store.readCheckpoint(syncRef('m1'))).heldBy === null)
    expect(await harness.call('m1', 'status')).toMatchObject({ health: 'PAUSED', failures: 0 })
    await scene.waitUntil('no call is left', async () => (await timers('m1')).length === 0)
    stage.setBehaviour({}, 'm1')
    await harness.call('m1', 'resume')
    await scene.waitUntil('the rest', async () => (await scene.version('m1')) === 2)
    expect(await scene.rows()).toMatchObject(stage.table('m1').rows)
  })

  test('XA11 Restate itself is killed during a cycle, and continues it', async () => {
    for (let row = 0; row < 100; row++) stage.table('m2').put(row, row)
    stage.setBehaviour({ pageMs: 200 }, 'm2')
    await harness.trigger('m2')
    await scene.waitUntil('the third page', () => stage.requestsOf('m2').length >= 3)
    await harness.restartServer()
    await scene.waitUntil('the rest', async () => (await scene.version('m2')) === 1)
    expect(await scene.rows()).toMatchObject(stage.table('m2').rows)
    expect((await scene.store.cycles(syncRef('m2'))).length).toBe(1)
    // All pages once, except those that were being read.
    expect(stage.requestsOf('m2').length).toBeLessThanOrEqual(13)
    expect(stage.overlaps).toEqual([])
  })

  test('an undeclared sync is distinguished from one that fails', async () => {
    await expect(harness.call('nobody', 'status')).rejects.toThrow('404')
  })
})
