import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { Project } from './project.ts'

const server = inject('postgresUrl')
const suite = server === '' ? describe.skip : describe

const MANIFEST = `# The shop.
connector:   files   # from a folder
config: { folder: drop }
streams:
  - id: shop.orders
    key: [id]
    options: { match: "csv$" }
`

suite('destinations add', () => {
  const schema = `added_${process.pid}`
  const drop = (): void =>
    onTestFinished(async () => {
      const client = new pg.Client({ connectionString: server })
      await client.connect()
      await client.query(`drop schema if exists ${schema} cascade`)
      await client.end()
    })
  const filesOf = (project: Project): Record<string, string> =>
    Object.fromEntries(
      readdirSync(project.folder)
        .filter((name) => /^(?:tidemark\.yaml|\.env|worker\.ts|.*\.new)$/.test(name))
        .map((name) => [name, readFileSync(join(project.folder, name), 'utf8')]),
    )
  const withManifest = (): Project => {
    const project = new Project()
    project.write('tidemark.yaml', MANIFEST)
    return project
  }
  const ADD = ['destinations', 'add', 'postgres', 'warehouse', '--set', `url=${server}`, '--set', `schema=${schema}`]

  test('writes the entry to the manifest and the secret to .env, and the destination then runs', async () => {
    drop()
    const project = withManifest()
    const dry = await project.json(...ADD, '--dry-run')
    expect(dry).toMatchObject({
      dry_run: true,
      written: [],
      databases: ['shop.orders'],
      mode: 'mirror',
    })
    expect(filesOf(project)).toEqual({ 'tidemark.yaml': MANIFEST })

    const added = await project.ask(...ADD, '--mode', 'append', '--schedule', '1h', '--databases', 'shop.orders')
    expect(added, added.stderr).toMatchObject({ code: 0 })
    expect(added.stdout).toContain('Added warehouse to .env and tidemark.yaml.')
    expect(filesOf(project)).toEqual({
      'tidemark.yaml': `${MANIFEST}destinations:
  - name: warehouse
    connector: postgres
    config:
      url: \${WAREHOUSE_URL}
      schema: ${schema}
    databases:
      - shop.orders
    mode: append
    schedule: 1h
`,
      '.env': `WAREHOUSE_URL=${server}\n`,
    })
    expect(statSync(join(project.folder, '.env')).mode & 0o077).toBe(0)
    const run = await project.json('destinations', 'run')
    expect(run).toMatchObject({ ok: true, destinations: [{ destination: 'warehouse', error: null }] })
    expect(await project.ask(...ADD)).toMatchObject({ code: 2, stderr: expect.stringContaining('NAME_TAKEN') })
  })

  test.each([
    ['an unknown system', ['postgrse', 'warehouse'], 2, 'Did you mean "postgres"?'],
    ['a name that is not valid', ['postgres', 'a b'], 2, 'NAME_INVALID'],
    [
      'no URL',
      ['postgres', 'warehouse'],
      2,
      'postgres needs --set url=… (or WAREHOUSE_URL in the environment or in .env)',
    ],
    ['a misspelt setting', ['postgres', 'warehouse', '--set', 'shema=x'], 2, 'Did you mean "schema"?'],
    ['a setting without a value', ['postgres', 'warehouse', '--set', 'url'], 2, '--set takes key=value'],
    ['a URL that is none', ['postgres', 'warehouse', '--set', 'url=hunter22'], 2, 'DESTINATION_INVALID'],
    [
      'an unknown database',
      ['postgres', 'warehouse', '--set', `url=${server}`, '--databases', 'shop.order'],
      2,
      'Did you mean "shop.orders"?',
    ],
    [
      'a schedule that is none',
      ['postgres', 'warehouse', '--set', `url=${server}`, '--schedule', 'often'],
      2,
      'SCHEDULE_INVALID',
    ],
    [
      'a server that is not there',
      ['postgres', 'warehouse', '--set', 'url=postgres://etl:hunter22@127.0.0.1:1/x'],
      3,
      'DESTINATION_UNAVAILABLE',
    ],
    ['a variable that is not set', ['postgres', 'warehouse', '--set', 'url=${STOCK_URL}'], 3, 'STOCK_URL is not set'],
  ])('%s changes nothing', async (_, args, code, message) => {
    const project = withManifest()
    const answer = await project.ask('destinations', 'add', ...args)
    expect(answer.stderr).toContain(message)
    expect(answer.code).toBe(code)
    expect(answer.stderr + answer.stdout).not.toContain('hunter22')
    expect(filesOf(project)).toEqual({ 'tidemark.yaml': MANIFEST })
  })

  test('a variable that is set already is used, and another value for it is refused', async () => {
    drop()
    const project = withManifest()
    project.write('.env', `WAREHOUSE_URL=${server}\n`)
    const other = await project.ask('destinations', 'add', 'postgres', 'warehouse', '--set', `url=${server}?a=b`)
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining('.env already has another value') })
    const added = await project.json('destinations', 'add', 'postgres', 'warehouse', '--set', `schema=${schema}`)
    expect(added).toMatchObject({ written: ['tidemark.yaml'], variables: [] })
    expect(filesOf(project)['tidemark.yaml']).toContain('url: ${WAREHOUSE_URL}')
  })

  test('for a worker file it prints the lines to add, which declare the same destination', async () => {
    drop()
    const project = Project.withWorker()
    const before = filesOf(project)
    const answer = await project.ask(...ADD, '--databases', 'people')
    expect(answer, answer.stderr).toMatchObject({ code: 0 })
    expect(answer.stdout).toContain('Add these lines to worker.ts, before its `export default`')
    expect(answer.stdout).toContain('Set WAREHOUSE_URL in .env.')
    expect(answer.stdout).not.toContain(server)
    expect(filesOf(project)).toEqual(before)
    const { code } = await project.json(...ADD, '--databases', 'people')
    project.write('worker.ts', before['worker.ts']!.replace(/^export default/m, `${code as string}\nexport default`))
    project.write('.env', `WAREHOUSE_URL=${server}\n`)
    const listed = await project.run('destinations', 'list', '--json')
    expect(JSON.parse(listed.stdout)).toMatchObject({ destinations: [{ destination: 'warehouse', kind: 'postgres' }] })
  })
})
