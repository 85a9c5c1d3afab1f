import { expect, test } from 'vitest'
import { EngineFixture } from '../engine/engine-fixture.ts'
import { partitioned } from '../../src/strategies/partitioned.ts'
import { runToEnd } from './run-strategy.ts'

test('the partitions are listed, and each is read to its end with a state of its own', async () => {
  const scene = await EngineFixture.open()
  const pages: Record<string, string[][]> = { a: [['a1'], ['a2']], b: [['b1']], c: [[]] }
  const asked: string[] = []
  const execute = partitioned<number, { page: number }>({
    list: async () => ({ partitions: Object.keys(pages).map((key, value) => ({ key, value })) }),
    read: async ({ key }, state) => {
      const page = state?.page ?? 0
      asked.push(`${key}${page}`)
      const keys = pages[key]?.[page] ?? []
      return {
        changes: keys.map((key) => ({ type: 'upsert', key, record: { key } })),
        hasMore: page + 1 < (pages[key]?.length ?? 0),
        nextState: { page: page + 1 },
      }
    },
    concurrency: 2,
  })
  await runToEnd(scene, execute)
  expect(asked).toEqual(['a0', 'b0', 'a1', 'c0'])
  expect(Object.keys(await scene.rows())).toEqual(['a1', 'a2', 'b1'])
})
