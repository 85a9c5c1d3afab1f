import { execFileSync, fork } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openStore } from '../../src/stores/open-store.ts'

type Fields = Record<string, unknown>

const root = resolve(import.meta.dirname, '../..')
/** Examples that consist of a worker alone; others have a program of their own, with its own test. */
const examples = readdirSync(join(root, 'examples')).filter(
  (name) =>
    existsSync(join(root, 'examples', name, 'worker.ts')) && !existsSync(join(root, 'examples', name, 'run.mjs')),
)

/** Where a worker reads less than the vendor has, or uses another name. */
const LANDED: Readonly<Record<string, (record: Fields) => Fields>> = {
  'github repositories': ({ __typename, ownerLogin: _login, ...repository }) => repository,
  'github issues': ({ __typename, ...issue }) => issue,
  'linear issues': ({ teamId, ...issue }) => ({ ...issue, team: { id: teamId } }),
}

describe('examples', () => {
  test('there is an example for every vendor', () => {
    expect(examples).toEqual(['airtable', 'github', 'hubspot', 'linear', 'rest', 'salesforce', 'servicenow', 'stripe'])
  })

  test.each(examples)('%s lands the records of its simulated account, before and after it changed', async (name) => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-example-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'store.db')
    const child = fork(join(import.meta.dirname, 'simulate.mjs'), [name, file], { stdio: 'pipe', cwd: root })
    onTestFinished(() => void child.kill('SIGKILL'))
    let said = ''
    child.stdout!.on('data', (text: Buffer) => (said += text))
    child.stderr!.on('data', (text: Buffer) => (said += text))
    const { code, truth } = await new Promise<{ code: number; truth: Record<string, Fields[]> }>((done, fail) => {
      child.once('message', (message) => done(message as { code: number; truth: Record<string, Fields[]> }))
      child.once('exit', () => fail(new Error(said)))
    })
    expect(code, said).toBe(0)
    // The second command reports only the changes in between.
    expect(said.split('$ npx')[2]).toMatch(
      name === 'hubspot' || name === 'servicenow' ? /5 updated|3 deleted/ : /2 created, 5 updated, 3 (?:deleted|swept)/,
    )

    const store = await openStore(`sqlite:${file}`)
    onTestFinished(() => store.close())
    for (const [database, records] of Object.entries(truth)) {
      const landed = LANDED[`${name} ${database}`] ?? ((record: Fields) => record)
      const rows = await store.rows({ database, limit: 1_000 })
      const expected = records.map(landed)
      const keyOf = (record: Fields): string => String(record['id'] ?? record['Id'] ?? record['sys_id'])
      expect(rows.length).toBeGreaterThan(0)
      expect(Object.fromEntries(rows.map(({ key, text }) => [key, JSON.parse(text) as Fields]))).toEqual(
        Object.fromEntries(expected.map((record) => [keyOf(record), record])),
      )
    }
  })

  test.each(examples)('the README of %s explains it, and its first command works', (name) => {
    const [, command] = /```sh\n(.+)\n```/.exec(readFileSync(join(root, 'examples', name, 'README.md'), 'utf8'))!
    expect(command).toBe(`node examples/simulate.mjs ${name}`)
    // All of them are the same except for the name, and were run above.
    if (name !== 'airtable') return
    onTestFinished(() => rmSync(join(root, 'examples', name, '.tidemark'), { recursive: true, force: true }))
    expect(execFileSync('sh', ['-c', command!], { cwd: root, encoding: 'utf8' })).toContain('2 created, 5 updated')
  })

  test('an unknown name lists the existing ones', () => {
    expect(() =>
      execFileSync(process.execPath, [join(root, 'examples/simulate.mjs'), 'sap'], { stdio: 'pipe' }),
    ).toThrow(/Which one\? salesforce, stripe/)
  })
})
