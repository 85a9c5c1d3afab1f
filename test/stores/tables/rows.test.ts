import { describe, expect, test } from 'vitest'
import { runStoreCase } from '../../../src/testing/describe-store.ts'
import { openHarness } from '../sqlite-harness.ts'
import { rowCases } from './row-cases.ts'

describe('tables of SQLite', () => {
  test.each(rowCases.map((rowCase) => [rowCase.name, rowCase] as const))('%s', async (_, rowCase) => {
    expect(await runStoreCase(rowCase, openHarness)).toBe(null)
  })
})
