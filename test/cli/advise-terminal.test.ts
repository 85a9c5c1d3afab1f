import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Project } from './project.ts'

/** On a terminal of its own, which `script` makes; types the next line whenever it is asked for one. */
function typed(project: Project, lines: readonly string[]): Promise<{ code: number | null; shown: string }> {
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(
    'script',
    ['-qec', `${process.execPath} ${project.command} advise --out worker.ts`, '/dev/null'],
    { cwd: project.folder, env: { PATH, HOME, TERM: 'xterm', NO_COLOR: '1' }, stdio: 'pipe' },
  )
  onTestFinished(() => void child.kill('SIGKILL'))
  const left = [...lines]
  let [shown, answered] = ['', 0]
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text
    const prompts = shown.match(/(?:1–\d+|\n[^\n]*30): /g)?.length ?? 0
    while (answered < prompts && left.length > 0) {
      answered++
      child.stdin.write(left.shift()!)
    }
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, shown }))
  })
}

test('on a terminal it prompts, repeats a question after an invalid answer, and writes the worker', async () => {
  const project = new Project()
  const { code, shown } = await typed(project, ['10\n', 'nonsense\n', '1\n', '1\n', '2\n', '1\n', '20\n'])
  expect(shown).toContain('The answer to "changes" is "nonsense"')
  expect(shown).toMatch(/delta\s+eventFeed/)
  expect(code).toBe(0)
  expect(readFileSync(join(project.folder, 'worker.ts'), 'utf8')).toMatch(/kind: 'events'[\s\S]*lagMs: 20_000/)
})

test('Ctrl-C and Ctrl-D cancel the prompts, and nothing is written', async () => {
  for (const key of ['\u0003', '\u0004']) {
    const project = new Project()
    const { code, shown } = await typed(project, ['10\n', key])
    expect(shown).toContain('CANCELLED')
    expect(code).toBe(130)
    expect(project.has('worker.ts')).toBe(false)
  }
})
