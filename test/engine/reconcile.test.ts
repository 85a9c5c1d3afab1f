import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Worker } from '../../src/worker/worker.ts'
import { parseSchedule } from '../../src/config/schedule.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { keysetOf, Table } from '../strategies/table.ts'
import { setState, stateOn } from '../strategies/run-strategy.ts'
import { HOUR, MINUTE, EngineFixture, SECOND, WORKER } from './engine-fixture.ts'

/** A delta with a window of fifteen seconds, and the backfill that finds the rows it missed. */
describe('a scheduled backfill', () => {
  let scene: EngineFixture
  let table: Table
  let worker: Worker
  let plans: { backfill: SyncPlan; delta: SyncPlan }

  beforeEach(async () => {
    scene = await EngineFixture.open()
    table = new Table(scene.clock)
    worker = new Worker({ name: WORKER })
    const source = { backfill: keysetOf(table), delta: keysetOf(table), anchor: keysetOf(table).anchor }
    const { backfill, delta } = worker.track('sync', {
      database: worker.database('things'),
      source,
      backfillSchedule: '1d',
    })
    plans = { backfill: worker.plan(backfill), delta: worker.plan(delta) }
    table.put('old')
    await follow('backfill')
    table.put('first')
    await follow('delta')
  })
  afterEach(() => scene.close())

  async function follow(half: 'backfill' | 'delta', afterMs = 5 * MINUTE): Promise<void> {
    scene.clock.step(afterMs)
    expect(await scene.run(plans[half])).toMatchObject({ stopReason: 'complete' })
  }
  const told = (): string[] => scene.logged.filter((line) => line.includes('late_beyond_window'))

  test('XC6 brings a row that appeared later than the delta waits, and reports by how much', async () => {
    table.put('late', { lateMs: HOUR })
    scene.clock.step(MINUTE)
    table.put('after')
    await follow('delta')
    await follow('delta', 2 * HOUR)
    expect(await scene.keys()).toEqual(['after', 'first', 'old'])

    await follow('backfill')
    expect(await scene.rows()).toEqual(table.truth())
    const [line, ...more] = told()
    expect(more).toEqual([])
    const { rows, lagMs, delta } = JSON.parse(line!.slice(line!.indexOf('{'))) as {
      rows: number
      lagMs: number
      delta: string
    }
    expect({ rows, delta }).toEqual({ rows: 1, delta: 'sync' })
    expect(lagMs).toBe(2 * HOUR + 11 * MINUTE)
  })

  test('XC6 control: rows ahead of the delta are not late, and a delta without a tidemark has missed nothing', async () => {
    table.put('young')
    await follow('backfill', SECOND)
    expect(await scene.rows()).toEqual(table.truth())
    expect(told()).toEqual([])
  })

  test('XC17 XC19 finds a row whose time is before the cursor of the delta: set back, or passed with a cursor of another account', async () => {
    await follow('delta')
    table.put('imported', { at: '2020-01-01T00:00:00Z' })
    await follow('delta')
    expect(await scene.keys()).not.toContain('imported')
    await follow('backfill')
    expect(await scene.rows()).toEqual(table.truth())
    expect(told()).toHaveLength(1)
  })

  test('XC17 a cursor of another account, ahead of everything here, does not move the frontier beyond the horizon', async () => {
    await setState(scene, {
      cursorTimestamp: new Date(scene.clock.now() + 30 * 24 * HOUR).toISOString(),
      cursorId: 'zzz',
    })
    table.put('skipped', { at: new Date(scene.clock.now() - HOUR).toISOString() })
    await follow('delta')
    const { cursorTimestamp } = (await stateOn<{ cursorTimestamp: string }>(scene))!
    expect(Date.parse(cursorTimestamp)).toBeLessThanOrEqual(scene.clock.now() - 15 * SECOND)
    table.put('seen')
    await follow('delta')
    expect(await scene.keys()).toContain('seen')
    expect(await scene.keys()).not.toContain('skipped')
    await follow('backfill')
    expect(await scene.rows()).toEqual(table.truth())
  })

  test('XC17 if the source reports the account, a listing of another account sweeps nothing', async () => {
    const as = (scope: string): SyncPlan => ({
      ...plans.backfill,
      execute: async (state, context) => ({ ...(await keysetOf(table)(state, context)), scope }),
    })
    await scene.run(as('account a'))
    table.remove('old')
    expect(await scene.run(as('account b'))).toMatchObject({ stopReason: 'blocked', error: { code: 'SCOPE_CHANGED' } })
    expect(await scene.keys()).toContain('old')
  })

  test('XC6 runs on the schedule of the pair, and manually without one', () => {
    const scheduleOf = (from: Worker, sync: string): unknown =>
      from.manifest.syncs.find(({ name }) => name === sync)!.schedule
    expect(scheduleOf(worker, 'sync-backfill')).toEqual(parseSchedule('1d', 'test'))
    expect(scheduleOf(worker, 'sync')).toEqual(parseSchedule('5m', 'test'))
    const other = new Worker({ name: 'other' })
    other.track('sync', {
      database: other.database('things'),
      source: { backfill: keysetOf(table), delta: keysetOf(table) },
    })
    expect(scheduleOf(other, 'sync-backfill')).toEqual({ kind: 'manual' })
  })
})
