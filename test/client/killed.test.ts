import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { buildPackage } from '../cli/package.ts'
import { readFeed, readLiveRows } from '../../src/testing/store-cases/harness.ts'
import { openHarness } from '../stores/sqlite-harness.ts'
import { landed } from './changes-cases.ts'

test('A11, A12, A30 a consumer that is killed repeatedly between any two steps loses nothing, and its keys prevent duplicates', async () => {
  const { stand } = await landed(openHarness)
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-killed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const dist = join(buildPackage(), 'dist')
  // Later each time, so that it progresses: before and after a change is processed, before and after it is saved.
  let [dieAt, kills] = [1, 0]
  while ((await consume([folder, dist, stand.url, stand.key, String(dieAt)])) === 'SIGKILL') {
    kills++
    dieAt += 2
  }
  expect(kills).toBeGreaterThan(4)
  expect(existsSync(join(folder, 'checkpoint.json.draft'))).toBe(false)
  const lines = readFileSync(join(folder, 'done.ndjson'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as [string, string, string, unknown])
  const once = [...new Map(lines.map((line) => [line[0], line])).values()]
  expect(once.map(([, action, key]) => [action, key])).toEqual(
    (await readFeed(stand.store)).map(({ action, key }) => [action, key]),
  )
  expect(lines.length).toBeGreaterThan(once.length)
  const rows = new Map<string, unknown>()
  for (const [, action, key, snapshot] of once) {
    if (action === 'deleted') rows.delete(key)
    else rows.set(key, snapshot)
  }
  expect(rows).toEqual(new Map(await readLiveRows(stand.store)))
})

function consume(args: readonly string[]): Promise<string | null> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'killed-consumer.mjs'), ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) =>
      signal === null && code !== 0 ? reject(new Error(`it ended with ${code}`)) : resolve(signal),
    )
  })
}
