import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { injectFaultAt, disconnectFrom, networkFaults } from './network-faults.ts'
import type { SourceCase, SourceNeed } from './harness.ts'
import { partitionCases } from './partition-cases.ts'
import type { SourceFixture } from './source-fixture.ts'
import { corruptResponses, injectCorruptResponseAt } from './corrupt-responses.ts'
import { required } from '../../values/required.ts'

/** The contract of a source, in the order in which one would implement it. */
export const sourceCases: readonly SourceCase[] = [
  rule('an empty system lands nothing, and its first record is not missed', [], async (trial) => {
    await trial.loadInitially()
    assert.deepEqual(await trial.rows(), {})
    await trial.create(1)
    await trial.catchUp()
    await trial.assertRowsMatchSource('After the first record')
  }),
  rule('every record lands unchanged, exactly once', [], async (trial) => {
    await trial.create(trial.multiPageCount)
    await trial.loadInitially()
    await trial.assertRowsMatchSource('After the first run')
    assert.deepEqual(
      (await trial.log()).map(({ action }) => action),
      Array.from({ length: trial.multiPageCount }, () => 'created'),
    )
  }),
  rule('an unchanged system causes no writes', [], async (trial) => {
    await trial.create(7)
    await trial.loadInitially()
    await trial.catchUp()
    const { length } = await trial.log()
    for (const half of trial.syncKinds) await trial.complete(half)
    await trial.catchUp()
    assert.deepEqual(
      (await trial.log()).slice(length).map(({ key, action }) => `${key} ${action}`),
      [],
      'An unchanged record was written again.',
    )
  }),
  rule('new and changed records arrive by the delta alone', ['delta'], async (trial) => {
    const [first, ...others] = await trial.create(9)
    await trial.loadInitially()
    await trial.catchUp()
    await trial.create(3)
    await trial.change([required(first, 'first'), ...others.slice(5)])
    await trial.catchUp()
    await trial.assertRowsMatchSource('After a delta')
    await trial.change([required(first, 'first')])
    await trial.catchUp()
    await trial.assertRowsMatchSource('After the next delta')
  }),
  rule('the delta misses no record when more share one timestamp than fit on a page', ['delta'], async (trial) => {
    await trial.create(3)
    await trial.loadInitially()
    await trial.catchUp()
    const keys = await trial.create(trial.multiPageCount)
    await trial.catchUp()
    await trial.assertRowsMatchSource(`After ${trial.multiPageCount} were created at the same time`)
    await trial.change(keys)
    await trial.catchUp()
    await trial.assertRowsMatchSource(`After ${trial.multiPageCount} were changed at the same time`)
  }),
  rule('a write between two pages of a listing is not missed', ['listing'], async (trial) => {
    const keys = await trial.create(trial.multiPageCount)
    await trial.settle()
    await trial.completeInRuns(
      'listing',
      () => ({ pagesMax: 1 }),
      (run) => writeMixedChanges(trial, keys, run),
    )
    await trial.catchUp()
    await trial.assertRowsMatchSource('After a listing with concurrent writes')
  }),
  rule('a write between two pages of a delta is not missed', ['delta'], async (trial) => {
    const keys = await trial.create(trial.multiPageCount)
    await trial.loadInitially()
    await trial.catchUp()
    await trial.change(keys)
    await trial.settle()
    for (let cycle = 0; cycle < trial.cyclesPerRound; cycle++)
      await trial.completeInRuns(
        'delta',
        () => ({ pagesMax: 1 }),
        (run) => writeMixedChanges(trial, keys, run),
      )
    await trial.catchUp()
    await trial.assertRowsMatchSource('After a delta with concurrent writes')
  }),
  rule(
    'a listing and a delta that run concurrently converge, whichever of them ends last',
    ['listing', 'delta'],
    async (trial) => {
      const keys = await trial.create(trial.multiPageCount)
      await trial.loadInitially()
      await trial.catchUp()
      await trial.completeInRuns(
        'listing',
        () => ({ pagesMax: 1 }),
        async (run) => {
          await writeMixedChanges(trial, keys, run)
          await trial.settle()
          await trial.run('delta', { pagesMax: 1 })
        },
      )
      await trial.completeInRuns('delta', () => ({}))
      await trial.catchUp()
      await trial.assertRowsMatchSource('After both')
    },
  ),
  rule('deleted records are removed by the next listing, and no others', ['listing', 'deletes'], async (trial) => {
    const keys = await trial.create(trial.multiPageCount)
    await trial.loadInitially()
    await trial.remove([
      required(keys[0], 'keys[0]'),
      required(keys[trial.multiPageCount >> 1], 'keys[…]'),
      required(keys.at(-1), 'an entry of keys'),
    ])
    await trial.settle()
    await trial.complete('listing')
    await trial.assertRowsMatchSource('After a listing')
  }),
  rule('deleted records are removed by the delta, and no others', ['delta', 'reported'], async (trial) => {
    const keys = await trial.create(trial.multiPageCount)
    await trial.loadInitially()
    await trial.catchUp()
    await trial.remove([
      required(keys[0], 'keys[0]'),
      required(keys[trial.multiPageCount >> 1], 'keys[…]'),
      required(keys.at(-1), 'an entry of keys'),
    ])
    await trial.catchUp()
    await trial.assertRowsMatchSource('After a delta')
  }),
  rule('a cycle that is interrupted repeatedly continues, and writes nothing twice', ['fetch'], async (trial) => {
    const keys = await trial.create(trial.multiPageCount)
    await trial.settle()
    // Each time a little later, for sources that need many requests for one page.
    const cut = (run: number): { wrapFetch: ReturnType<typeof disconnectFrom> } => ({
      wrapFetch: disconnectFrom(1 + run),
    })
    const [first, then] = [
      required(trial.syncKinds[0], 'trial.syncKinds[0]'),
      required(trial.syncKinds.at(-1), 'an entry of trial.syncKinds'),
    ]
    await trial.completeInRuns(first, cut)
    if (then !== first) await trial.catchUp()
    await trial.assertRowsMatchSource('After an interrupted run')
    await trial.change(keys)
    await trial.settle()
    for (let cycle = 0; cycle < trial.cyclesPerRound; cycle++) await trial.completeInRuns(then, cut)
    await trial.catchUp()
    await trial.assertRowsMatchSource('After a second interrupted run')
    const counts = new Map<string, number>()
    for (const { key } of await trial.log()) counts.set(key, (counts.get(key) ?? 0) + 1)
    assert.deepEqual(
      [...counts].filter(([, count]) => count > 2),
      [],
      'Records that were created once and changed once were written more often.',
    )
  }),
  rule('a failed response is never taken for data', ['fetch'], async (trial) => {
    const keys = await trial.create(trial.multiPageCount)
    await trial.loadInitially()
    await trial.catchUp()
    const seen = new Map<string, unknown[]>()
    const note = async (): Promise<void> => {
      for (const [key, record] of Object.entries(await trial.truth())) seen.set(key, [...(seen.get(key) ?? []), record])
    }
    await note()
    for (const half of trial.syncKinds) {
      for (const fault of networkFaults) {
        for (const at of [1, 2]) {
          await trial.change(keys.slice(0, 5))
          await note()
          await trial.settle()
          const { line, hit } = injectFaultAt(fault, at)
          const { stopReason, error, resumed } = await trial.run(half, { wrapFetch: line })
          const where = `After ${fault.name} to request ${at} of a ${half}`
          const [rows, truth] = [await trial.rows(), await trial.truth()]
          for (const key of keys) {
            assert.ok(Object.hasOwn(rows, key), `${where}, ${key} was deleted; the source still has it.`)
            assert.ok(
              required(seen.get(key), 'an entry of seen').some((record) => isDeepStrictEqual(record, rows[key])),
              `${where}, ${key} has a content it never had.`,
            )
          }
          // A resumed cycle need not include what was changed since it began.
          if (hit() && stopReason === 'complete' && !resumed)
            assert.deepEqual(rows, truth, `${where}, the cycle is reported as complete, and is not.`)
          if (hit() && stopReason !== 'complete' && fault.code !== undefined)
            assert.equal(error?.code, fault.code, `${where}, the error has a different code.`)
        }
      }
      await trial.catchUp()
      await trial.assertRowsMatchSource(`After a ${half} with every fault`)
    }
  }),
  rule('a wrong response with status 200 deletes nothing and skips nothing permanently', ['fetch'], async (trial) => {
    const keys = await trial.create(trial.multiPageCount)
    await trial.loadInitially()
    await trial.catchUp()
    for (const half of trial.syncKinds) {
      for (const wrong of corruptResponses) {
        for (const at of FAULTY_REQUEST_NUMBERS) {
          // At the same time where the system supports it: more than one page holds.
          await trial.change(keys.slice(0, keys.length >> 1))
          await trial.settle()
          const { line, hit } = injectCorruptResponseAt(wrong, at)
          await trial.run(half, { wrapFetch: line, allowDeletes: false })
          const where = `After ${wrong.name} to request ${at} of a ${half}`
          const rows = await trial.rows()
          assert.deepEqual(
            keys.filter((key) => !Object.hasOwn(rows, key)),
            [],
            `${where}, these were deleted; the source still has them.`,
          )
          if (!hit()) continue
          await trial.catchUp()
          await trial.assertRowsMatchSource(where)
        }
      }
    }
  }),
  ...partitionCases,
]

/** Where in a cycle a response is wrong: at its beginning, in the middle, at its end. */
const FAULTY_REQUEST_NUMBERS = [1, 2, 3, 4, 6]

function rule(name: string, needs: readonly SourceNeed[], run: SourceCase['run']): SourceCase {
  return { name, needs, run }
}

/** Creates, changes and deletes different records each time; stops after a third of them have been changed. */
async function writeMixedChanges(trial: SourceFixture, keys: readonly string[], run: number): Promise<void> {
  const third = Math.floor(keys.length / 3)
  if (run > third) return
  await trial.create(1)
  await trial.change([required(keys[run], 'keys[run]'), required(keys.at(-1 - run), 'an entry of keys')])
  if (run % 2 === 1) await trial.removeIfDeltaReportsDeletes([required(keys[third + 1 + (run >> 1)], 'keys[…]')])
}
