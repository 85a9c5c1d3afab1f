import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const MEMBER = fileURLToPath(new URL('stray-member.ts', import.meta.url))

test('XA14: an unhandled rejection in a connector is logged; the process and the other syncs continue', async () => {
  const { code, output, errors } = await run()
  expect(errors).toContain('unhandled promise rejection in a connector')
  expect(errors).toContain('TypeError: this promise is not awaited')
  expect(errors).not.toContain('secret')
  expect(output).toMatch(/^good \d+, listeners 0$/m)
  expect(code).toBe(0)
})

test('XA14: after the runner has stopped, the process handles rejections itself again', async () => {
  const { code, output, errors } = await run('after')
  expect(output).toContain('listeners 0')
  expect(errors).toContain('no runner any more')
  expect(code).toBe(1)
})

async function run(...args: string[]): Promise<{ code: number | null; output: string; errors: string }> {
  const child = spawn(process.execPath, ['--import', 'jiti/register', MEMBER, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [output, errors] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  return { code: await new Promise<number | null>((resolve) => child.once('close', resolve)), output, errors }
}
