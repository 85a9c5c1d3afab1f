import { describe, inject, test } from 'vitest'
import { describeStore } from '../../src/testing/describe-store.ts'
import { openHarness } from './postgres-harness.ts'

describe.skipIf(inject('postgresUrl') === '')('on PostgreSQL', () => {
  describeStore('postgres', openHarness, { runner: { describe, test } })
})
