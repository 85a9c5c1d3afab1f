import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { buildPackage, type Build } from './build.ts'
import { Child, killChildren } from './child.ts'
import { describeKills, describeKillsWhileDeletesChange } from './kill.ts'
import { createSqliteFixture, type ProcessStoreFixture } from './process-store-fixture.ts'
import { describeTakeover } from './takeover.ts'
import { describeWebhooks } from './webhooks.ts'

let build: Build
let stand: ProcessStoreFixture

beforeAll(async () => {
  build = await buildPackage()
  stand = createSqliteFixture()
})

afterAll(async () => {
  killChildren()
  await stand.remove()
  build.remove()
})

describe('processes on one SQLite file', () => {
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

  test('XB17 new files, each opened by six processes at the same time: no process fails because one is busy', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-together-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const count = process.env['TIDEMARK_LONG'] === '1' ? 100 : 40
    const files = Array.from({ length: count }, (_, index) => join(folder, `${index}.db`))
    const input = { files, at: Date.now() + 1_000, everyMs: 25 }
    const ended = await Promise.all(
      Array.from({ length: 6 }, () => new Child(build, 'open-together.mjs', { input }).ended),
    )
    for (const { said, stderr } of ended)
      expect({ said, stderr }).toEqual({ said: [{ event: 'opened', files: files.length }], stderr: '' })
  })
})
