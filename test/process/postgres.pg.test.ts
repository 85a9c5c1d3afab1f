import { afterAll, beforeAll, describe, inject } from 'vitest'
import { buildPackage, type Build } from './build.ts'
import { killChildren } from './child.ts'
import { describeKills, describeKillsWhileDeletesChange } from './kill.ts'
import { createPostgresFixture, type ProcessStoreFixture } from './process-store-fixture.ts'
import { describeTakeover } from './takeover.ts'
import { describeWebhooks } from './webhooks.ts'

const serverUrl = inject('postgresUrl')
let build: Build
let stand: ProcessStoreFixture

describe.skipIf(serverUrl === '')('processes on one PostgreSQL database', () => {
  beforeAll(async () => {
    build = await buildPackage()
    stand = createPostgresFixture(serverUrl)
  })

  afterAll(async () => {
    killChildren()
    await stand.remove()
    build.remove()
  })

  describeTakeover(
    () => build,
    () => stand,
  )
  describeKills(
    () => build,
    () => stand,
  )
  describeKillsWhileDeletesChange(
    () => build,
    () => stand,
  )
  describeWebhooks(
    () => build,
    () => stand,
  )
})
