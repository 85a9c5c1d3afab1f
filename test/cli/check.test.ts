import { spawn } from 'node:child_process'
import { copyFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { textOf } from '../linter/workers.ts'
import { expectGolden } from './golden.ts'
import { ROOT } from './package.ts'
import { Project } from './project.ts'

const BAD = textOf({
  below: ' ',
  execute: `
const left = all.filter(({ at }) => state === undefined || at > state.at)
const last = left.slice(0, 5).at(-1)
return { changes: left.slice(0, 5).map(upsert), hasMore: left.length > 5, nextState: { at: last?.at ?? state.at } }`,
})

test('its document, and the exit code of an error', async () => {
  const project = new Project()
  project.write('bad.mjs', BAD)
  expectGolden('check', project, await project.ask('check', 'bad.mjs', '--json'))
  expect(await project.ask('check', 'bad.mjs')).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(
      /✗ things[\s\S]*error no-tie-break[\s\S]*→ Keep the id[\s\S]*1 errors, 1 warnings, 0 notes\./,
    ),
  })
})

test('a warning is not a failure; an unknown sync and the page limit are respected', async () => {
  const project = new Project()
  project.write(
    'good.mjs',
    textOf({
      execute: 'return { changes: all.slice(state?.n ?? 0, 20).map(upsert), hasMore: false, nextState: { n: 20 } }',
      below: ' ',
    }),
  )
  expect(await project.ask('check', 'good.mjs', 'things')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('warning missing-deletes'),
  })
  expect(await project.ask('check', 'good.mjs', 'thing')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Did you mean'),
  })
  expect(await project.ask('check', 'nowhere.mjs')).toMatchObject({ code: 2 })
  project.write('bad.mjs', BAD)
  expect(
    (await project.json('check', 'bad.mjs', '--pages', '2'))['syncs'][0].findings.map(
      ({ finding }: { finding: string }) => finding,
    ),
  ).toContain('unfinished')
})

test('NX3 it writes nothing: no store, no file', async () => {
  const project = Project.withWorker()
  const before = readdirSync(project.folder)
  expect((await project.ask('check', 'worker.ts')).stdout).toContain('people-list')
  expect(readdirSync(project.folder)).toEqual(before)
})

test('the template has no findings', async () => {
  const project = new Project()
  await project.ask('init', 'harbour')
  const { ok, findings, syncs } = await project.json('check', 'harbour/worker.ts')
  expect([ok, findings, ...syncs.map((sync: { findings: unknown[] }) => sync.findings)]).toEqual([true, [], [], []])
})

test('the example has no findings, despite its 503 responses and changing vessels', async () => {
  const server = spawn(process.execPath, [join(ROOT, 'examples/harbour-api/server.mjs'), '0'], { stdio: 'pipe' })
  onTestFinished(() => void server.kill())
  const url = await new Promise<string>((resolve) =>
    server.stdout.on('data', (text: Buffer) => resolve(/http:\S+/.exec(String(text))![0])),
  )
  const project = new Project()
  copyFileSync(join(ROOT, 'examples/harbour-api/worker.mjs'), join(project.folder, 'worker.mjs'))
  const { code, stdout } = await project.run('check', 'worker.mjs', '--json', {
    env: { HARBOUR_URL: url, HARBOUR_TOKEN: 'let-me-in' },
  })
  const { syncs } = JSON.parse(stdout) as { syncs: { findings: unknown[]; changes: number }[] }
  expect([code, ...syncs.map(({ findings }) => findings)]).toEqual([0, [], []])
  expect(syncs[0]!.changes).toBeGreaterThan(450)
})
