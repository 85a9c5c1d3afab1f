import assert from 'node:assert/strict'
import { required } from '../../values/required.ts'
import type { SourceCase, SourceNeed } from './harness.ts'
import { disconnectFrom } from './network-faults.ts'
import type { SourceFixture, SyncKind } from './source-fixture.ts'

/** The contract of a source that is read in partitions. */
export const partitionCases: readonly SourceCase[] = [
  rule('a crash in the middle loses at most a page of one partition', ['partitions', 'fetch'], async (trial) => {
    const keys = await trial.create(trial.multiPageCount)
    await trial.loadInitially()
    await trial.catchUp()
    for (const half of trial.syncKinds) {
      const changeAll = async (): Promise<void> => {
        await trial.change(keys)
        await trial.settle()
      }
      await changeAll()
      const perPage = await countLargestPage(trial, half)
      await changeAll()
      const all = await trial.countRequests(() => trial.complete(half))
      assert.ok(perPage <= all / 2, `A ${half} takes ${all} requests, and a page ${perPage}: a crash loses the page.`)
      for (const share of [0.3, 0.6, 0.9]) {
        await changeAll()
        const from = Math.max(1, Math.floor(all * share))
        const sent = await trial.countRequests(async () => {
          const { stopReason } = await trial.run(half, { wrapFetch: disconnectFrom(from) })
          assert.equal(stopReason, 'error', `The ${half} did not fail at request ${from} of ${all}.`)
          await trial.completeInRuns(half, () => ({}))
        })
        // Windows of time may have become more.
        const whole = Math.max(all, await trial.countRequests(() => trial.complete(half)))
        // The requests of the page that failed, and of the page that they were sent again for.
        assert.ok(
          sent <= whole + 2 * perPage,
          `A ${half} takes ${whole} requests, at most ${perPage} for a page; interrupted at request ${from}, it took ${sent}: it read more than a page again.`,
        )
      }
    }
    await trial.catchUp()
    await trial.assertRowsMatchSource('After the interrupted cycles')
  }),
  rule('rows are deleted only after every partition was read', ['partitions', 'listing', 'deletes'], async (trial) => {
    const keys = await trial.create(trial.multiPageCount)
    await trial.loadInitially()
    const removed = keys.filter((_, at) => at % 6 === 0)
    await trial.remove(removed)
    await trial.settle()
    let runs = 0
    await trial.completeInRuns(
      'listing',
      () => ({ pagesMax: 1 }),
      async (run) => {
        runs = run
        const rows = await trial.rows()
        assert.deepEqual(
          removed.filter((key) => !Object.hasOwn(rows, key)),
          [],
          `After page ${run} of a listing, these were deleted before the other partitions were read.`,
        )
      },
    )
    assert.ok(runs > 0, 'The listing took a single page; raise `multiPageCount`.')
    await trial.assertRowsMatchSource('After the listing')
  }),
  rule('the tidemark is true after every page', ['partitions', 'tidemark'], async (trial) => {
    const half = required(trial.syncKinds.at(-1), 'kind of sync')
    const keys = await trial.create(trial.multiPageCount)
    await trial.loadInitially()
    await trial.catchUp()
    for (let round = 0; round < 2; round++) {
      await trial.change(keys.filter((_, at) => at % 2 === round))
      await trial.settle()
      await trial.completeInRuns(
        half,
        () => ({ pagesMax: 1 }),
        async (run) => {
          await trial.assertTidemark(half, `After page ${run}`)
          if (run <= 5) await trial.create(2)
        },
      )
      await trial.assertTidemark(half, 'After the cycle')
    }
  }),
  rule('a partition that is added in mid-cycle is read by the next cycle', ['addedPartitions'], async (trial) => {
    await trial.create(trial.multiPageCount)
    await trial.loadInitially()
    await trial.catchUp()
    for (const half of trial.syncKinds) {
      await trial.create(trial.multiPageCount)
      await trial.settle()
      await trial.completeInRuns(
        half,
        () => ({ pagesMax: 1 }),
        async (run) => {
          if (run > 3) return
          await trial.addPartition()
          await trial.create(trial.multiPageCount)
        },
      )
      await trial.catchUp()
      await trial.assertRowsMatchSource(`After a ${half} with new partitions, and the next cycle`)
    }
  }),
  rule(
    'a partition that vanishes takes its records along, and no others',
    ['listing', 'removedPartitions'],
    async (trial) => {
      await trial.create(trial.multiPageCount)
      await trial.loadInitially()
      await trial.removePartition()
      await trial.settle()
      await trial.complete('listing')
      await trial.assertRowsMatchSource('After a partition vanished')
      await trial.create(trial.multiPageCount)
      await trial.settle()
      await trial.completeInRuns(
        'listing',
        () => ({ pagesMax: 1 }),
        async (run) => {
          if (run === 1) await trial.removePartition()
        },
      )
      await trial.settle()
      await trial.complete('listing')
      await trial.assertRowsMatchSource('After a partition vanished in mid-cycle, and the next listing')
    },
  ),
]

async function countLargestPage(trial: SourceFixture, half: SyncKind): Promise<number> {
  let largest = 0
  for (;;) {
    const before = trial.requestCount
    const { stopReason } = await trial.run(half, { pagesMax: 1 })
    largest = Math.max(largest, trial.requestCount - before)
    if (stopReason === 'complete') return largest
  }
}

function rule(name: string, needs: readonly SourceNeed[], run: SourceCase['run']): SourceCase {
  return { name, needs, run }
}
