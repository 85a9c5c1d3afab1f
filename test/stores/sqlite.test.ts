import { describe, test } from 'vitest'
import { describeStore } from '../../src/testing/describe-store.ts'
import { openHarness } from './sqlite-harness.ts'

describeStore('sqlite', openHarness, { runner: { describe, test } })
