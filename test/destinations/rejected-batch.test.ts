import { describe, expect, onTestFinished, test } from 'vitest'
import { SyncError, type Destination, type DestinationBatch, type ErrorCode } from '../../src/contract/index.ts'
import { computeDestinationDue } from '../../src/destinations/loop/destination-due.ts'
import { RejectedBatchSearch } from '../../src/destinations/loop/rejected-batch.ts'
import { DestinationBench } from '../../src/testing/destination-cases/harness.ts'
import { openMemoryDestination } from './memory-destination.ts'

/** A destination that rejects batches with a certain record, until it is repaired. */
async function openBench() {
  const harness = openMemoryDestination()
  const bench = await DestinationBench.open(harness)
  onTestFinished(() => bench.store.close())
  const sizes: number[] = []
  let reject: ((batch: DestinationBatch) => ErrorCode | null) | null = null
  const destination: Destination = {
    ...harness.destination,
    open: async (context) => {
      const session = await harness.destination.open(context)
      return {
        ...session,
        apply: async (batch, step) => {
          const code = reject?.(batch) ?? null
          if (batch.changes.length > 0) sizes.push(batch.changes.length)
          if (code !== null) throw new SyncError(code, 'The value does not fit.')
          return session.apply(batch, step)
        },
      }
    },
  }
  return {
    bench,
    sizes,
    keys: async () => (await harness.rows('things')).map(({ key }) => key).toSorted(),
    rejecting: (given: typeof reject) => void (reject = given),
    run: (rowsMax = 16) => bench.run({ destination, limits: { rowsMax, bytesMax: 1_000_000 } }),
    progress: async () => (await bench.store.destinations())[0]!.databases[0]!,
    status: async () => (await bench.store.destinations())[0]!,
  }
}

const NAMES = Array.from({ length: 16 }, (_, number) => `k${String(number).padStart(2, '0')}`)
const hasKey =
  (key: string, code: ErrorCode = 'DESTINATION_FAILED') =>
  ({ changes }: DestinationBatch) =>
    changes.some((change) => change.key === key) ? code : null

