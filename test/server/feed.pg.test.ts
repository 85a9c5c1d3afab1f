import { describe, inject } from 'vitest'
import { openHarness } from '../stores/postgres-harness.ts'
import { describeFeed } from './feed-cases.ts'

describe.skipIf(inject('postgresUrl') === '')('on PostgreSQL', () => describeFeed('PostgreSQL', openHarness))
