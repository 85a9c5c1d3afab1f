import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { badLine, cutLine, lineFaults } from './bad-line.ts'
import type { SourceCase, SourceNeed } from './harness.ts'
import type { SourceTrial } from './trial.ts'
import { wrongAnswers, wrongLine } from './wrong-answer.ts'

/** The promise of a source, in the order in which one would build it. */
export const sourceCases: readonly SourceCase[] = [
  rule('an empty system lands nothing, and its first record is not missed', [], async (trial) => {
    await trial.first()
    assert.deepEqual(await trial.rows(), {})
    await trial.create(1)
    await trial.follow()
    await trial.assertTrue('After the first record')
  }),
  rule('everything that is there lands as it is, once', [], async (trial) => {
    await trial.create(trial.many)
    await trial.first()
    await trial.assertTrue('After the first reading')
    assert.deepEqual((await trial.log()).map(({ action }) => action), Array.from({ length: trial.many }, () => 'created'))
  }),
  rule('where nothing changed, nothing is written', [], async (trial) => {
    await trial.create(7)
    await trial.first()
    await trial.follow()
    const { length } = await trial.log()
    for (const half of trial.halves) await trial.complete(half)
    await trial.follow()
    assert.deepEqual((await trial.log()).slice(length).map(({ key, action }) => `${key} ${action}`), [], 'A record that nobody changed was written again.')
  }),
  rule('what is new and what changed comes by the delta alone', ['delta'], async (trial) => {
    const [first, ...others] = await trial.create(9)
    await trial.first()
    await trial.follow()
    await trial.create(3)
    await trial.change([first!, ...others.slice(5)])
    await trial.follow()
    await trial.assertTrue('After a delta')
    await trial.change([first!])
    await trial.follow()
    await trial.assertTrue('After the next delta')
  }),
  rule('of more records of one moment than a page holds, the delta misses none', ['delta'], async (trial) => {
    await trial.create(3)
    await trial.first()
    await trial.follow()
    const keys = await trial.create(trial.many)
    await trial.follow()
    await trial.assertTrue(`After ${trial.many} were made in one moment`)
    await trial.change(keys)
    await trial.follow()
    await trial.assertTrue(`After ${trial.many} were changed in one moment`)
  }),
  rule('what is written between two pages of a listing is not missed', ['listing'], async (trial) => {
    const keys = await trial.create(trial.many)
    await trial.settle()
    await trial.completeBy('listing', () => ({ pagesMax: 1 }), (run) => write(trial, keys, run))
    await trial.follow()
    await trial.assertTrue('After a listing of a system that did not stand still')
  }),
  rule('what is written between two pages of a delta is not missed', ['delta'], async (trial) => {
    const keys = await trial.create(trial.many)
    await trial.first()
    await trial.follow()
    await trial.change(keys)
    await trial.settle()
    for (let cycle = 0; cycle < trial.cyclesPerRound; cycle++) await trial.completeBy('delta', () => ({ pagesMax: 1 }), (run) => write(trial, keys, run))
    await trial.follow()
    await trial.assertTrue('After a delta of a system that did not stand still')
  }),
  rule('a listing and a delta at once come to the truth, whichever of them ends last', ['listing', 'delta'], async (trial) => {
    const keys = await trial.create(trial.many)
    await trial.first()
    await trial.follow()
    await trial.completeBy('listing', () => ({ pagesMax: 1 }), async (run) => {
      await write(trial, keys, run)
      await trial.settle()
      await trial.run('delta', { pagesMax: 1 })
    })
    await trial.completeBy('delta', () => ({}))
    await trial.follow()
    await trial.assertTrue('After both')
  }),
  rule('what is gone goes with the next listing, and nothing else', ['listing', 'deletes'], async (trial) => {
    const keys = await trial.create(trial.many)
    await trial.first()
    await trial.remove([keys[0]!, keys[trial.many >> 1]!, keys.at(-1)!])
    await trial.settle()
    await trial.complete('listing')
    await trial.assertTrue('After a listing')
  }),
  rule('what is gone goes with the delta, and nothing else', ['delta', 'told'], async (trial) => {
    const keys = await trial.create(trial.many)
    await trial.first()
    await trial.follow()
    await trial.remove([keys[0]!, keys[trial.many >> 1]!, keys.at(-1)!])
    await trial.follow()
    await trial.assertTrue('After a delta')
  }),
  rule('a cycle that is cut short again and again goes on, and writes nothing twice', ['fetch'], async (trial) => {
    const keys = await trial.create(trial.many)
    await trial.settle()
    // Each time a little later, for sources that need many requests for one page.
    const cut = (run: number): { line: ReturnType<typeof cutLine> } => ({ line: cutLine(1 + run) })
    const [first, then] = [trial.halves[0]!, trial.halves.at(-1)!]
    await trial.completeBy(first, cut)
    if (then !== first) await trial.follow()
    await trial.assertTrue('After a reading that was cut short')
    await trial.change(keys)
    await trial.settle()
    for (let cycle = 0; cycle < trial.cyclesPerRound; cycle++) await trial.completeBy(then, cut)
    await trial.follow()
    await trial.assertTrue('After a second reading that was cut short')
    const counts = new Map<string, number>()
    for (const { key } of await trial.log()) counts.set(key, (counts.get(key) ?? 0) + 1)
    assert.deepEqual([...counts].filter(([, count]) => count > 2), [], 'Records that were made once and changed once were written more often.')
  }),
  rule('no answer that went wrong is taken for the truth', ['fetch'], async (trial) => {
    const keys = await trial.create(trial.many)
    await trial.first()
    await trial.follow()
    const seen = new Map<string, unknown[]>()
    const note = async (): Promise<void> => {
      for (const [key, record] of Object.entries(await trial.truth())) seen.set(key, [...(seen.get(key) ?? []), record])
    }
    await note()
    for (const half of trial.halves) {
      for (const fault of lineFaults) {
        for (const at of [1, 2]) {
          await trial.change(keys.slice(0, 5))
          await note()
          await trial.settle()
          const { line, hit } = badLine(fault, at)
          const { stopReason, error } = await trial.run(half, { line })
          const where = `After ${fault.name} to request ${at} of a ${half}`
          const [rows, truth] = [await trial.rows(), await trial.truth()]
          for (const key of keys) {
            assert.ok(Object.hasOwn(rows, key), `${where}, ${key} was deleted; it lives.`)
            assert.ok(seen.get(key)!.some((record) => isDeepStrictEqual(record, rows[key])), `${where}, ${key} is what it never was.`)
          }
          if (hit() && stopReason === 'complete') assert.deepEqual(rows, truth, `${where}, the cycle calls itself complete, and is not.`)
          if (hit() && stopReason !== 'complete' && fault.code !== undefined) assert.equal(error?.code, fault.code, `${where}, the error has another code.`)
        }
      }
      await trial.follow()
      await trial.assertTrue(`After a ${half} with every fault`)
    }
  }),
  rule('a wrong answer with status 200 deletes nothing and skips nothing for good', ['fetch'], async (trial) => {
    const keys = await trial.create(trial.many)
    await trial.first()
    await trial.follow()
    for (const half of trial.halves) {
      for (const wrong of wrongAnswers) {
        for (const at of REQUESTS) {
          // In one moment where the system can: more than one page holds.
          await trial.change(keys.slice(0, keys.length >> 1))
          await trial.settle()
          const { line, hit } = wrongLine(wrong, at)
          await trial.run(half, { line, allowDeletes: false })
          const where = `After ${wrong.name} to request ${at} of a ${half}`
          const rows = await trial.rows()
          assert.deepEqual(keys.filter((key) => !Object.hasOwn(rows, key)), [], `${where}, these were deleted; they live.`)
          if (!hit()) continue
          await trial.follow()
          await trial.assertTrue(where)
        }
      }
    }
  }),
]

/** Where in a cycle an answer is wrong: at its beginning, in the middle, at its end. */
const REQUESTS = [1, 2, 3, 4, 6]

function rule(name: string, needs: readonly SourceNeed[], run: SourceCase['run']): SourceCase {
  return { name, needs, run }
}

/** A little of everything, each time to other records; after a third of them have been changed, nothing more. */
async function write(trial: SourceTrial, keys: readonly string[], run: number): Promise<void> {
  const third = Math.floor(keys.length / 3)
  if (run > third) return
  await trial.create(1)
  await trial.change([keys[run]!, keys.at(-1 - run)!])
  if (run % 2 === 1) await trial.removeIfTold([keys[third + 1 + (run >> 1)]!])
}
