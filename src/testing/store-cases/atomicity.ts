import assert from 'node:assert/strict'
import type { StateTransition } from '../../contract/index.ts'
import {
  counts,
  readLiveRows,
  makeQuarantined,
  remove,
  readSnapshot,
  type StoreCase,
  type StoreHarness,
  SyncDriver,
  upsert,
  rule,
} from './harness.ts'
import { required } from '../../values/required.ts'

export const atomicityCases: readonly StoreCase[] = [
  rule('a commit that fails half-way leaves nothing, and the store continues to work', async ({ store, reopen }) => {
    const driver = await SyncDriver.acquire(store, { mode: 'replace' })
    await driver.cycle([upsert('a', { n: 1 }), upsert('b', { n: 1 })])
    await driver.begin()
    // A duplicate key, which is not allowed: the error occurs when the rows are written.
    const impossible = upsert('c', { n: 2 })
    const before = await readSnapshot(store)
    for (const move of [driver.nextPage(), driver.lastPage()]) {
      const commit = await driver.draft(
        move,
        [upsert('a', { n: 2 }), remove('b'), upsert('c', { n: 1, extra: true }), impossible],
        {
          quarantined: [makeQuarantined('q')],
        },
      )
      await assert.rejects(store.commit(commit))
      assert.deepEqual(await readSnapshot(store), before)
      assert.deepEqual(await readSnapshot(await reopen()), before)
    }
    assert.deepEqual((await driver.complete([upsert('a', { n: 2 })])).counts, counts({ updated: 1, swept: 1 }))
  }),
  ...(['continue', 'complete', 'abandon', 'set', 'replay', 'repair', 'columns'] as const).map((kind): StoreCase => ({
    name: `XA3 a crash before any statement of a commit (${kind}) leaves rows, log, registry and cycle exactly as they were`,
    needs: 'crashDuringCommit',
    async run(harness) {
      const { store } = harness
      const stranger = await SyncDriver.acquire(store, { sync: 'stranger', mode: 'replace' })
      await stranger.cycle([upsert('shared', { n: 1 })])
      const driver = await SyncDriver.acquire(store, { mode: 'replace' })
      await driver.cycle(
        ['a', 'b', 'c', 'd', 'e'].map((key) => upsert(key, { n: 1 }, { at: 1 })),
        { quarantined: [makeQuarantined('a'), makeQuarantined('f')] },
      )
      await driver.begin()
      await driver.page([upsert('e', { n: 1 }, { at: 1 })], {
        partitions: [
          { key: 'one', state: '1' },
          { key: 'two', state: '1' },
        ],
      })

      const commit = await driver.draft(
        transitionOf(driver, kind),
        kind === 'set'
          ? []
          : [
              upsert('a', { n: 2 }, { at: 2 }), // updated, and removed from quarantine
              upsert('b', { n: 1 }, { at: 2 }), // touched
              remove('c', { at: 2 }), // deleted
              remove('never', { at: 2 }), // a tombstone
              upsert('shared', { n: 1 }), // listed by a second owner
              ...Array.from({ length: 25 }, (_, n) => upsert(`new${n}`, { n, drifted: true })),
            ],
        {
          quarantined: kind === 'set' ? [] : [makeQuarantined('g')],
          partitions: [
            { key: 'one', state: '2' },
            { key: 'two', state: null },
            { key: 'three', state: '2' },
          ],
        },
      )
      await crashEverywhere(harness, commit)
      assert.equal(
        (await readLiveRows(store)).some(([key]) => key === 'd'),
        kind !== 'complete',
      )
    },
  })),
]

async function crashEverywhere(
  { store, reopen, supports }: StoreHarness,
  commit: Parameters<StoreHarness['store']['commit']>[0],
): Promise<void> {
  const before = await readSnapshot(store)
  for (let statement = 0; ; statement++) {
    const outcome = await required(supports, 'supports').crashDuringCommit!(commit, statement)
    if (outcome !== 'crashed') {
      assert.equal(outcome.kind, 'landed')
      assert.ok(
        statement >= 3,
        `a commit of ${statement} statements cannot update rows, log and checkpoint in a transaction`,
      )
      assert.notDeepEqual(await readSnapshot(await reopen()), before)
      return
    }
    assert.deepEqual(await readSnapshot(store), before, `crashed before statement ${statement}`)
    assert.ok(statement < 10_000, 'the commit never ends')
  }
}

function transitionOf(driver: SyncDriver, kind: StateTransition['kind']): StateTransition {
  const { cycle, page } = required(driver.inflight, 'driver.inflight')
  switch (kind) {
    case 'continue':
      return driver.nextPage()
    case 'complete':
      return driver.lastPage({ state: '"done"' })
    case 'abandon':
      return { kind, cycle, page: page + 1, reason: 'given up' }
    case 'set':
      return { kind, state: '"by hand"', actor: 'ana', reason: 'because' }
    case 'replay':
      return { kind, actor: 'ana', reason: 'because', superseded: [] }
    case 'repair':
      return { kind, actor: 'ana', reason: 'because', verification: 1 }
    case 'columns':
      return { kind, actor: 'ana', reason: 'because' }
  }
}
