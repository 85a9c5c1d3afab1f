import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Project } from './project.ts'

const CANARY = 'canary-c0lumn'

const worker = (columns: string, mode = 'replace'): string => `
import { Worker } from 'tidemark'
const worker = new Worker({ name: 'office' })
const people = worker.database('people'${columns === '' ? '' : `, { columns: ${columns} }`})
const person = (n) => ({ n, email: '${CANARY}-email', iban: '${CANARY}-iban', phone: '${CANARY}-phone', note: '${CANARY}-note', address: { iban: '${CANARY}-nested' } })
worker.sync('people', { database: people, mode: '${mode}', schedule: 'manual', limits: { retriesMax: 0 }, execute: async () => ({
  changes: [
    { type: 'upsert', key: '1', record: person(1) },
    { type: 'upsert', key: 'bad', record: { ...person(2), n: NaN } },
    { type: 'upsert', key: 'blocked', record: { ...person(3), address: '${CANARY}-blocked' } },
    { type: 'invalid', key: 'invalid', reason: 'not a person', raw: person(4) },
  ], hasMore: false, nextState: { n: 1 } }) })
export default worker
`
const RULES = `{ hash: ['email'], encrypt: ['iban', 'address.iban'], mask: { phone: 4 }, drop: ['note'] }`

/** Every file of the folder except the worker, which contains the values itself. */
function filesOf(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith('worker'))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n')
}

