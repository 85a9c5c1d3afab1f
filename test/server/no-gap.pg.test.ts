import { describe, inject } from 'vitest'
import { openHarness } from '../stores/postgres-harness.ts'
import { describeNoGap } from './no-gap-cases.ts'

describe.skipIf(inject('postgresUrl') === '')('on PostgreSQL', () => describeNoGap('PostgreSQL', openHarness))
