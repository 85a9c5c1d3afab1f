import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { QUESTIONS } from '../../src/advisor/index.ts'
import { expectGolden } from './golden.ts'
import { Project } from './project.ts'

const TIMESTAMPS = {
  api: 'other',
  changes: 'timestamp',
  deletes: 'elsewhere',
  paging: 'token',
  order: 'time-and-id',
  http: 'other',
  lagSeconds: 45,
}

describe('advise', () => {
  test('its documents: a pair in code, a known API, the questions', async () => {
    const project = new Project()
    expectGolden(
      'advise',
      project,
      await project.run('advise', '--answers', '-', '--json', { stdin: JSON.stringify(TIMESTAMPS) }),
    )
    expectGolden('advise-known', project, await project.run('advise', '--answer', 'api=stripe', '--json'))
    expectGolden('advise-questions', project, await project.run('advise', '--questions', '--json'))
  })

  test('answers come from a file and from flags, which take precedence; a missing number gets its default', async () => {
    const project = new Project()
    project.write('answers.json', JSON.stringify({ ...TIMESTAMPS, lagSeconds: undefined, deletes: 'ignore' }))
    const document = await project.json('advise', '--answers', 'answers.json', '--answer', 'deletes=reported')
    expect(document).toMatchObject({
      answers: { ...TIMESTAMPS, deletes: 'reported', lagSeconds: 30 },
      lag_ms: 30_000,
      deletes: 'reported',
      delta: { strategy: 'keyset' },
    })
  })

  test('the worker is written to --out, loads, and is not overwritten', async () => {
    const project = new Project()
    const args = [
      'advise',
      '--answer',
      'api=other',
      '--answer',
      'changes=none',
      '--answer',
      'paging=page',
      '--answer',
      'http=plain',
      '--answer',
      'size=small',
      '--out',
      'worker.ts',
    ]
    const answer = await project.run(...args)
    expect(answer).toMatchObject({ code: 0, stdout: expect.stringContaining('worker.ts') })
    expect(answer.stdout).toMatch(
      /pageNumber, state \{page:number,pass:object\}[\s\S]*changes = none: Read the whole list every time/,
    )
    expect((await project.json('status'))['syncs']).toMatchObject([{ sync: 'items', mode: 'replace' }])
    project.write('worker.ts', 'mine')
    expect(await project.run(...args)).toMatchObject({ code: 2, stderr: expect.stringContaining('already exists') })
    expect(readFileSync(join(project.folder, 'worker.ts'), 'utf8')).toBe('mine')
    expect(await project.run(...args, '--force')).toMatchObject({ code: 0 })
    expect(readFileSync(join(project.folder, 'worker.ts'), 'utf8')).toContain('export default worker')
  })

  test.each([
    [[], '"api" is not answered'],
    [['--answer', 'api=other'], 'one of events, timestamp, sync-token, newest-first, none'],
    [['--answer', 'apy=other'], 'Did you mean'],
    [['--answer', 'api=xero'], 'one of salesforce'],
    [['--answer', 'api'], 'name=value'],
    [['--answer', 'api=stripe', '--answer', 'size=small'], 'has no effect'],
    [
      [
        '--answer',
        'api=other',
        '--answer',
        'changes=events',
        '--answer',
        'deletes=reported',
        '--answer',
        'paging=token',
        '--answer',
        'http=plain',
        '--answer',
        'lagSeconds=5',
      ],
      'from 10 to 3600',
    ],
    [
      ['--answer', 'api=other', '--answer', 'changes=newest-first', '--answer', 'deletes=reported'],
      'one of matter, ignore',
    ],
    [['--answers', '-'], 'are not valid JSON'],
    [['--answers', 'nowhere.json'], 'are not valid JSON'],
  ])('without a terminal, %j is refused with the option to add', async (args, words) => {
    const { code, stdout } = await new Project().run('advise', ...args, '--json')
    expect(code).toBe(2)
    expect(JSON.parse(stdout)).toMatchObject({
      error: { code: 'ARGUMENT_INVALID', message: expect.stringContaining(words) },
    })
  })

  test('the guide names every question and every answer', () => {
    const guide = readFileSync(join(import.meta.dirname, '../../docs/guides/choose-a-strategy.md'), 'utf8')
    for (const question of QUESTIONS) {
      expect(guide).toContain(`\`${question.name}\``)
      if (question.kind === 'choice')
        for (const { value } of question.choices) expect(guide, question.name).toContain(`\`${value}\``)
    }
  })
})
