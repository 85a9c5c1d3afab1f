import { expect, test } from 'vitest'
import { drawVendorConfig } from '../../src/testing/simulation/vendors/vendor-config.ts'

test('a late write in a lagging replica becomes visible within the lag that the source declares', () => {
  let both = 0
  for (let seed = 1; seed <= 3_000; seed++) {
    const { lag, replicaBehindMs, stream } = drawVendorConfig(seed)
    expect(lag.maxMs + replicaBehindMs).toBeLessThanOrEqual(stream.lagMaxMs)
    if (lag.maxMs > 0 && replicaBehindMs > 0) both++
  }
  expect(both).toBeGreaterThan(0)
})