test('no command and no file shows a value that the rules hide; --reveal shows encrypted ones, with an audit entry', async () => {
  const project = new Project()
  project.write('worker.mjs', worker(RULES))
  let shown = ''
  const ask = async (...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> => {
    const answer = await project.ask(...args, { env: { TIDEMARK_LOG: 'debug' } })
    shown += answer.stdout + answer.stderr
    return answer
  }
  await ask('preview', 'people')
  await ask('run', 'people')
  for (const args of [
    ['preview', 'people', '--json'],
    ['preview', 'people', '--reveal'],
    ['run', 'people', '--json'],
    ['status'],
    ['doctor'],
    ['check', 'people'],
    ['query', 'select * from people'],
    ['query', 'select * from people', '--json'],
    ['quarantine', 'list'],
    ['quarantine', 'show', '1', '--reveal'],
    ['quarantine', 'show', '2', '--reveal'],
    ['quarantine', 'show', '3', '--reveal'],
    ['quarantine', 'replay', '--yes'],
    ['why', 'people', '1'],
    ['export', 'people', '--to', 'out/people.ndjson'],
    ['schema', 'show', 'people'],
    ['types'],
    ['state', 'log', 'people'],
  ])
    await ask(...args)
  expect(shown).toContain('encrypted.1.')
  expect(shown.replaceAll(/"?error"?.*worker\.mjs.*/g, '')).not.toContain(CANARY)
  expect(filesOf(project.folder)).not.toContain(CANARY)

  const sql = 'select iban, address, email from people'
  for (const args of [['--reveal'], ['--reveal', '--reason', ' '], ['--reason', 'audit']])
    expect(await project.ask('query', sql, ...args)).toMatchObject({ code: 2, stdout: '' })
  const revealed = await project.ask('query', sql, '--reveal', '--reason', 'a refund', '--json')
  const [row] = (JSON.parse(revealed.stdout) as { rows: Record<string, string>[] }).rows
  expect(row).toMatchObject({ iban: `${CANARY}-iban`, email: expect.stringMatching(/^[0-9a-f]{64}$/) as string })
  expect(JSON.stringify(row?.['address'])).toContain(`${CANARY}-nested`)
  expect(filesOf(project.folder)).toContain('people.iban (1), people.address.iban (1): a refund')
  expect(filesOf(project.folder)).not.toContain(CANARY)
})

test('status and doctor name the database whose rules have changed, and the command that reads its records again', async () => {
  const project = new Project()
  project.write('worker.mjs', worker(''))
  await project.ask('run', 'people')
  expect((await project.ask('status')).stdout).not.toContain('column rules')
  project.write('changed.mjs', worker(RULES))
  const file = ['--file', 'changed.mjs']
  const text = 'the column rules of people have changed; its rows follow them after people has read every record again'
  for (const verb of ['status', 'doctor']) {
    const { stdout } = await project.ask(verb, ...file)
    expect(stdout).toContain(text)
    expect(stdout).toContain('npx tidemark trigger people')
  }
  expect(JSON.parse((await project.ask('status', '--json', ...file)).stdout)).toMatchObject({
    column_rules: [
      {
        database: 'people',
        sync: 'people',
        command: 'npx tidemark trigger people',
        rewrite: 'npx tidemark columns apply people',
      },
    ],
  })
  await project.ask('run', 'people', ...file)
  // The row of the record that is quarantined now was written before the rules.
  const { stdout } = await project.ask('status', ...file)
  expect(stdout).not.toContain('have changed')
  expect(stdout).toContain('do not follow its column rules, because their records are quarantined: 1.')
  expect((await project.ask('query', "select * from people where _key = '1'")).stdout).not.toContain(CANARY)
  project.write('incremental.mjs', worker(`{ drop: ['email'] }`, 'incremental'))
  expect((await project.ask('doctor', '--file', 'incremental.mjs')).stdout).toContain('npx tidemark state reset people')
})

test('columns apply rewrites the stored rows without the source; why names it, and what is lost is refused', async () => {
  const project = new Project()
  const version = (columns: string, execute = 'page'): string => `
import { Worker } from 'tidemark'
const worker = new Worker({ name: 'office' })
const people = worker.database('people'${columns === '' ? '' : `, { columns: ${columns} }`})
const page = async () => ({ changes: [1, 2].map((n) => ({ type: 'upsert', key: String(n), record: { n, email: n + '@b.c', note: '${CANARY}' } })), hasMore: false })
const down = async () => { throw new Error('the source must not be read') }
worker.sync('people', { database: people, mode: 'replace', schedule: 'manual', execute: ${execute} })
export default worker
`
  project.write('worker.mjs', version(''))
  await project.ask('run', 'people')
  const rules = `{ hash: ['email'], drop: ['note'], rename: { n: 'number' } }`
  project.write('changed.mjs', version(rules, 'down'))
  const file = ['--file', 'changed.mjs']
  for (const verb of ['status', 'doctor'])
    expect((await project.ask(verb, ...file)).stdout).toContain('npx tidemark columns apply people')
  expect(await project.ask('columns', 'plan', 'people', ...file)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('2 of 2 rows of people change') as string,
  })
  expect(await project.ask('columns', 'apply', 'people', ...file)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Add --yes') as string,
  })
  expect((await project.ask('query', 'select note from people')).stdout).toContain(CANARY)
  const applied = await project.ask('columns', 'apply', 'people', '--yes', '--json', ...file)
  expect(JSON.parse(applied.stdout)).toMatchObject({ applied: true, syncs: [{ sync: 'people', rows: 2, changed: 2 }] })
  expect((await project.ask('query', 'select number, email from people')).stdout).not.toContain('@b.c')
  expect((await project.ask('status', ...file)).stdout).not.toContain('column rules')
  expect((await project.ask('why', 'people', '1')).stdout).toContain('rewritten by column rules')

  project.write('wanted.mjs', version(`{ rename: { n: 'number' } }`, 'down'))
  const refused = await project.ask('columns', 'apply', 'people', '--yes', '--file', 'wanted.mjs')
  expect(refused.code).toBe(2)
  expect(refused.stderr).toContain('2 rows: note was removed by `drop`.')
  expect(refused.stderr).toContain('Run `npx tidemark backfill people` to read it again.')
  expect((await project.ask('status', '--file', 'wanted.mjs')).stdout).not.toContain('columns apply')
})
