import { execFile } from 'node:child_process'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../..')

interface Measure {
  readonly work: string
  readonly limit: string
  readonly figure: number
  readonly unit: string
  readonly ours: number
  readonly raw: number | null
  readonly bar: number | null
  readonly met: boolean | null
}

/** A small run of one case of `npm run bench`: it only shows that the case completes with all of its results. */
export async function runCase(name: string, ...flags: string[]): Promise<Measure[]> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(ROOT, 'bench/run.mjs'), '--small', '--json', '--only', name, ...flags],
    { cwd: ROOT, maxBuffer: 2 ** 26 },
  )
  const { cases } = JSON.parse(stdout) as { cases: Record<string, { measures: Measure[] }> }
  const { measures } = cases[name]!
  expect(measures).not.toEqual([])
  for (const measure of measures) {
    expect(measure).toMatchObject({
      work: expect.any(String),
      limit: expect.any(String),
      figure: expect.any(Number),
      ours: expect.any(Number),
    })
    expect(measure.figure, measure.work).toBeGreaterThanOrEqual(0)
    // A ratio without its limit is meaningless.
    if (measure.unit === '×') expect(measure.raw, measure.work).toBeGreaterThan(0)
    expect(measure.met === null, measure.work).toBe(measure.bar === null)
  }
  return measures
}
