import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runCycle } from '../../src/worker/run-cycle.ts'
import { Worker } from '../../src/worker/worker.ts'
import type { JsonObject, Page, Store } from '../../src/contract/index.ts'
import { KeyRing, generateMasterKey } from '../../src/registry/key-ring.ts'
import { sealStore } from '../../src/registry/sealed-store.ts'
import { listDeclaredSyncs } from '../../src/runner/declared-sync.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { SyncDriver, upsert } from '../../src/testing/store-cases/harness.ts'
import { Project } from '../cli/project.ts'
import { RunnerFixture as RunnerScene } from '../runner/runner-fixture.ts'

const RECORDS: readonly JsonObject[] = [
  { id: 'a', Name: 'Ünal', nested: { deep: [1, { n: 9007199254740993n }] }, gone: null, price: 1.5, on: true },
  { id: 'b', Name: '', 'odd name': 'x', at: '2026-01-01T00:00:00Z' },
]

/** Two pages, each with its own cursor. */
async function execute(state: { n: number } | undefined): Promise<Page<{ n: number }>> {
  const n = state?.n ?? 0
  const record = RECORDS[n]
  return {
    changes: record === undefined ? [] : [{ type: 'upsert', key: record['id'] as string, record, cursor: `c${n}` }],
    hasMore: n === 0,
    nextState: { n: n + 1 },
  }
}

let store: Store
beforeEach(async () => {
  store = await openSqliteStore({ file: ':memory:' })
})
afterEach(() => store.close())

const worker = (): Worker => {
  const made = new Worker({ name: 'shop' })
  made.sync('orders', { database: made.database('orders'), mode: 'incremental', schedule: 'manual', execute })
  return made
}

/** The content of a log, without times. */
async function told(of: Store): Promise<object[]> {
  const entries = await of.changes({ after: 0, limit: 100 })
  return entries.map((entry) => ({ ...entry, committedAt: 0, cycle: 0 }))
}

describe('the requirements of the specification on a run', () => {
  test('R14 every record that is read is logged, with its stream, key and cursor; an unchanged record is not logged again', async () => {
    await runCycle(worker(), 'orders', { store })
    expect(await told(store)).toMatchObject(
      RECORDS.map((record, n) => ({
        worker: 'shop',
        sync: 'orders',
        key: record['id'],
        cursor: `c${n}`,
        action: 'created',
        page: n + 1,
      })),
    )
    const driver = await SyncDriver.acquire(store, { worker: 'shop', sync: 'orders' })
    await driver.set(null)
    await driver.release()
    expect((await runCycle(worker(), 'orders', { store })).counts).toMatchObject({ created: 0, unchanged: 2 })
    expect(await told(store)).toHaveLength(2)
  })

  test('R52 without column rules a record lands unchanged: no field is renamed, mapped, flattened or cast, and a manifest models nothing', async () => {
    await runCycle(worker(), 'orders', { store })
    expect((await store.row('orders', 'a'))!.text).toBe(
      '{"id":"a","Name":"Ünal","nested":{"deep":[1,{"n":9007199254740993}]},"gone":null,"price":1.5,"on":true}',
    )
    const schema = readFileSync(join(import.meta.dirname, '../../docs/reference/manifest.schema.json'), 'utf8')
    expect(schema).toContain('"safety_window"')
    expect(schema).not.toMatch(/"(?:transform|mapping|silver|gold|flatten)\w*"/i)
  })

  test('R18 the same worker behaves the same in a program, under the scheduler and from the command line: one log, one state, one version', async () => {
    await runCycle(worker(), 'orders', { store })
    const [log, checkpoint] = [await told(store), await store.readCheckpoint({ worker: 'shop', sync: 'orders' })]

    const scene = await RunnerScene.open()
    const runner = scene.runner(listDeclaredSyncs(worker()))
    await scene.trigger('orders')
    await runner.start()
    await scene.time.advance(60_000)
    await runner.stop()
    expect(await told(scene.store)).toEqual(log)
    expect(await scene.store.readCheckpoint({ worker: 'shop', sync: 'orders' })).toMatchObject({
      version: checkpoint.version,
      committed: checkpoint.committed,
    })
    await scene.store.close()

    const project = new Project()
    project.write(
      'worker.mjs',
      `
      import { Worker } from 'tidemark'
      const RECORDS = [${RECORDS.map(
        (record) =>
          `{${Object.entries(record)
            .map(([name, value]) => `${JSON.stringify(name)}: ${source(value)}`)
            .join(', ')}}`,
      ).join(', ')}]
      const made = new Worker({ name: 'shop' })
      made.sync('orders', { database: made.database('orders'), mode: 'incremental', schedule: 'manual', execute: ${execute.toString().replace(/^async function execute/, 'async function')} })
      export default made
    `,
    )
    expect(await project.json('run', '--file', 'worker.mjs')).toMatchObject({ ok: true })
    const file = await openSqliteStore({ file: join(project.folder, '.tidemark/tidemark.db') })
    expect(await told(file)).toEqual(log)
    expect((await file.readCheckpoint({ worker: 'shop', sync: 'orders' })).version).toBe(checkpoint.version)
    await file.close()
  })

  test('Z7 sealing is cheap enough to be mandatory: it costs one state and not one record, however many land', async () => {
    let drawn = 0
    const sealed = sealStore(store, new KeyRing([generateMasterKey(randomBytes)]), (bytes) => {
      drawn++
      return randomBytes(bytes)
    })
    const driver = await SyncDriver.acquire(sealed)
    await driver.cycle([upsert('a', { n: 0 })], { state: '"first"' })
    const cost = async (rows: number): Promise<number> => {
      const before = drawn
      await driver.cycle(
        Array.from({ length: rows }, (_, n) => upsert(`k${n}`, { n, rows })),
        { state: `"${rows}"` },
      )
      return drawn - before
    }
    expect([await cost(1), await cost(1_000)]).toEqual([1, 1])
    expect((await store.readCheckpoint(driver.ref)).committed).toMatch(/^sealed\./)
  })
})

function source(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) =>
    typeof member === 'bigint' ? `bigint:${member}` : member,
  ).replace(/"bigint:(\d+)"/g, '$1n')
}
