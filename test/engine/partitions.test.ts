import { expect, test } from 'vitest'
import type { Page, SyncContext } from '../../src/contract/index.ts'
import { partitioned } from '../../src/strategies/partitioned.ts'
import { createScriptedSource, EngineFixture, planOf, ref, upsert } from './engine-fixture.ts'

async function read({ partitions }: SyncContext): Promise<unknown> {
  const states = await partitions.get(['a', 'b', 'c'])
  return { states: Object.fromEntries(states), listed: await partitions.list({ limit: 2 }) }
}

test('a page that is read ahead sees the partitions of the page that is being committed', async () => {
  const scene = await EngineFixture.open()
  const seen: unknown[] = []
  let isRead!: () => void
  const readAhead = new Promise<void>((resolve) => (isRead = resolve))
  const { execute } = createScriptedSource(
    async (_, context): Promise<Page> => {
      seen.push(await read(context))
      const partitions = [
        { key: 'a', state: 1 },
        { key: 'b', state: 1 },
      ]
      return { changes: [upsert('x')], hasMore: true, nextState: 1, partitions }
    },
    async (_, context) => {
      seen.push(await read(context))
      isRead()
      const partitions = [
        { key: 'a', state: null },
        { key: 'c', state: 2 },
      ]
      return { changes: [upsert('y')], hasMore: true, nextState: 2, partitions }
    },
    async (_, context) => {
      seen.push(await read(context))
      return { changes: [], hasMore: false }
    },
  )
  const slow = {
    ...scene.store,
    commit: async (commit: Parameters<typeof scene.store.commit>[0]) => {
      // The first page lands only after the second one has been read.
      await readAhead
      return scene.store.commit(commit)
    },
  }
  expect(await scene.run(planOf({ execute }), { store: slow })).toMatchObject({ stopReason: 'complete' })
  expect(seen).toEqual([
    { states: {}, listed: [] },
    {
      states: { a: 1, b: 1 },
      listed: [
        { key: 'a', state: 1 },
        { key: 'b', state: 1 },
      ],
    },
    {
      states: { b: 1, c: 2 },
      listed: [
        { key: 'b', state: 1 },
        { key: 'c', state: 2 },
      ],
    },
  ])
})

test('partitions that cannot be stored fail the page, and nothing of it is written', async () => {
  const scene = await EngineFixture.open()
  const cases: ReadonlyArray<readonly [unknown, string, RegExp]> = [
    ['a', 'PAGE_INVALID', /`partitions` is a string/],
    [[{ key: '', state: 1 }], 'PAGE_INVALID', /partitions\[0\].*empty/],
    [[{ key: 'x'.repeat(1_025), state: 1 }], 'PAGE_INVALID', /1024/],
    [
      [
        { key: 'a', state: 1 },
        { key: 'a', state: 2 },
      ],
      'PAGE_INVALID',
      /twice/,
    ],
    [[{ key: 'a' }], 'STATE_INVALID', /partitions\[0\] is undefined/],
    [[{ key: 'a', state: { at: new Date() } }], 'STATE_INVALID', /partitions\[0\]\.at is Date/],
    [[{ key: 'a', state: 'x'.repeat(70_000) }], 'STATE_TOO_LARGE', /partitions\[0\] has 70002 bytes/],
  ]
  for (const [partitions, code, message] of cases) {
    const { execute } = createScriptedSource({ changes: [upsert('x')], hasMore: false, partitions } as Page)
    expect(await scene.run(planOf({ execute }))).toMatchObject({
      stopReason: 'error',
      error: { code, message: expect.stringMatching(message) as string },
    })
  }
  expect(await scene.keys()).toEqual([])
  expect(await scene.store.countPartitions(ref())).toBe(0)
})

test('a row that moves to a partition that was read already is deleted, and the next cycle restores it', async () => {
  const scene = await EngineFixture.open()
  const parents: Record<string, string[]> = { a: ['1'], b: ['2', '3'] }
  let move = (): void => {}
  const execute = partitioned<null>({
    list: async () => ({ partitions: Object.keys(parents).map((key) => ({ key, value: null })), total: 2 }),
    read: async ({ key }) => {
      const changes = (parents[key] ?? []).map((id) => upsert(id))
      if (key === 'a') move()
      return { changes, hasMore: false }
    },
  })
  const plan = planOf({ execute, mode: 'replace' })
  await scene.run(plan)
  move = () => {
    parents['b'] = ['2']
    parents['a'] = ['1', '3']
  }
  expect((await scene.run(plan)).counts).toMatchObject({ swept: 1 })
  expect(await scene.keys()).toEqual(['1', '2'])
  expect((await scene.run(plan)).counts).toMatchObject({ created: 1, swept: 0 })
  expect(await scene.keys()).toEqual(['1', '2', '3'])
})
