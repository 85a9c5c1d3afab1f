import assert from 'node:assert/strict'
import {
  SyncError,
  type Destination,
  type DestinationMode,
  type DestinationToken,
  type JsonObject,
} from '../../contract/index.ts'
import { openSqliteStore } from '../../stores/sqlite/store.ts'
import { parseJson } from '../../values/json.ts'
import { required } from '../../values/required.ts'
import { OPERATOR, seededRandom } from '../store-cases/harness.ts'
import { childCases } from './child-cases.ts'
import { DestinationBench, type DestinationCase, type StoredRow } from './harness.ts'

/** The contract of a destination, in the order in which one would implement it. */
export const destinationCases: readonly DestinationCase[] = [
  {
    name: 'a new destination is loaded from the tables, and then follows every change',
    async run(bench) {
      await bench.commit(...range(12).map((n) => [`k${n}`, { n }] as const))
      await runOk(bench)
      await expectMirror(bench)
      await bench.commit(['k1', { n: 100 }], ['k2', null], ['new', { n: 5 }])
      await bench.commit(['k1', { n: 101 }], ['k3', null], ['k2', { n: 7 }])
      await runOk(bench)
      await expectMirror(bench)
    },
  },
  {
    name: 'an empty database and an empty batch are applied, and a run without changes changes nothing',
    async run(bench) {
      await bench.commit(['a', { n: 1 }])
      await bench.commit(['a', null])
      await runOk(bench)
      await expectMirror(bench)
      await bench.commit(['b', { n: 1 }])
      await runOk(bench)
      const { changes } = await runOk(bench)
      assert.equal(changes, 0)
      await expectMirror(bench)
      await applyEmptyBatch(bench)
      await bench.commit(['b', { n: 2 }])
      await runOk(bench)
      await expectMirror(bench)
    },
  },
  {
    name: 'every value is kept exactly: other types than the column, null and absent, nested, large numbers, any text',
    async run(bench) {
      await bench.commit(...VALUES.map((value, n) => [`v${n}`, { value, n }] as const), ['none', { n: 1 }])
      await runOk(bench)
      await expectMirror(bench)
      await bench.commit(...VALUES.map((value, n) => [`v${VALUES.length - n}`, { value, 'a "b" ü': value }] as const))
      await runOk(bench)
      await expectMirror(bench)
    },
  },
  {
    name: 'new fields in mid-stream become part of the rows, and old rows stay as they are',
    async run(bench) {
      await bench.commit(['a', { n: 1 }], ['b', { n: 2 }])
      await runOk(bench)
      await bench.commit(['a', { n: 1, later: 'x' }], ['c', { n: 3, at: '2026-01-31T12:00:00.123Z' }])
      await bench.commit(['d', { n: 3, other: [1, 2] }], ['b', { n: null }], ['e', { N: 1, n: 2 }])
      await runOk(bench)
      await expectMirror(bench)
    },
  },
  {
    name: '1,000 columns',
    async run(bench) {
      const wide = (from: number): JsonObject => Object.fromEntries(range(1_000).map((n) => [`column_${n}`, from + n]))
      await bench.commit(['a', wide(0)], ['b', wide(1)])
      await runOk(bench)
      await bench.commit(['a', { ...wide(5), more: 1 }], ['b', null])
      await runOk(bench)
      await expectMirror(bench)
    },
  },
  {
    name: 'append: every change is one row, in order',
    needs: 'append',
    async run(bench) {
      await churn(bench, 3, async () => void (await runOk(bench, 'append')))
      await expectAppend(bench)
    },
  },
  {
    name: 'history: every version is one row, and only the last of a live key is current',
    needs: 'history',
    async run(bench) {
      await churn(bench, 4, async () => void (await runOk(bench, 'history')))
      await expectHistory(bench)
    },
  },
  {
    name: 'a crash between any two statements of a load loses nothing and adds nothing twice',
    needs: 'interrupt',
    async run(bench) {
      await bench.commit(...range(11).map((n) => [`k${n}`, { n }] as const))
      for (let statement = 0; ; statement++) {
        const end = required(bench.harness.interrupt, 'interrupt')({ statement })
        await runOk(bench)
        const isInterrupted = end()
        await expectMirror(bench)
        if (!isInterrupted) break
        assert.ok(statement < 500, 'the load ends')
        await removeRows(bench)
      }
    },
  },
  {
    name: 'a load that another process began continues behind its last committed rows',
    async run(bench) {
      await bench.commit(...range(23).map((n) => [`k${n}`, { n }] as const))
      const first: string[] = []
      const { report } = await bench.run({ destination: recordLoad(bench, first, 10) })
      assert.equal(report?.error?.code, 'DESTINATION_REFUSED')
      const rest: string[] = []
      const second = await bench.run({ destination: recordLoad(bench, rest), holder: 'two' })
      assert.equal(second.report?.error, null)
      assert.equal(first.length, 10, 'the first process loaded two batches')
      assert.deepEqual(
        [...first, ...rest].toSorted(),
        (await bench.current()).map(({ key }) => key).toSorted(),
        'every row is loaded once',
      )
      await expectMirror(bench)
    },
  },
  {
    name: 'a crash between any two statements of a batch applies it once',
    needs: 'interrupt',
    async run(bench) {
      const mode = modeOf(bench)
      for (let statement = 0; ; statement++) {
        await bench.commit(['a', { n: statement }], ['b', statement % 2 === 0 ? { n: statement } : null])
        if (statement === 0) await runOk(bench, mode)
        await bench.commit(['a', { n: statement, [`f${statement}`]: 1 }], [`k${statement}`, { n: 1 }])
        const end = required(bench.harness.interrupt, 'interrupt')({ statement })
        await runOk(bench, mode)
        const isInterrupted = end()
        await (mode === 'append' ? expectAppend(bench) : expectMirror(bench))
        if (!isInterrupted) break
        assert.ok(statement < 500, 'the batch ends')
      }
    },
  },
  {
    name: 'a lost answer to the commit is resolved by reading the token: no change is applied twice',
    needs: 'interrupt',
    async run(bench) {
      const mode = modeOf(bench)
      for (let round = 0; round < 4; round++) {
        await bench.commit(['a', { n: round }], [`k${round}`, { n: 1 }])
        const end = required(bench.harness.interrupt, 'interrupt')('commit')
        await runOk(bench, mode)
        assert.equal(end(), true, 'the fault happened')
        await (mode === 'append' ? expectAppend(bench) : expectMirror(bench))
      }
    },
  },
  {
    name: 'two appliers: a token that is not the next one, or has an older epoch, is refused and changes nothing',
    async run(bench) {
      await bench.commit(['a', { n: 1 }])
      await runOk(bench)
      const { destination } = bench.harness
      const context = { tenant: bench.store.tenant, signal: new AbortController().signal }
      const [one, two] = [await destination.open(context), await destination.open(context)]
      try {
        const live = required((await one.position('things')).live, 'the token of the rows')
        const step = (from: DestinationToken, sequence: number, epoch: number) => ({
          previous: from,
          next: { ...from, sequence, epoch },
        })
        const batchOf = (sequence: number) => createBatch('mirror', [['b', { n: sequence }, sequence]])
        assert.equal(await one.apply(batchOf(10), step(live, 10, live.epoch + 1)), 'applied')
        const after = await bench.harness.rows('things')
        // The other applier has not seen it: the same batch, and the next one after an old token.
        assert.equal(await two.apply(batchOf(10), step(live, 10, live.epoch + 1)), 'refused')
        assert.equal(await two.apply(batchOf(11), step(live, 11, live.epoch + 2)), 'refused')
        const next = required((await two.position('things')).live, 'the token of the rows')
        assert.deepEqual([next.sequence, next.epoch], [10, live.epoch + 1])
        // An older epoch at the right sequence.
        assert.equal(await two.apply(batchOf(11), step(next, 11, live.epoch)), 'refused')
        assert.equal(await two.apply(batchOf(11), step({ ...next, storeId: 'x' }, 11, next.epoch)), 'refused')
        assert.deepEqual(await bench.harness.rows('things'), after)
        assert.equal(await two.apply(batchOf(11), step(next, 11, next.epoch)), 'applied')
      } finally {
        await one.close()
        await two.close()
      }
    },
  },
  {
    name: 'a destination behind the kept history is loaded again from the tables, and says so',
    async run(bench) {
      await bench.commit(['a', { n: 1 }], ['b', { n: 1 }], ['c', { n: 1 }])
      await runOk(bench)
      await bench.commit(['a', null], ['b', { n: 2 }])
      await bench.commit(['b', { n: 3 }], ['d', { n: 3 }])
      while ((await bench.store.compact({ before: Number.MAX_SAFE_INTEGER, scanMax: 1_000 })).hasMore);
      const { report } = await runOk(bench)
      assert.equal(report?.databases[0]?.loadReason, 'behind')
      await expectMirror(bench)
    },
  },
  {
    name: 'a destination that was restored from an old backup is replayed from its token',
    needs: 'backUp',
    async run(bench) {
      await bench.commit(...range(7).map((n) => [`k${n}`, { n }] as const))
      await runOk(bench)
      const restore = await required(bench.harness.backUp, 'backUp')()
      await bench.commit(['k1', { n: 9, more: 1 }], ['k2', null], ['new', { n: 1 }])
      await runOk(bench)
      await expectMirror(bench)
      await restore()
      await runOk(bench)
      await expectMirror(bench)
      assert.ok(
        bench.log.some((line) => line.includes('earlier state')),
        'the restore is reported',
      )
    },
  },
  {
    name: 'a requested load during a load starts over, and no live row is missing before it is complete',
    async run(bench) {
      await bench.commit(...range(9).map((n) => [`k${n}`, { n }] as const))
      await runOk(bench)
      const before = await bench.harness.rows('things')
      await bench.commit(['k1', null], ['k2', { n: 22 }])
      await beginLoad(bench)
      const during = sorted(await bench.harness.rows('things'))
      // Without a swap, the load is written over the live rows.
      const { swap } = bench.harness.destination.supports
      const kept = swap ? during : during.filter(({ key }) => key !== 'wrong')
      assert.deepEqual(kept, sorted(before), 'the live rows stay during a load')
      await bench.store.signalDestination('copy', { kind: 'resync', databases: ['things'] }, OPERATOR)
      await bench.commit(['k3', null], ['k4', { n: 44, x: 1 }])
      const { report } = await runOk(bench)
      assert.equal(report?.databases[0]?.loadReason, 'requested')
      await expectMirror(bench)
      assert.deepEqual((await bench.store.destinations())[0]?.resync, [])
    },
  },
  {
    name: 'rows of another store are refused and stay; a requested load replaces them',
    async run(bench) {
      await bench.commit(['a', { n: 1 }])
      await runOk(bench)
      const before = await bench.harness.rows('things')
      const other = new DestinationBench(bench.harness, await openSqliteStore({ file: ':memory:' }))
      await other.store.storeId('another store')
      await other.commit(['z', { n: 2 }])
      const refused = await other.run()
      assert.equal(refused.report?.error?.code, 'DESTINATION_FOREIGN')
      assert.deepEqual(await bench.harness.rows('things'), before)
      await other.store.signalDestination('copy', { kind: 'resync', databases: ['things'] }, OPERATOR)
      await runOk(other)
      await expectMirror(other)
      await other.store.close()
    },
  },
  {
    name: 'a token with a newer epoch than the store is refused; a requested load replaces it',
    async run(bench) {
      await bench.commit(['a', { n: 1 }])
      await runOk(bench)
      await applyEmptyBatch(bench, 1_000)
      await bench.commit(['a', { n: 2 }])
      assert.equal((await bench.run()).report?.error?.code, 'DESTINATION_AHEAD')
      await bench.store.signalDestination('copy', { kind: 'resync', databases: ['things'] }, OPERATOR)
      await runOk(bench)
      await expectMirror(bench)
    },
  },
  ...childCases,
  {
    name: 'any run of changes, loads and crashes ends equal to the store',
    async run(bench) {
      for (const seed of range(6)) {
        const random = seededRandom(seed + 1)
        await churn(bench, seed, async () => {
          const end = random() < 0.6 ? bench.harness.interrupt?.({ statement: Math.floor(random() * 12) }) : undefined
          if (random() < 0.2)
            await bench.store.signalDestination('copy', { kind: 'resync', databases: ['things'] }, OPERATOR)
          await runOk(bench)
          end?.()
          await expectMirror(bench)
        })
      }
    },
  },
]

