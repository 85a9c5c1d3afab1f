import { expect } from 'vitest'
import { simulate } from '../../src/testing/simulation/simulate.ts'

/** Enough for every kind of fault in each half; `npm run campaign:sim` runs more. */
export const SEEDS = Number(process.env['TIDEMARK_SEEDS'] ?? 240)

/** A share of the seeds; shares run concurrently. */
export async function expectNoBrokenPromise(share: number, of: number): Promise<void> {
  const seeds = Math.ceil(SEEDS / of)
  const report = await simulate({ seeds, firstSeed: 1 + share * seeds })
  expect(
    report.failures.map(({ seed, kind, oracle, message, faults }) => ({ seed, kind, oracle, message, faults })),
  ).toEqual([])
  expect(report.kindsNeverHit).toEqual([])
  expect(report.repeated).toBeGreaterThan(0)
  console.info(
    `${report.sentence} ${Math.round(report.perSecond)} worlds a second, ${report.cycles} cycles, ${report.virtualHours.toFixed(0)} virtual hours, digest ${report.digest}.`,
  )
}
