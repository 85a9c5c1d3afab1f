import { describe, inject } from 'vitest'
import { openHarness } from '../stores/postgres-harness.ts'
import { describeFleet } from './fleet-cases.ts'

describe.skipIf(inject('postgresUrl') === '')('on PostgreSQL', () => describeFleet('PostgreSQL', openHarness))