const VALUES = [
  1,
  'text',
  '2026-01-31T12:00:00Z',
  '2026-01-31T12:00:00.5+02:00',
  '2026-01-31',
  -0,
  1e300,
  12345678901234567890123n,
  9007199254740993n,
  0.1,
  true,
  '',
  null,
  { a: [1, { b: null }] },
  [],
  'ü\u{1f600}\n\t"\\',
  '1.50',
]

async function runOk(bench: DestinationBench, mode: DestinationMode = 'mirror') {
  const result = await bench.run({ mode })
  assert.equal(result.report?.error ?? null, null)
  assert.notEqual(result.report, null)
  return result
}

async function expectMirror(bench: DestinationBench): Promise<void> {
  assert.deepEqual(sorted(await bench.harness.rows('things')), sorted(await bench.current()))
}

async function expectAppend(bench: DestinationBench): Promise<void> {
  const log = await bench.store.changes({ after: 0, limit: 1_000_000 })
  assert.deepEqual(
    await bench.harness.rows('things'),
    log.map(({ key, sequence, action, text }) => ({
      key,
      sequence,
      action,
      record: text === null ? null : (parseJson(text) as JsonObject),
    })),
  )
}

async function expectHistory(bench: DestinationBench): Promise<void> {
  const log = await bench.store.changes({ after: 0, limit: 1_000_000 })
  const versions = log.flatMap(({ key, sequence, text }) =>
    text === null
      ? []
      : [
          {
            key,
            sequence,
            isCurrent: !log.some((other) => other.key === key && other.sequence > sequence),
            record: parseJson(text) as JsonObject,
          },
        ],
  )
  assert.deepEqual(await bench.harness.rows('things'), versions)
}

