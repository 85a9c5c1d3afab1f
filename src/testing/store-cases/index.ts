import { beginCases } from './begin.ts'
import { commitCases } from './commit.ts'
import type { StoreCase } from './harness.ts'
import { landingCases } from './landing.ts'
import { leaseCases } from './leases.ts'
import { sweepCases } from './sweep.ts'

/** The promise of a store, in the order in which one would build it. */
export const storeCases: readonly StoreCase[] = [
  ...leaseCases,
  ...beginCases,
  ...commitCases,
  ...landingCases,
  ...sweepCases,
]
