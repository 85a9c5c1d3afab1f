import { expect, test } from 'vitest'
import { runCrashMatrix } from '../../src/testing/simulation/crash-matrix.ts'

/** Every wait is crashed at; `npm run campaign:sim` adds more pairs of them. */
const PAIRS = Number(process.env['TIDEMARK_CRASH_PAIRS'] ?? 10)

test('XA9 a crash at every wait of a history, at the same wait of every restart, and at pairs of waits leads to the same rows, checkpoints and feed', async () => {
  const report = await runCrashMatrix({ pairs: PAIRS })
  expect(report.failures).toEqual([])
  expect(report.waits).toBeGreaterThan(100)
  expect(report.runs).toBe(2 * report.waits + PAIRS)
  const places = ['acquire', 'takeSlots', 'beginCycle', 'commit', 'release'].flatMap((method) => [
    `store.${method}:before`,
    `store.${method}:after`,
  ])
  expect(report.labels).toEqual(
    expect.arrayContaining([...places, 'source.list:before', 'source.changes:after', 'source.deletions:after']),
  )
}, 300_000)