function sorted(rows: readonly StoredRow[]): StoredRow[] {
  return rows.toSorted((a, b) => (a.key < b.key ? -1 : 1))
}

/** Commits random changes, and calls `after` for every few of them. */
async function churn(bench: DestinationBench, seed: number, after: () => Promise<void>): Promise<void> {
  const random = seededRandom(seed)
  for (let round = 0; round < 6; round++) {
    for (let commit = 0; commit < 3; commit++) {
      const keys = new Set(range(4).map(() => `k${Math.floor(random() * 9)}`))
      await bench.commit(
        ...[...keys].map((key): [string, JsonObject | null] => [
          key,
          random() < 0.3 ? null : { n: Math.floor(random() * 100), ...(random() < 0.2 && { [`f${round}`]: seed }) },
        ]),
      )
    }
    await after()
  }
}

/** The mode in which a change that is applied twice shows. */
function modeOf({ harness }: DestinationBench): DestinationMode {
  return harness.destination.supports.modes.includes('append') ? 'append' : 'mirror'
}

function createBatch(mode: DestinationMode, changes: ReadonlyArray<readonly [string, JsonObject, number]>) {
  return {
    schema: { database: 'things', mode, columns: [{ member: 'n', type: 'bigint' as const }] },
    target: 'live' as const,
    isFirst: false,
    isLast: false,
    changes: changes.map(([key, record, sequence]) => ({
      key,
      action: 'created' as const,
      sequence,
      committedAt: 1_700_000_000_000,
      record,
      text: JSON.stringify(record),
    })),
  }
}

