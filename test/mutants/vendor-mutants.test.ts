import { describe } from 'vitest'
import { expectMutantsFound } from './expect-mutants-found.ts'
import { VENDOR_MUTANTS } from './vendor-mutants.ts'

// D10, the comparison of instants as text, shows in no vendor's own timestamps; its control is in
// test/strategies/keyset.test.ts.
describe("the vendors' worlds find the bugs of the first connectors, planted back", () =>
  expectMutantsFound(VENDOR_MUTANTS))
