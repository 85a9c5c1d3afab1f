import { describe, expect, test } from 'vitest'
import { runDestinationCase } from '../../src/testing/describe-destination.ts'
import { destinationCases } from '../../src/testing/destination-cases/cases.ts'
import { openMemoryDestination, type Mistake } from './memory-destination.ts'

describe('describeDestination finds', () => {
  test.each<[Mistake, string]>([
    ['token after the rows', 'crash between any two statements of a batch'],
    ['token before the rows', 'crash between any two statements of a batch'],
    ['no check of the token', 'two appliers'],
    ['no check of the epoch', 'two appliers'],
    ['deletes ignored', 'and then follows every change'],
    ['load over the live rows', 'requested load during a load'],
    ['new fields dropped', 'new fields in mid-stream'],
    ['large numbers rounded', 'every value is kept exactly'],
    ['first version wins', 'and then follows every change'],
    ['old children stay', 'children: the objects'],
    ['children of a deleted row stay', 'children: the objects'],
    ['children outlive their table', 'children: other child tables'],
  ])('%s', async (mistake, title) => {
    const found = destinationCases.filter(({ name }) => name.includes(title))
    expect(found).toHaveLength(1)
    for (const destinationCase of found) {
      expect(await runDestinationCase(destinationCase, async () => openMemoryDestination())).toBeNull()
      await expect(runDestinationCase(destinationCase, async () => openMemoryDestination(mistake))).rejects.toThrow()
    }
  })
})
