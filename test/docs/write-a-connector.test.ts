import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { buildPackage, ROOT } from '../cli/package.ts'
import { Project } from '../cli/project.ts'
import { blocksOf, commandsIn } from './blocks.ts'

test(
  'docs/guides/write-a-connector.md: every file is written and every command runs, in the order of the page',
  { timeout: 300_000 },
  async () => {
    const [busy, calm] = await Promise.all([harbour({}), harbour({ HARBOUR_CALM: '1' })])
    const project = new Project()
    // As `npm install tidemark` would.
    mkdirSync(join(project.folder, 'node_modules'))
    symlinkSync(buildPackage(), join(project.folder, 'node_modules/tidemark'))

    const ran: string[] = []
    for (const block of blocksOf('docs/guides/write-a-connector.md')) {
      if (block.language === 'ts' && block.text.includes('export default')) project.write('worker.ts', block.text)
      if (block.language === 'js') project.write('promise.test.mjs', block.text)
      if (block.text.startsWith('node --test')) {
        const { status, stdout } = spawnSync('/bin/sh', ['-c', block.text], { cwd: project.folder, encoding: 'utf8' })
        expect({ status, said: status === 0 ? '' : stdout }).toEqual({ status: 0, said: '' })
        expect(Number(/^# pass (\d+)$/m.exec(stdout)![1])).toBeGreaterThan(10)
      }
      if (block.text.includes('echo HARBOUR_TOKEN'))
        project.write('.env', `${/echo (\S+) > \.env/.exec(block.text)![1]!}\n`)
      // The last command runs until it is stopped.
      for (const args of commandsIn(block).filter(([verb]) => verb !== 'start')) {
        const { code, stdout, stderr } = await project.run(...args, {
          env: { HARBOUR_URL: args[0] === 'sim' ? calm : busy },
        })
        expect({ args, code, said: code === 0 ? '' : stdout + stderr }).toEqual({ args, code: 0, said: '' })
        ran.push(`${args.join(' ')}\n${stdout}`)
      }
    }
    expect(ran.map((text) => text.split('\n')[0]!.split(' ')[0])).toEqual([
      'preview',
      'run',
      'query',
      'run',
      'run',
      'status',
      'sim',
    ])
    expect(ran[1]).toMatch(/✓ vessels {2}\d+ pages · \d{3} created/)
    expect(ran[3]).toMatch(/✓ vessels-backfill /)
    expect(ran.at(-1)).toMatch(/✓ vessels-backfill {2}\d{3} rows in \d+ pages · 10 runs/)
  },
)

async function harbour(env: Record<string, string>): Promise<string> {
  const server = spawn(process.execPath, [join(ROOT, 'examples/harbour-api/server.mjs'), '0'], {
    stdio: 'pipe',
    env: { ...process.env, ...env },
  })
  onTestFinished(() => void server.kill())
  return new Promise((resolve) =>
    server.stdout.on('data', (text: Buffer) => resolve(/http:\S+/.exec(String(text))![0])),
  )
}
