import { expect, test } from 'vitest'
import { runCrashMatrix } from '../../src/testing/simulation/crash-matrix.ts'

test('XA9 a crash at every wait of a history, at the same wait of every restart, and at pairs of waits leads to the same rows, checkpoints and feed', async () => {
  const report = await runCrashMatrix({ pairs: 120 })
  expect(report.failures).toEqual([])
  expect(report.waits).toBeGreaterThan(100)
  expect(report.runs).toBe(2 * report.waits + 120)
  const places = ['acquire', 'takeSlots', 'beginCycle', 'commit', 'release'].flatMap((method) => [
    `store.${method}:before`,
    `store.${method}:after`,
  ])
  expect(report.labels).toEqual(
    expect.arrayContaining([...places, 'source.list:before', 'source.changes:after', 'source.deletions:after']),
  )
}, 300_000)
