import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { replayQuarantinedRecords, type ReplayOptions, type ReplayResult } from '../../src/engine/replay-quarantine.ts'
import type { Change, JsonObject } from '../../src/contract/index.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { DATABASE, MINUTE, planOf, ref, remove, EngineFixture, createScriptedSource, upsert } from './engine-fixture.ts'

let scene: EngineFixture
beforeEach(async () => {
  scene = await EngineFixture.open()
})
afterEach(() => scene.close())

/** A schema that accepts names up to this length. */
let lettersMax = 3
const short = (record: JsonObject): string | null =>
  String(record['name']).length > lettersMax ? 'name is too long' : null
const plan = (sync: string, changes: Change[], more: Partial<SyncPlan> = {}): SyncPlan => ({
  ...planOf({
    sync,
    databases: [{ name: DATABASE, validate: short }],
    execute: createScriptedSource({ changes, hasMore: false, nextState: 1 }).execute,
  }),
  ...more,
})
const run = async (of: SyncPlan): Promise<void> => {
  scene.clock.step(MINUTE)
  expect(await scene.run(of)).toMatchObject({ stopReason: 'complete' })
}
const again = async (of: SyncPlan, options: Partial<ReplayOptions> = {}): Promise<Record<string, string>> => {
  scene.clock.step(MINUTE)
  const replayed: ReplayResult[] = await replayQuarantinedRecords(of, {
    store: scene.store,
    ports: scene.ports,
    holder: 'hand',
    actor: 'ana',
    ...options,
  })
  return Object.fromEntries(replayed.map(({ entry, outcome }) => [entry.key ?? '', outcome]))
}

describe('quarantined records', () => {
  beforeEach(() => {
    lettersMax = 3
  })

  test('XD24 land if they pass now, unchanged; others stay, with their time and the new reason', async () => {
    const delta = plan('delta', [
      upsert('a', { name: 'Anna', n: 9007199254740993n }, { cursor: '7' }),
      upsert('b', { name: 'Bartholomew' }),
      upsert('ok', { name: 'Eva' }),
    ])
    await run(delta)
    const before = await scene.store.quarantineEntries()
    lettersMax = 5
    expect(await again(delta, { dryRun: true })).toEqual({ a: 'landed', b: 'refused' })
    expect(await scene.keys()).toEqual(['ok'])
    const checkpoint = await scene.checkpoint('delta')
    expect(await again(delta)).toEqual({ a: 'landed', b: 'refused' })
    expect((await scene.rows())['a']).toEqual({ name: 'Anna', n: 9007199254740993n })
    expect((await scene.feed()).find(({ key }) => key === 'a')).toMatchObject({
      action: 'created',
      sync: 'delta',
      cursor: '7',
    })
    expect(await scene.store.quarantineEntries()).toEqual(before.filter(({ key }) => key === 'b'))
    expect(await scene.checkpoint('delta')).toEqual(checkpoint)
    expect(await again(delta)).toEqual({ b: 'refused' })
  })

  test('invariant 6 nothing newer is overwritten: by its time, and without one by when it was read', async () => {
    const at = (second: number): { at: string } => ({ at: `2026-01-01T00:00:0${second}Z` })
    const delta = plan('delta', [
      upsert('newer', { name: 'delta2' }, at(2)),
      upsert('older', { name: 'delta1' }, at(1)),
      upsert('timeless', { name: 'delta' }),
      upsert('before', { name: 'delta' }),
    ])
    await run(plan('backfill', [upsert('before', { name: 'B' })]))
    await run(delta)
    await run(
      plan('backfill', [
        upsert('newer', { name: 'B' }, at(1)),
        upsert('older', { name: 'B' }, at(2)),
        upsert('timeless', { name: 'B' }),
      ]),
    )
    lettersMax = 10
    const outcomes = { newer: 'landed', older: 'landed', timeless: 'superseded', before: 'landed' }
    expect(await again(delta, { dryRun: true })).toEqual(outcomes)
    expect(await again(delta)).toEqual(outcomes)
    const rows = await scene.rows()
    expect(rows).toEqual({
      newer: { name: 'delta2' },
      older: { name: 'B' },
      timeless: { name: 'B' },
      before: { name: 'delta' },
    })
    expect(await scene.store.quarantineEntries()).toEqual([])
  })

  test('invariant 6 a later deletion wins: of another sync, of a key never seen, and of a sweep', async () => {
    const delta = plan('delta', [
      upsert('deleted', { name: 'delta' }),
      upsert('buried', { name: 'delta' }),
      upsert('timed', { name: 'delta' }, { at: '2026-01-02T00:00:00Z' }),
    ])
    await run(plan('backfill', [upsert('deleted', { name: 'B' }), upsert('timed', { name: 'B' })]))
    await run(delta)
    await run(plan('backfill', [remove('deleted'), remove('buried'), remove('timed', '2026-01-01T00:00:00Z')]))
    lettersMax = 10
    expect(await again(delta)).toEqual({ deleted: 'superseded', buried: 'superseded', timed: 'superseded' })
    expect(await scene.keys()).toEqual([])

    lettersMax = 3
    const listing = (changes: Change[]): SyncPlan =>
      plan('listing', changes, { mode: 'replace', sweep: { maxShare: 1, allowEmpty: true } })
    await run(listing([upsert('x', { name: 'X' })]))
    await run(listing([upsert('x', { name: 'long name' }), upsert('y', { name: 'long name' })]))
    await run(listing([]))
    lettersMax = 10
    expect(await again(listing([]))).toEqual({ x: 'superseded', y: 'superseded' })
    expect(await scene.keys()).toEqual([])
    expect(await scene.store.quarantineEntries()).toEqual([])
  })

  test('invariant 3 not while the sync runs; and a truncated record is not invented', async () => {
    const delta = plan('delta', [
      upsert('a', { name: 'Anna' }),
      upsert('nan', { name: Number.NaN }),
      { type: 'upsert', key: '', record: {} },
    ])
    await run(delta)
    lettersMax = 10
    const taken = await scene.store.acquire(ref('delta'), {
      holder: 'runner',
      ttlMs: MINUTE * 60,
      at: scene.clock.now(),
    })
    await expect(again(delta)).rejects.toMatchObject({ code: 'LEASE_HELD' })
    if (taken.kind === 'acquired') await scene.store.release(taken.lease)
    expect(await again(delta, { database: 'elsewhere' })).toEqual({})
    expect(await again(delta)).toEqual({ a: 'landed', nan: 'lost', '': 'lost' })
    expect(await scene.keys()).toEqual(['a'])
    expect(await scene.store.quarantineEntries()).toHaveLength(2)
  })
})
