import { spawn } from 'node:child_process'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

test('EX6 examples/evm-failover shows the switch, the reorganisation and the status', async () => {
  const root = resolve(import.meta.dirname, '../../..')
  const child = spawn(process.execPath, [join(root, 'examples/evm-failover/run.mjs')], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part: Buffer) => (text += String(part)))
  const code = await new Promise((done) => child.once('exit', done))
  expect(code, text).toBe(0)
  expect(text).toContain('switched to another provider: index → node')
  expect(text).toContain('complete (switched_to_node), 60 of 60 transfers landed, 60 entries in the feed')
  expect(text).toMatch(/wallet\/transfers +HEALTHY .*complete \(switched_to_node\)/)
  expect(text).toContain('complete: 3 transfers were in blocks that are gone, 2 are new, 59 are there')
})
