import { expect, test } from 'vitest'
import { simulateVendors } from '../../src/testing/simulation/vendors/simulate-vendors.ts'
import { stripeInvoices } from '../../src/testing/simulation/vendors/stripe.ts'
import { listWorlds } from '../../src/testing/simulation/vendors/vendor-config.ts'

/** Enough for every vendor, kind of world and kind of fault; `npm run campaign:sim` runs more. */
const SEEDS = Number(process.env['TIDEMARK_VENDOR_SEEDS'] ?? 120)
/** Few of the first worlds cache a page of a nested list. */
const NESTED_SEEDS = Math.max(50, Math.ceil(SEEDS / 4))

test(
  'no invariant is broken in worlds of any vendor',
  async () => {
    const report = await simulateVendors({ seeds: SEEDS })
    const failures = report.failures.map(({ seed, kind, oracle, message, faults }) => ({
      seed,
      kind,
      oracle,
      message,
      faults,
    }))
    expect(failures).toEqual([])
    expect(report.kindsNeverHit).toEqual([])
    expect(report.repeated).toBeGreaterThan(0)
    const kinds = listWorlds({}).map(({ stream, kind }) => `${stream.vendor} ${stream.name} ${kind}`)
    expect(Object.keys(report.worldsByKind).toSorted()).toEqual(kinds.toSorted())
    const { sentence, perSecond, cycles, requests, digest } = report
    console.info(
      `${sentence} ${Math.round(perSecond)} worlds a second, ${cycles} cycles, ${requests} requests, digest ${digest}.`,
    )
  },
  12 * 3_600_000,
)

test('N43 no invariant is broken where pages of nested lists come from a cache', async () => {
  const report = await simulateVendors({
    seeds: NESTED_SEEDS,
    vendors: ['stripe'],
    overrides: { stream: stripeInvoices, vendorLatencyMs: [2, 30], records: 6, rates: { 'cached-nested-page': 0.5 } },
  })
  expect(report.failures.map(({ seed, kind, oracle, message }) => ({ seed, kind, oracle, message }))).toEqual([])
  expect(report.faultsByPlace['cached-nested-page']!['fetch nested answer']).toBeGreaterThan(NESTED_SEEDS)
}, 3_600_000)

test('no invariant is broken in worlds of OData services', async () => {
  const report = await simulateVendors({ seeds: Math.ceil(SEEDS / 4), vendors: ['odata'] })
  expect(report.failures.map(({ seed, kind, oracle, message }) => ({ seed, kind, oracle, message }))).toEqual([])
  const kinds = listWorlds({ vendors: ['odata'] }).map(({ stream, kind }) => `${stream.vendor} ${stream.name} ${kind}`)
  expect(Object.keys(report.worldsByKind).toSorted()).toEqual(kinds.toSorted())
}, 3_600_000)

test.each(['salesforce-bulk', 'hubspot-objects'])(
  'no invariant is broken in worlds of %s',
  async (vendor) => {
    const report = await simulateVendors({ seeds: Math.ceil(SEEDS / 20), vendors: [vendor] })
    expect(report.failures.map(({ seed, kind, oracle, message }) => ({ seed, kind, oracle, message }))).toEqual([])
  },
  3_600_000,
)