describe('a batch that cannot be applied', () => {
  test('is halved to the record, which the status names; the rows before it are applied, and it continues once repaired', async () => {
    const { bench, sizes, keys, rejecting, run, progress, status } = await openBench()
    await bench.commit(['first', { n: 0 }])
    await run()
    await bench.commit(...NAMES.map((key, n) => [key, { n }] as const))
    rejecting(hasKey('k11'))
    sizes.length = 0
    const { report } = await run()
    expect(sizes).toEqual([16, 8, 8, 4, 2, 2, 1, 1])
    const sequence = (await bench.current()).find(({ key }) => key === 'k11')!.sequence
    expect(report!.error).toEqual({
      code: 'DESTINATION_FAILED',
      message: `The value does not fit. Rejected: database things, sequence ${sequence}, key "k11".`,
    })
    expect(await progress()).toMatchObject({
      state: 'failed',
      sequence: sequence - 1,
      failure: { code: 'DESTINATION_FAILED', firstSequence: sequence, lastSequence: sequence, key: 'k11' },
    })
    expect(await keys()).toEqual(['first', ...NAMES.slice(0, 11)])
    expect(bench.log.join('\n')).toContain('error destination failed')
    expect(bench.fields.join('\n')).not.toContain('k11')
    expect(await status()).toMatchObject({ failures: 1, retryAt: expect.any(Number) })

    // Nothing is skipped: the next run fails at the same record.
    expect((await run()).report).toMatchObject({ failures: 2, databases: [{ sequence: sequence - 1 }] })
    rejecting(null)
    expect((await run()).report).toMatchObject({ failures: 0, error: null, retryAt: null })
    expect(await progress()).toMatchObject({ state: 'following', failure: null })
    expect(await keys()).toEqual(['first', ...NAMES])
  })

  test('a load is halved too, and resumes behind its last key', async () => {
    const { bench, keys, rejecting, run, progress } = await openBench()
    await bench.commit(...NAMES.map((key, n) => [key, { n }] as const))
    rejecting(hasKey('k05'))
    expect((await run()).report?.error?.message).toContain('key "k05"')
    expect(await progress()).toMatchObject({ state: 'failed', changes: 5 })
    expect(await keys()).toEqual([])
    rejecting(null)
    expect((await run()).changes).toBe(11)
    expect(await keys()).toEqual(NAMES)
  })

  test('a destination that only rejects large batches gets smaller ones, and no error', async () => {
    const { bench, sizes, keys, rejecting, run } = await openBench()
    await bench.commit(['first', { n: 0 }])
    await run()
    await bench.commit(...NAMES.map((key, n) => [key, { n }] as const))
    rejecting(({ changes }) => (changes.length > 5 ? 'DESTINATION_FAILED' : null))
    sizes.length = 0
    expect((await run()).report?.error).toBe(null)
    expect(sizes).toEqual([16, 8, 4, 4, 4, 4])
    expect(await keys()).toEqual(['first', ...NAMES])
  })

  test('other errors are not searched: the batch is named as a whole', async () => {
    const { bench, sizes, rejecting, run, progress } = await openBench()
    await bench.commit(['first', { n: 0 }])
    await run()
    await bench.commit(...NAMES.map((key, n) => [key, { n }] as const))
    rejecting(() => 'DESTINATION_REFUSED')
    sizes.length = 0
    expect((await run()).report?.error?.code).toBe('DESTINATION_REFUSED')
    expect(sizes).toEqual([16])
    expect(await progress()).toMatchObject({
      state: 'failed',
      failure: { firstSequence: 2, lastSequence: 17, key: null },
    })
  })

  test('a full disk waits for the next run instead of retrying, and names no record', async () => {
    const { bench, sizes, keys, rejecting, run, progress, status } = await openBench()
    await bench.commit(['first', { n: 0 }])
    await run()
    await bench.commit(['second', { n: 1 }])
    rejecting(() => 'DESTINATION_FULL')
    sizes.length = 0
    expect((await run()).report).toMatchObject({ failures: 1, error: { code: 'DESTINATION_FULL' } })
    expect(sizes).toEqual([1])
    expect(await progress()).toMatchObject({ state: 'waiting', sequence: 1, failure: { key: null } })
    expect((await status()).retryAt).toBeGreaterThan(Date.now() + 50_000)
    rejecting(null)
    expect((await run()).report).toMatchObject({ failures: 0, error: null })
    expect(await keys()).toEqual(['first', 'second'])
  })

  test('a search ends: every rejection halves the size', () => {
    const search = new RejectedBatchSearch({ rowsMax: 50_000, bytesMax: 1 })
    const failure = new SyncError('DESTINATION_FAILED', 'no')
    let count = 0
    while (search.narrow(failure, { firstSequence: 1, lastSequence: 9, changes: search.limits.rowsMax, key: null }))
      count++
    expect(count).toBe(16)
    expect(search.limits.rowsMax).toBe(1)
    search.onApplied(50_000)
    for (let size = 1; size < 50_000; size *= 2) search.onApplied(1)
    expect(search.limits.rowsMax).toBe(50_000)
  })
})

describe('one database that fails', () => {
  const failure = {
    code: 'DESTINATION_FAILED',
    message: '',
    at: 0,
    firstSequence: 1,
    lastSequence: 1,
    key: null,
  } as const
  const follow = (database: string, readSequence: number) =>
    ({ database, state: 'following', sequence: 1, readSequence, committedAt: 0, changes: 0, loadReason: null }) as const
  const base = {
    name: 'copy',
    kind: 'memory',
    location: 'memory',
    mode: 'mirror',
    isPaused: false,
    heldBy: null,
    triggeredAt: null,
    resync: [],
    startedAt: 0,
    endedAt: 0,
    failures: 1,
    retryAt: 500,
    error: { code: 'DESTINATION_FAILED', message: '' },
  } as const
  const due = (
    databases: Parameters<typeof computeDestinationDue>[2] extends infer S
      ? S extends { databases: infer D }
        ? D
        : never
      : never,
    retryAt: number | null = 500,
  ) =>
    computeDestinationDue(
      { databases: ['a', 'b'] },
      { kind: 'continuous' },
      { ...base, retryAt, databases },
      { now: 100, since: 0, headSequence: 5 },
    )

  test('does not delay the others, and is retried at its own time', () => {
    const failed = { ...follow('a', 1), state: 'failed', failure } as const
    expect(due([failed, follow('b', 4)])).toEqual({ kind: 'at', at: 100, why: 'changes' })
    expect(due([failed, follow('b', 5)])).toEqual({ kind: 'at', at: 500, why: 'retry' })
    expect(due([failed, { ...failed, database: 'b' }])).toEqual({ kind: 'at', at: 500, why: 'retry' })
    expect(due([failed, follow('b', 5)], 90)).toEqual({ kind: 'at', at: 90, why: 'retry' })
    // A wait that was cleared, as by `resume`, must not leave it forever.
    expect(due([failed, follow('b', 5)], null)).toMatchObject({ kind: 'at', at: 100 })
  })
})
