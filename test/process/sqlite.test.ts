import { afterAll, beforeAll, describe } from 'vitest'
import { buildPackage, type Build } from './build.ts'
import { killChildren } from './child.ts'
import { describeKills } from './kill.ts'
import { sqliteStand, type Stand } from './stand.ts'
import { describeTakeover } from './takeover.ts'
import { describeWebhooks } from './webhooks.ts'

let build: Build
let stand: Stand

beforeAll(async () => {
  build = await buildPackage()
  stand = sqliteStand()
})

afterAll(async () => {
  killChildren()
  await stand.remove()
  build.remove()
})

describe('processes on one SQLite file', () => {
  describeTakeover(() => build, () => stand)
  describeKills(() => build, () => stand)
  describeWebhooks(() => build, () => stand)
})
