import { expect, test } from 'vitest'
import { drawVendorConfig } from '../../src/testing/simulation/vendors/vendor-config.ts'

const CONFIGS = Array.from({ length: 3_000 }, (_, index) => drawVendorConfig(index + 1))

test('a late write in a lagging replica becomes visible within the lag that the source declares', () => {
  let both = 0
  for (const { lag, replicaBehindMs, stream } of CONFIGS) {
    expect(lag.maxMs + replicaBehindMs).toBeLessThanOrEqual(stream.lagMaxMs)
    if (lag.maxMs > 0 && replicaBehindMs > 0) both++
  }
  expect(both).toBeGreaterThan(0)
})

test('a clock error that no Date header corrects stays within the lag that the source declares', () => {
  const worlds = { wrongHeader: 0, wrongHeaderByFault: 0, laggingReplica: 0, uncorrected: 0 }
  for (const { lag, replicaBehindMs, runnerSkewMs, dateSkewMs, rates, stream } of CONFIGS) {
    const errorMs = lag.maxMs + replicaBehindMs + runnerSkewMs
    if (dateSkewMs === 0 && (rates['wrong-date'] ?? 0) === 0) {
      if (errorMs > stream.lagMaxMs) worlds.uncorrected++
      continue
    }
    expect(errorMs).toBeLessThanOrEqual(stream.lagMaxMs)
    if (runnerSkewMs === 0) continue
    if (dateSkewMs === 0) worlds.wrongHeaderByFault++
    else worlds.wrongHeader++
    if (replicaBehindMs > 0) worlds.laggingReplica++
  }
  // Every condition occurs. A correct header leaves the error of the clock as it is.
  expect(Object.values(worlds).filter((count) => count === 0)).toEqual([])
})
