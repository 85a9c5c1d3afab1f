import { spawn } from 'node:child_process'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ROOT } from './package.ts'
import { Project } from './project.ts'

test('examples/harbour-api runs as its README says, through 429 and 503', { timeout: 180_000 }, async () => {
  const server = spawn(process.execPath, [join(ROOT, 'examples/harbour-api/server.mjs'), '0'], { stdio: 'pipe' })
  onTestFinished(() => void server.kill())
  const url = await new Promise<string>((resolve) => server.stdout.on('data', (text: Buffer) => resolve(/http:\S+/.exec(String(text))![0])))
  const project = new Project()
  copyFileSync(join(ROOT, 'examples/harbour-api/worker.mjs'), join(project.folder, 'worker.mjs'))

  const env = { HARBOUR_URL: url }
  expect(await project.run('run', { env })).toMatchObject({ code: 3, stdout: expect.stringContaining('SECRET_MISSING') })
  project.write('.env', 'HARBOUR_TOKEN=wrong\n')
  expect(await project.run('preview', 'vessels-backfill', { env })).toMatchObject({ code: 1, stderr: expect.stringContaining('AUTH_REJECTED') })
  project.write('.env', 'HARBOUR_TOKEN=let-me-in\n')
  const { code, stdout } = await project.run('run', { env })
  expect(code, stdout).toBe(0)
  const { rows: [{ n }] } = await project.json('query', 'select count(*) as n from vessels')
  expect(n).toBeGreaterThan(450)
})
