import { spawn } from 'node:child_process'
import { copyFileSync, mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { buildPackage, ROOT } from './package.ts'
import { Project } from './project.ts'

test('examples/harbour-api runs as its README says, through 429 and 503', async () => {
  const server = spawn(process.execPath, [join(ROOT, 'examples/harbour-api/server.mjs'), '0'], { stdio: 'pipe' })
  onTestFinished(() => void server.kill())
  const url = await new Promise<string>((resolve) =>
    server.stdout.on('data', (text: Buffer) => resolve(/http:\S+/.exec(String(text))![0])),
  )
  const project = new Project()
  copyFileSync(join(ROOT, 'examples/harbour-api/worker.mjs'), join(project.folder, 'worker.mjs'))

  const env = { HARBOUR_URL: url }
  expect(await project.run('run', { env })).toMatchObject({
    code: 3,
    stdout: expect.stringContaining('SECRET_MISSING'),
  })
  project.write('.env', 'HARBOUR_TOKEN=wrong\n')
  expect(await project.run('preview', 'vessels-backfill', { env })).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('AUTH_REJECTED'),
  })
  project.write('.env', 'HARBOUR_TOKEN=let-me-in\n')
  const { code, stdout } = await project.run('run', { env })
  expect(code, stdout).toBe(0)
  const {
    rows: [{ n }],
  } = await project.json('query', 'select count(*) as n from vessels')
  expect(n).toBeGreaterThan(450)
})

test('examples/bookmarks runs with one command: the list is read, followed and swept', async () => {
  const project = new Project()
  for (const file of ['worker.mjs', 'demo.mjs'])
    copyFileSync(join(ROOT, 'examples/bookmarks', file), join(project.folder, file))
  project.write('package.json', '{ "type": "module" }')
  mkdirSync(join(project.folder, 'node_modules/@tidemark'), { recursive: true })
  symlinkSync(buildPackage(), join(project.folder, 'node_modules/tidemark'))
  symlinkSync(join(ROOT, 'simulators'), join(project.folder, 'node_modules/@tidemark/simulators'))
  const demo = spawn(process.execPath, [join(project.folder, 'demo.mjs')], { cwd: project.folder, stdio: 'pipe' })
  onTestFinished(() => void demo.kill())
  let said = ''
  for (const stream of [demo.stdout, demo.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => void (said += text))
  const code = await new Promise((resolve) => demo.once('close', resolve))
  expect(code, said).toBe(0)
  expect(said).toMatch(/\d pages · 400 created/)
  expect(said).toMatch(/1 page · 5 created, 85 unchanged .* reached_since/)
  expect(said).toMatch(/complete \(reached_since\)/)
  expect(said).toMatch(/3 swept/)
  expect(said).toMatch(/bookmarks\s+402/)
})
