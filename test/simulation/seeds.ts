import { expect } from 'vitest'
import { simulate } from '../../src/testing/simulation/simulate.ts'

/** More by hand, or by night: TIDEMARK_SEEDS=100000 npx vitest run test/simulation */
export const SEEDS = Number(process.env['TIDEMARK_SEEDS'] ?? 3_000)

/** A share of the seeds; shares run beside each other. */
export async function expectNoBrokenPromise(share: number, of: number): Promise<void> {
  const seeds = Math.ceil(SEEDS / of)
  const report = await simulate({ seeds, firstSeed: 1 + share * seeds })
  expect(report.failures.map(({ seed, kind, oracle, message, faults }) => ({ seed, kind, oracle, message, faults }))).toEqual([])
  expect(report.kindsNeverHit).toEqual([])
  expect(report.repeated).toBeGreaterThan(0)
  console.info(`${report.sentence} ${Math.round(report.perSecond)} worlds a second, ${report.cycles} cycles, ${report.virtualHours.toFixed(0)} virtual hours, digest ${report.digest}.`)
}
