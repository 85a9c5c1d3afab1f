import { join } from 'node:path'
import { describe, test } from 'vitest'
import { describeRunner } from '../../src/testing/describe-runner.ts'
import { RestateStage } from './restate-stage.ts'

describeRunner('Restate', (url) => RestateStage.open((folder) => `sqlite:${join(folder, 'stage.db')}`, url), { runner: { describe, test: test.concurrent } })
