import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, test } from 'vitest'
import { describeRunner } from '../../src/testing/describe-runner.ts'
import { FleetHarness } from './fleet-harness.ts'

const folder = mkdtempSync(join(tmpdir(), 'tidemark-runner-'))
let stores = 0
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describeRunner('SQLite', (url) => FleetHarness.open(`sqlite:${join(folder, `${++stores}.db`)}`, url), {
  runner: { describe, test: test.concurrent },
})
