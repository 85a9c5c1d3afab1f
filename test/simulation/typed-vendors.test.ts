import { expect, test } from 'vitest'
import { typedAccounts } from '../../src/testing/simulation/vendors/salesforce.ts'
import { typedIncidents } from '../../src/testing/simulation/vendors/servicenow.ts'
import { runVendorWorld } from '../../src/testing/simulation/vendors/vendor-world.ts'

const SEEDS = Number(process.env['TIDEMARK_TYPED_VENDOR_SEEDS'] ?? 40)

test.each([
  ['salesforce', typedAccounts],
  ['servicenow', typedIncidents],
])(
  'no invariant is broken in worlds of %s that request types',
  async (vendor, stream) => {
    const failures: unknown[] = []
    for (let seed = 1; seed <= SEEDS; seed++) {
      const { violations, faults } = await runVendorWorld({ seed, vendors: [vendor], overrides: { stream } })
      if (violations.length > 0)
        failures.push({ seed, violations, faults: faults.map(({ id, kind }) => `${kind} at ${id}`) })
    }
    expect(failures).toEqual([])
  },
  3_600_000,
)
