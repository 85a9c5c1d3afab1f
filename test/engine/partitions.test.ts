import { expect, test } from 'vitest'
import type { Page, SyncContext } from '../../src/contract/index.ts'
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
