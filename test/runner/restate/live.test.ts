import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Stage } from '../../../src/testing/runner-cases/stage.ts'
import { ref, RunnerScene } from '../../../src/testing/runner-cases/harness.ts'
import { RestateStage } from '../restate-stage.ts'

const YEARS_AHEAD = Date.now() + 30 * 24 * 3_600_000

/** What only the real server can show: that it does with timers, calls and attempts what the tests under virtual time take for granted. */
describe('on a real Restate server', () => {
  let stage: Stage
  let harness: RestateStage
  let scene: RunnerScene

  beforeAll(async () => {
    stage = await Stage.open()
    harness = await RestateStage.open((folder) => `sqlite:${join(folder, 'stage.db')}`, stage.url)
    scene = new RunnerScene(harness, stage)
    await harness.start({ processes: 1, concurrency: 3, leaseMs: 30_000, tenants: ['default'], manual: 6, sliceMs: 400 })
  })
  afterAll(async () => {
    await harness.close()
    await stage.close()
  })

  const timers = (sync: string): Promise<Array<Record<string, unknown>>> => harness.invocations(`target_service_key = 'default/${sync}' and status != 'completed'`)

  test('a call is tried for ever, and a turn may take its time', async () => {
    const service = (await (await fetch(`${harness.server.admin}/services/tidemark.stage`)).json()) as { retry_policy: { max_attempts: number }; handlers: Array<{ name: string; inactivity_timeout: string; public: boolean }> }
    expect(service.retry_policy.max_attempts).toBeGreaterThan(1e9)
    const run = service.handlers.find(({ name }) => name === 'run')!
    expect(run.public).toBe(false)
    expect(run.inactivity_timeout).toMatch(/1[0-9]m|h/)
  })

  test('a cycle of many slices is one cycle, and asks for each page once', async () => {
    for (let row = 0; row < 80; row++) stage.table('m0').put(row, row)
    stage.behave({ pageMs: 150 }, 'm0')
    await harness.call('m0', 'trigger')
    await scene.until('its end', async () => (await scene.version('m0')) === 1)
    expect(stage.asked('m0').length).toBe(8)
    expect((await scene.store.cycles(ref('m0'))).length).toBe(1)
  })

  test('one timer is left of a sync that was triggered again and again, for its next slot; of one that runs by hand, none', async () => {
    await scene.until('its timer', async () => (await timers('yearly')).length === 1)
    for (let round = 1; round <= 3; round++) {
      await harness.call('yearly', 'trigger')
      await scene.until('a cycle', async () => (await scene.version('yearly')) === round)
    }
    await scene.until('one timer', async () => (await timers('yearly')).map(({ status }) => status).join() === 'scheduled')
    expect((await harness.call<{ timer: number }>('yearly', 'status')).timer).toBe(Date.UTC(new Date().getUTCFullYear() + 1, 0, 1))
    await scene.until('none', async () => (await timers('m0')).length === 0)
    // Nothing to do for it that it does not know.
    await harness.call('yearly', 'wake', { at: YEARS_AHEAD * 2 })
    expect((await timers('yearly')).length).toBe(1)
  })

  test('cancel does not wait for the page at hand; what landed stays, and a resume goes on', async () => {
    for (let row = 0; row < 30; row++) stage.table('m1').put(row, row)
    await harness.call('m1', 'trigger')
    await scene.until('its end', async () => (await scene.version('m1')) === 1)
    for (let row = 0; row < 30; row++) stage.table('m1').put(row, row + 1)
    stage.behave({ pageMs: 60_000 }, 'm1')
    await harness.call('m1', 'trigger')
    await scene.until('a page that hangs', () => stage.asked('m1').some(({ endedAt }) => endedAt === null))
    await harness.call('m1', 'cancel')
    await scene.until('it rests', async () => (await scene.store.read(ref('m1'))).heldBy === null)
    expect(await harness.call('m1', 'status')).toMatchObject({ health: 'PAUSED', failures: 0 })
    await scene.until('no call is left', async () => (await timers('m1')).length === 0)
    stage.behave({}, 'm1')
    await harness.call('m1', 'resume')
    await scene.until('the rest', async () => (await scene.version('m1')) === 2)
    expect(await scene.rows()).toMatchObject(stage.table('m1').rows)
  })

  test('XA11 Restate itself dies in the middle of a cycle, and goes on with it', async () => {
    for (let row = 0; row < 100; row++) stage.table('m2').put(row, row)
    stage.behave({ pageMs: 200 }, 'm2')
    await harness.trigger('m2')
    await scene.until('the third page', () => stage.asked('m2').length >= 3)
    await harness.restartServer()
    await scene.until('the rest', async () => (await scene.version('m2')) === 1)
    expect(await scene.rows()).toMatchObject(stage.table('m2').rows)
    expect((await scene.store.cycles(ref('m2'))).length).toBe(1)
    // All pages once, but for those that were being read.
    expect(stage.asked('m2').length).toBeLessThanOrEqual(13)
    expect(stage.overlaps).toEqual([])
  })

  test('a sync that nobody declared is told apart from one that fails', async () => {
    await expect(harness.call('nobody', 'status')).rejects.toThrow('404')
  })
})
