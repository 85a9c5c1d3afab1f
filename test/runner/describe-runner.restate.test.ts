import { join } from 'node:path'
import { describe, test } from 'vitest'
import { describeRunner } from '../../src/testing/describe-runner.ts'
import { RestateHarness } from './restate-harness.ts'

describeRunner('Restate', (url) => RestateHarness.open((folder) => `sqlite:${join(folder, 'stage.db')}`, url), {
  runner: { describe, test: test.concurrent },
})
