import { describe, expect, test } from 'vitest'
import { describeDestination, runDestinationCase } from '../../src/testing/describe-destination.ts'
import { destinationCases } from '../../src/testing/destination-cases/cases.ts'
import { openHttpHarness } from './http-harness.ts'

describeDestination('HTTP', () => openHttpHarness(), { runner: { describe, test } })

describe('with one change per request', () => {
  test.each(['append: every change', 'a crash between any two statements of a batch', 'a lost answer'])(
    '%s',
    async (title) => {
      const [found, ...others] = destinationCases.filter(({ name }) => name.startsWith(title))
      expect(others).toEqual([])
      expect(await runDestinationCase(found!, () => openHttpHarness({ bodyBytesMax: 1 }))).toBeNull()
    },
  )
})