/** Moves only the token; its sequence stays within the log. */
async function applyEmptyBatch({ harness, store }: DestinationBench, epochs = 0): Promise<void> {
  const session = await harness.destination.open({ tenant: store.tenant, signal: new AbortController().signal })
  try {
    const previous = required((await session.position('things')).live, 'the token of the rows')
    const next = { ...previous, epoch: previous.epoch + epochs }
    assert.equal(await session.apply(createBatch('mirror', []), { previous, next }), 'applied')
  } finally {
    await session.close()
  }
}

/** Leaves a load unfinished, with one row. */
async function beginLoad({ harness, store }: DestinationBench): Promise<void> {
  const session = await harness.destination.open({ tenant: store.tenant, signal: new AbortController().signal })
  try {
    const live = required((await session.position('things')).live, 'the token of the rows')
    const first = { ...live, after: '' }
    const batch = { ...createBatch('mirror', []), target: 'loading' as const }
    assert.equal(await session.apply({ ...batch, isFirst: true }, { previous: null, next: first }), 'applied')
    const row = createBatch('mirror', [['wrong', { n: 1 }, 1]]).changes
    assert.equal(
      await session.apply({ ...batch, changes: row }, { previous: first, next: { ...first, after: 'wrong' } }),
      'applied',
    )
  } finally {
    await session.close()
  }
}

/** A destination that records the keys of a load as they are applied, and refuses the batch after `most` of them. */
function recordLoad({ harness }: DestinationBench, keys: string[], most = Number.POSITIVE_INFINITY): Destination {
  return {
    ...harness.destination,
    open: async (context) => {
      const session = await harness.destination.open(context)
      return {
        position: (database) => session.position(database),
        prepare: (schema) => session.prepare(schema),
        async apply(batch, step) {
          if (keys.length >= most) throw new SyncError('DESTINATION_REFUSED', 'The process ends here.')
          const outcome = await session.apply(batch, step)
          if (batch.target === 'loading') keys.push(...batch.changes.map(({ key }) => key))
          return outcome
        },
        remove: (database) => session.remove(database),
        close: () => session.close(),
      }
    },
  }
}

async function removeRows({ harness, store }: DestinationBench): Promise<void> {
  const session = await harness.destination.open({ tenant: store.tenant, signal: new AbortController().signal })
  await session.remove('things')
  await session.close()
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, n) => n)
}
