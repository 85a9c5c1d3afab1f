import { expect } from 'vitest'
import { simulateVendors } from '../../src/testing/simulation/vendors/simulate-vendors.ts'
import { worldsOf } from '../../src/testing/simulation/vendors/vendor-config.ts'

/** More by hand: npx tidemark sim --vendors --seeds 20000 */
const SEEDS = Number(process.env['TIDEMARK_VENDOR_SEEDS'] ?? 600)

/** A share of the seeds; shares run beside each other. */
export async function expectNoBrokenVendorPromise(share: number, of: number): Promise<void> {
  const seeds = Math.ceil(SEEDS / of)
  const report = await simulateVendors({ seeds, firstSeed: 1 + share * seeds })
  expect(report.failures.map(({ seed, kind, oracle, message, faults }) => ({ seed, kind, oracle, message, faults }))).toEqual([])
  expect(report.kindsNeverHit).toEqual([])
  expect(report.repeated).toBeGreaterThan(0)
  const kinds = worldsOf({}).map(({ stream, kind }) => `${stream.vendor} ${stream.name} ${kind}`)
  expect(Object.keys(report.worldsByKind).toSorted()).toEqual(kinds.toSorted())
  console.info(`${report.sentence} ${Math.round(report.perSecond)} worlds a second, ${report.cycles} cycles, ${report.requests} requests, digest ${report.digest}.`)
}
