import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { matchesPattern } from '../../src/cli/kit/matches-pattern.ts'
import { Project } from './project.ts'

/** Asks bash for the completions of a line. */
async function complete(project: Project, lines: readonly (readonly string[])[]): Promise<string[][]> {
  const { stdout } = await project.ask('completion', 'bash')
  const script = lines.map(
    (words) =>
      `COMP_WORDS=(tidemark ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _tidemark; echo "\${COMPREPLY[@]}"`,
  )
  const file = join(project.folder, 'complete.bash')
  writeFileSync(file, `${stdout}\n${script.join('\n')}\n`)
  const answer = spawnSync('bash', [file], { encoding: 'utf8', cwd: project.folder })
  expect(answer.stderr).toBe('')
  return answer.stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split(' '))
}

test('bash completes verbs, subcommands, options and files', async () => {
  const project = new Project()
  writeFileSync(join(project.folder, 'worker.ts'), '')
  const found = await complete(project, [
    ['sta'],
    ['state', 're'],
    ['run', '--max'],
    ['state', 'get', 'people', '--rev'],
    ['run', 'customers', '--all'],
    ['run', '--file', 'worker'],
  ])
  expect(found).toEqual([
    ['start', 'status', 'state'],
    ['reset', 'rewind'],
    ['--max-pages', '--max-minutes'],
    ['--reveal'],
    ['--allow-deletes'],
    ['worker.ts'],
  ])
})

test('every verb is in the script of each shell, and another shell is refused', async () => {
  const project = new Project()
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { stdout, code } = await project.ask('completion', shell)
    expect(code).toBe(0)
    for (const word of ['backfill', 'destinations', 'rewind', 'all-tenants']) expect(stdout).toContain(word)
  }
  expect(await project.ask('completion', 'tcsh')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('bash, zsh, fish'),
  })
})

test.each([
  ['stripe-customers', 'stripe-*', true],
  ['stripe-customers', '*-customers', true],
  ['stripe-customers', '*', true],
  ['stripe-customers', 's*p*s', true],
  ['stripe-customers', 'stripe', false],
  ['stripe-customers', '*stripe', false],
  ['aba', 'ab*ba', false],
  ['abba', 'ab*ba', true],
  ['a-b', 'a*b*b', false],
])('%s against the pattern %s: %s', (name, pattern, expected) => {
  expect(matchesPattern(name, pattern)).toBe(expected)
})
