import assert from 'node:assert/strict'
import type { JsonObject } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import { OPERATOR } from '../store-cases/harness.ts'
import type { DestinationBench, DestinationCase } from './harness.ts'

/** The contract of child tables. */
export const childCases: readonly DestinationCase[] = [
  {
    name: 'children: the objects in a field are rows of their own, and follow every change of their row',
    needs: 'children',
    async run(bench) {
      await bench.commit(...LINES.map((lines, n) => [`k${n}`, { n, lines }] as const), ['none', { n: 1 }])
      await runWith(bench, ['lines'])
      // Fewer, more, other and no children, with new fields; a row that is deleted and created again.
      await bench.commit(
        ...LINES.map((_, n) => [`k${n}`, { n, lines: LINES[(n + 3) % LINES.length] ?? null }] as const),
      )
      await bench.commit(['k1', null], ['k2', null], ['none', { n: 1, lines: [{ a: 1, later: '2026-01-31' }] }])
      await bench.commit(['k2', { lines: [{ b: 1 }] }], ['new', { lines: [{ a: 'text' }, { a: null }, {}] }])
      await runWith(bench, ['lines'])
      await bench.commit(['k2', null], ['new', { lines: [{ a: 1 }] }], ['none', { n: 1 }])
      await runWith(bench, ['lines'])
    },
  },
  {
    name: 'children: a crash between any two statements leaves no child without its row, and none missing',
    needs: 'children',
    async run(bench) {
      const { interrupt } = bench.harness
      if (interrupt === undefined) return
      for (let statement = 0; ; statement++) {
        await bench.commit(
          ['a', { lines: [{ n: statement }, { [`f${statement % 4}`]: 1 }] }],
          ['b', statement % 2 === 0 ? { lines: [{ n: 1 }] } : null],
        )
        // A load with these children is interrupted as well.
        if (statement % 3 === 2)
          await bench.store.signalDestination('copy', { kind: 'resync', databases: ['things'] }, OPERATOR)
        const end = interrupt({ statement })
        const { report } = await bench.run({ children: ['lines'] })
        const isInterrupted = end()
        assert.equal(report?.error ?? null, null)
        await expectChildren(bench, ['lines'])
        if (!isInterrupted && statement % 3 === 2) break
        assert.ok(statement < 500, 'the batch ends')
      }
    },
  },
  {
    name: 'children: other child tables need a load, which replaces all of them; remove drops them',
    needs: 'children',
    async run(bench) {
      await bench.commit(['a', { lines: [{ n: 1 }], taxes: [{ t: 1 }, { t: 2 }] }])
      await runWith(bench, ['lines'])
      await bench.commit(['b', { lines: [{ n: 2 }], taxes: [{ t: 3 }] }])
      const refused = await bench.run({ children: ['taxes'] })
      assert.equal(refused.report?.error?.code, 'DESTINATION_INVALID')
      await expectChildren(bench, ['lines'], ['b'])
      await bench.store.signalDestination('copy', { kind: 'resync', databases: ['things'] }, OPERATOR)
      await runWith(bench, ['taxes'])
      assert.deepEqual(await childrenOf(bench, 'lines'), [])
      const session = await bench.harness.destination.open({
        tenant: bench.store.tenant,
        signal: new AbortController().signal,
      })
      await session.remove('things')
      await session.close()
      assert.deepEqual(await childrenOf(bench, 'taxes'), [])
    },
  },
]

const LINES: ReadonlyArray<JsonObject[string]> = [
  [{ a: 1, b: 'x' }, { a: 2 }],
  [{ a: 12345678901234567890123n, nested: { c: [1] } }],
  [],
  null,
  [{ a: 1 }, 2],
  'text',
  [{}],
  [[{ a: 1 }]],
  [{ a: '2026-01-31T12:00:00Z' }, { a: 3 }, { b: null, _index: 7, _parent_key: 'x' }],
]

async function runWith(bench: DestinationBench, children: readonly string[]): Promise<void> {
  const { report } = await bench.run({ children })
  assert.equal(report?.error ?? null, null)
  await expectChildren(bench, children)
}

/** The rows with their children are equal to the store, and the children are in their own tables. */
async function expectChildren(
  bench: DestinationBench,
  members: readonly string[],
  notYet: readonly string[] = [],
): Promise<void> {
  const current = new Map(
    (await bench.current()).filter(({ key }) => !notYet.includes(key)).map((row) => [row.key, row]),
  )
  const rows = new Map((await bench.harness.rows('things')).map((row) => [row.key, { ...row.record }]))
  for (const member of members) {
    let expected = 0
    for (const { record } of current.values()) expected += countObjects(record?.[member] ?? null)
    const children = await childrenOf(bench, member)
    assert.equal(children.length, expected, `rows of ${member}`)
    for (const { parentKey, index, record } of children) {
      const parent = required(rows.get(parentKey), `the row ${parentKey} of a child`)
      const list = (parent[member] ??= []) as JsonObject[]
      assert.equal(list.push(record), index + 1)
    }
  }
  assert.deepEqual(Object.fromEntries(rows), Object.fromEntries([...current].map(([key, { record }]) => [key, record])))
}

function countObjects(value: JsonObject[string]): number {
  const isList =
    Array.isArray(value) && value.every((one) => typeof one === 'object' && one !== null && !Array.isArray(one))
  return isList ? value.length : 0
}

async function childrenOf({ harness }: DestinationBench, member: string) {
  return required(harness.children, 'children')('things', member)
}
