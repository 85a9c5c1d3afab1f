import { describe, test } from 'vitest'
import { describeDestination } from '../../src/testing/describe-destination.ts'
import { openDuckdbHarness } from './duckdb-harness.ts'

describeDestination('DuckDB', openDuckdbHarness, { runner: { describe, test }, timeoutMs: 300_000 })
