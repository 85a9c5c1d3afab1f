import { afterEach, beforeEach, expect, test } from 'vitest'
import { SyncError } from '../../src/contract/index.ts'
import { planOf, EngineFixture, createScriptedSource, storeWith, upsert } from './engine-fixture.ts'

let scene: EngineFixture
beforeEach(async () => {
  scene = await EngineFixture.open()
})
afterEach(() => scene.close())

test('XB12 a stored state that cannot be read stops the sync: it is never taken for no state, and the source is not called', async () => {
  const first = createScriptedSource({ changes: [upsert('a')], hasMore: false, nextState: { at: 1 } })
  await scene.run(planOf({ execute: first.execute }))
  const spoiled = storeWith(scene.store, {
    beginCycle: async (lease, request) => {
      const begun = (await scene.store.beginCycle(lease, request))!
      return { ...begun, inflight: { ...begun.inflight, state: '{"at":1 canary' } }
    },
  })
  const second = createScriptedSource({ changes: [], hasMore: false, nextState: { at: 2 } })
  const result = await scene.run(planOf({ execute: second.execute }), { store: spoiled })
  expect(result.error?.code).toBe('STATE_UNREADABLE')
  expect(result.error?.message).not.toContain('canary')
  expect(second.asked).toEqual([])
  expect(await scene.checkpoint()).toMatchObject({ version: 1, committed: '{"at":1}' })
})

test('XA4 there is no gap between rows and state to crash in: one call commits both, and a refused call commits neither', async () => {
  const calls: string[] = []
  const watched = storeWith(scene.store, {
    commit: async (commit) => {
      calls.push(`${commit.landings.length} rows with ${commit.transition.kind}`)
      return scene.store.commit({ ...commit, version: commit.version + 1 })
    },
  })
  const { execute } = createScriptedSource({
    changes: [upsert('a'), upsert('b')],
    hasMore: false,
    nextState: { at: 1 },
  })
  expect((await scene.run(planOf({ execute }), { store: watched })).error?.code).toBe('VERSION_CONFLICT')
  expect(calls).toEqual(['2 rows with complete'])
  expect(await scene.keys()).toEqual([])
  expect((await scene.checkpoint()).committed).toBeNull()
})

test('XE11 a scope on the first page alone survives an interruption of the cycle', async () => {
  const source = createScriptedSource(
    { changes: [upsert('a'), upsert('b')], hasMore: true, nextState: 1, scope: 'account 1' },
    new Error('away'),
    { changes: [upsert('c')], hasMore: false },
  )
  const plan = planOf({ mode: 'replace', execute: source.execute })
  expect((await scene.run(plan)).stopReason).toBe('error')
  expect((await scene.run(plan)).stopReason).toBe('complete')
  expect((await scene.checkpoint()).scope).toBe('account 1')
})

test('a lost response to acquire does not lock a cycle out of its own lease', async () => {
  let lost = 0
  const forgetful = storeWith(scene.store, {
    acquire: async (ref, request) => {
      const taken = await scene.store.acquire(ref, request)
      if (lost++ === 0) throw new SyncError('STORE_BUSY', 'the answer was lost')
      return taken
    },
  })
  const { execute } = createScriptedSource({ changes: [upsert('a')], hasMore: false })
  expect((await scene.run(planOf({ execute }), { store: forgetful })).stopReason).toBe('complete')
})

test('an invalid record followed by a valid one of the same key on the page is committed and not quarantined', async () => {
  const { execute } = createScriptedSource({
    changes: [upsert('a', { n: Number.NaN }), upsert('a', { n: 1 }), upsert('b', { n: Number.NaN })],
    hasMore: false,
  })
  expect((await scene.run(planOf({ execute }))).counts).toMatchObject({ created: 1, quarantined: 1 })
  expect((await scene.store.quarantineEntries()).map(({ key }) => key)).toEqual(['b'])
})
