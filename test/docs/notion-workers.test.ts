import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from '../cli/package.ts'
import { Project, Running } from '../cli/project.ts'
import { json, serve } from '../sources/kit/loopback.ts'

test('docs/guides/notion-workers.md works as written', async () => {
  const guide = readFileSync(join(ROOT, 'docs/guides/notion-workers.md'), 'utf8')
  const orders = [
    { id: 'o1', name: 'First', total: 12.5, paid: true, tags: ['gift', 'fast'], updatedAt: '2026-01-31T12:00:00Z' },
  ]
  const url = await serve((_, response) => json(response, orders))
  const project = new Project()
  symlinkSync(join(ROOT, 'node_modules'), join(project.folder, 'node_modules'))
  project.write('worker.ts', block(guide, 'ts'))
  project.write('.env', `SHOP_URL=${url}\n`)

  const commands = block(guide, 'sh').trim().split('\n')
  expect(commands.length).toBeGreaterThan(3)
  const answers: string[] = []
  for (const command of commands) {
    const [npx, tidemark, ...args] = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(
      ([, quoted, plain]) => quoted ?? plain!,
    )
    expect([npx, tidemark]).toEqual(['npx', 'tidemark'])
    const { code, stdout, stderr } = await project.run(...args)
    expect({ command, code, stderr: code === 0 ? '' : stderr }).toEqual({ command, code: 0, stderr: '' })
    answers.push(stdout)
  }
  expect(answers[2]).toMatch(/o1\s+First\s+o1\s+12\.5\s+1\s+\["gift","fast"\]/)
})

test('examples/notion-worker runs with one command', async () => {
  const { command, folder } = new Project()
  // The script replaces the command of every other test.
  const { code, stdout, stderr } = await new Running(
    { command: join(ROOT, 'examples/notion-worker/run.mjs'), folder } as Project,
    [],
    { env: { TIDEMARK_COMMAND: command } },
  ).ended
  expect({ code, stderr: code === 0 ? '' : stderr }).toEqual({ code: 0, stderr: '' })
  expect(stdout).toMatch(/T2\s+Ticket 2\s+Open\s+\["urgent","billing"\]\s+2026-03-03\s+Grace/)
  expect(stdout).toContain('1 created, 1 updated, 1 deleted')
  expect(stdout).toMatch(/_key {2}Status\nT2\s+Solved\nT26\s+Open\n/)
})

function block(page: string, language: string): string {
  return new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'm').exec(page)![1]!
}
