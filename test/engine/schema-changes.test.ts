import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Worker } from '../../src/worker/worker.ts'
import type { Change, SchemaMode } from '../../src/contract/index.ts'
import { replayQuarantinedRecords } from '../../src/engine/replay-quarantine.ts'
import type { SyncPlan } from '../../src/engine/sync-plan.ts'
import { DATABASE, MINUTE, planOf, EngineFixture, createScriptedSource, upsert } from './engine-fixture.ts'

let scene: EngineFixture
beforeEach(async () => {
  scene = await EngineFixture.open()
})
afterEach(() => scene.close())

function plan(schemaChanges: SchemaMode, ...changes: Change[]): SyncPlan {
  return planOf({
    sync: 'list',
    databases: [{ name: DATABASE, schemaChanges }],
    execute: createScriptedSource({ changes, hasMore: false, nextState: 1 }).execute,
  })
}

async function change(member: string, type: string): Promise<void> {
  await scene.store.beginSchemaChange(DATABASE, {
    changes: [{ member, type }],
    actor: 'ana',
    reason: '',
    at: scene.clock.now(),
  })
  while (!(await scene.store.advanceSchemaChange(DATABASE, { at: scene.clock.now(), rowsMax: 10 }))!.isDone);
}

describe('records that do not fit their columns', () => {
  test('are reported once: in the result of the cycle that brought the first, and in none after it', async () => {
    await scene.run(plan('evolve', upsert('a', { at: '2026-01-01' })))
    scene.clock.step(MINUTE)
    // Both are strings, so only the column differs.
    const first = await scene.run(plan('evolve', upsert('b', { at: 'soon' })))
    expect(first.drift).toEqual([
      `${DATABASE}.at: a value of type text does not fit the column of type date; it is kept in _extra`,
    ])
    scene.clock.step(MINUTE)
    expect((await scene.run(plan('evolve', upsert('c', { at: 'later' })))).drift).toEqual([])
    expect(await scene.rows()).toMatchObject({ b: { at: 'soon' }, c: { at: 'later' } })
  })

  test('are quarantined if the database is configured so, are refused again while nothing has changed, and land once the column fits', async () => {
    await scene.run(plan('quarantine', upsert('a', { age: 1 })))
    scene.clock.step(MINUTE)
    const strict = plan('quarantine', upsert('b', { age: 'old' }, { cursor: '7', at: '2026-01-02T00:00:00Z' }))
    expect(await scene.run(strict)).toMatchObject({ stopReason: 'complete', counts: { quarantined: 1, created: 0 } })
    expect(await scene.keys()).toEqual(['a'])
    const again = async (): Promise<unknown> => {
      scene.clock.step(MINUTE)
      return (
        await replayQuarantinedRecords(strict, { store: scene.store, ports: scene.ports, holder: 'hand', actor: 'ana' })
      ).map(({ outcome, message }) => [outcome, message])
    }
    expect(await again()).toEqual([['refused', 'age is text, but its column is bigint']])
    expect(await scene.store.quarantineEntries()).toHaveLength(1)
    await change('age', 'text')
    expect(await again()).toEqual([['landed', '']])
    expect(await scene.rows()).toEqual({ a: { age: 1 }, b: { age: 'old' } })
    expect((await scene.feed()).at(-1)).toMatchObject({
      key: 'b',
      cursor: '7',
      upstreamAt: '2026-01-02T00:00:00.000000Z',
    })
    expect(await scene.store.quarantineEntries()).toEqual([])
  })

  test('a worker configures it per database, and rejects other values', () => {
    const worker = new Worker({ name: 'w' })
    const database = worker.database('people', { schemaChanges: 'freeze' })
    worker.sync('list', {
      database,
      mode: 'replace',
      execute: createScriptedSource({ changes: [], hasMore: false, nextState: 1 }).execute,
    })
    expect(worker.plan('list').databases).toMatchObject([{ name: 'people', schemaChanges: 'freeze' }])
    worker.database('desks', { schema: 'quarantine' })
    worker.sync('desks', {
      database: 'desks',
      mode: 'incremental',
      schedule: 'manual',
      execute: async () => ({ changes: [], hasMore: false }),
    })
    expect(worker.plan('desks').databases).toMatchObject([{ name: 'desks', schemaChanges: 'quarantine' }])
    expect(() => worker.database('halls', { schema: 'grow' as SchemaMode })).toThrow(
      'schema is "grow", but it must be one of evolve, freeze, quarantine',
    )
    expect(() => worker.database('halls', { schema: 'freeze', schemaChanges: 'evolve' })).toThrow(
      'Set only one of them',
    )
    expect(() => worker.database('rooms', { schemaChanges: 'grow' as SchemaMode })).toThrow(
      'schemaChanges is "grow", but it must be one of evolve, freeze, quarantine',
    )
  })
})
