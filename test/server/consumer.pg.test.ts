import { describe, inject } from 'vitest'
import { openHarness } from '../stores/postgres-harness.ts'
import { describeConsumers } from './consumer-cases.ts'

describe.skipIf(inject('postgresUrl') === '')('on PostgreSQL', () => describeConsumers('PostgreSQL', openHarness))
