import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Change, JsonObject } from '../../src/contract/index.ts'
import { planOf, ref, EngineFixture, createScriptedSource, upsert, DATABASE, MINUTE } from './engine-fixture.ts'
import type { CycleResult } from '../../src/engine/cycle-options.ts'

let scene: EngineFixture
beforeEach(async () => {
  scene = await EngineFixture.open()
})
afterEach(() => scene.close())

async function run(mode: 'incremental' | 'replace', ...pages: Change[][]): Promise<CycleResult> {
  scene.clock.step(MINUTE)
  const { execute } = createScriptedSource(
    ...pages.map((changes, index) => ({
      changes,
      hasMore: index + 1 < pages.length,
      nextState: { n: index, at: scene.clock.now() },
    })),
  )
  return scene.run(planOf({ mode, execute }))
}
const one = (record: JsonObject): Change[] => [upsert('a', record)]
const told = async (): Promise<string[]> =>
  (await scene.store.audit(ref())).filter(({ action }) => action === 'drift').map(({ reason }) => reason)

describe('XD24 RX7 drift', () => {
  test('a new field and another kind are reported once, in the result, the log and the audit log, and the records land', async () => {
    expect((await run('incremental', one({ id: 1, size: 1, note: null }))).drift).toEqual([])
    const { drift } = await run('incremental', one({ id: 2, size: 'L', note: 'x', color: 'red' }))
    expect(drift).toEqual([
      `${DATABASE}.size is string now`,
      `new ${DATABASE}.color (string)`,
      unfit('size', 'text', 'bigint'),
    ])
    expect(await scene.rows()).toEqual({ a: { id: 2, size: 'L', note: 'x', color: 'red' } })
    expect(await told()).toEqual([drift.join('; ')])
    expect(scene.logged.filter((line) => line.includes('records differ from earlier ones'))).toHaveLength(1)
    expect((await run('incremental', one({ id: 3, size: 'M', color: 'blue' }))).drift).toEqual([])
    expect(await told()).toHaveLength(1)
  })

  test('a number that grows, or becomes a fraction, stays a number; only its column may be too small for it', async () => {
    await run('incremental', one({ n: 1, m: 1, d: 0.5 }))
    expect((await run('incremental', one({ n: 2n ** 80n, m: 0.5, d: 2 }))).drift).toEqual([
      unfit('n', 'numeric', 'bigint'),
      unfit('m', 'double', 'bigint'),
    ])
  })

  test('a removed field is reported by a listing, once; a delta cannot know', async () => {
    await run('replace', [...one({ id: 1, fax: '1' }), upsert('b', { id: 2 })])
    expect((await run('incremental', one({ id: 2 }))).drift).toEqual([])
    expect((await run('replace', one({ id: 1 }), [upsert('b', { id: 2 })])).drift).toEqual([`gone ${DATABASE}.fax`])
    expect((await run('replace', [...one({ id: 2 }), upsert('b', { id: 2 })])).drift).toEqual([])
    expect(await told()).toEqual([`gone ${DATABASE}.fax`])
  })

  test('drift is bounded: records whose fields are map keys do not fill the audit log', async () => {
    await run('incremental', one({ id: 1 }))
    const pages = Array.from({ length: 12 }, (_, page) =>
      one(Object.fromEntries(Array.from({ length: 15 }, (__, n) => [`k${page}-${n}-${'x'.repeat(100)}`, 1]))),
    )
    const { drift } = await run('incremental', ...pages)
    expect(drift).toHaveLength(50)
    const entries = await told()
    expect(entries).toHaveLength(5)
    expect(Math.max(...entries.map((entry) => entry.length))).toBeLessThan(1_200)
    expect(entries[0]).toMatch(/; and 5 more$/)
  })

  test('a page that is read again reports drift once', async () => {
    await run('incremental', one({ id: 1 }))
    const other = createScriptedSource({ changes: one({ id: 5 }), hasMore: false, nextState: 1 })
    let reads = 0
    const result = await scene.run(
      planOf({
        async execute() {
          // Another sync writes the row while the page is being read, and no times order the two.
          if (++reads === 1)
            await scene.start(planOf({ sync: 'other', execute: other.execute }), { holder: 'process-2' })
          return { changes: one({ id: 2, color: 'red' }), hasMore: false, nextState: reads }
        },
      }),
    )
    expect([reads, result.drift, (await told()).length]).toEqual([2, [`new ${DATABASE}.color (string)`], 1])
  })
})

function unfit(member: string, found: string, type: string): string {
  return `${DATABASE}.${member}: a value of type ${found} does not fit the column of type ${type}; it is kept in _extra`
}
