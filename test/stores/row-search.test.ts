import { describe, test } from 'vitest'
import { describeStore } from '../../src/testing/describe-store.ts'
import { rowSearchCases } from '../../src/testing/store-cases/row-search.ts'
import { openHarness } from './sqlite-harness.ts'

/** The same cases as in sqlite.test.ts, for the planted bugs of the search alone. */
describeStore('sqlite, searches', openHarness, {
  runner: { describe, test },
  only: (storeCase) => rowSearchCases.includes(storeCase),
})
