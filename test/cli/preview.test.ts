import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { Project } from './project.ts'

describe('NX3 preview shows one page and writes nothing', () => {
  test('on a fresh project no store is created: with a state, without one, and from the start', async () => {
    const project = Project.withWorker()
    const before = everythingIn(project.folder)
    for (const args of [[], ['--state', '{"next":2}'], ['--from-start']])
      expect(await project.ask('preview', 'people-list', ...args)).toMatchObject({ code: 0 })
    expect(everythingIn(project.folder)).toEqual(before)
  })

  test('a stored sync is read from its state; rows, states, pacers, log and cycles do not change', async () => {
    const project = Project.withWorker()
    await project.ask('run', 'people-list', '--max-pages', '1')
    await project.ask('run', 'room-changes')
    const before = await contentOf(project)
    expect(await project.json('preview', 'people-list')).toMatchObject({
      asked: { from: 'inflight' },
      shown: [{ key: 'p0003' }, { key: 'p0004' }],
    })
    expect(await project.json('preview', 'room-changes')).toMatchObject({
      asked: { from: 'committed' },
      shown: [{ key: 'r2' }],
    })
    expect(await project.json('preview', 'people-list', '--from-start')).toMatchObject({
      asked: { from: 'start' },
      shown: [{ key: 'p0001' }, { key: 'p0002' }],
    })
    expect(await contentOf(project)).toEqual(before)
  })

  test('an unused tenant is not created either', async () => {
    const project = Project.withWorker()
    await project.ask('run')
    const before = await contentOf(project)
    await project.ask('preview', 'people-list', '--tenant', 'stranger')
    await project.ask('status', '--tenant', 'stranger')
    expect(await contentOf(project)).toEqual(before)
  })

  test('it continues page by page with the state it showed', async () => {
    const project = Project.withWorker()
    const first = await project.json('preview', 'people-list', '--reveal')
    const second = await project.json('preview', 'people-list', '--state', JSON.stringify(first['next_state'].value))
    expect(second['shown'].map(({ key }: { key: string }) => key)).toEqual(['p0003', 'p0004'])
    const piped = await project.run('preview', 'people-list', '--state', '-', '--json', { stdin: '{"next":4}' })
    expect(JSON.parse(piped.stdout)).toMatchObject({ has_more: false, shown: [{ key: 'p0005' }] })
  })

  test('records that would be quarantined are reported', async () => {
    const project = Project.withWorker({ people: [{ id: 'p1', name: 'Nobody', bad: true }] })
    expect(await project.json('preview', 'people-list')).toMatchObject({
      landable: 0,
      quarantined: [{ key: 'p1', code: 'SCHEMA_MISMATCH' }],
    })
  })

  test('a source that fails is an error, and Ctrl-C ends a slow one', async () => {
    const project = Project.withWorker({ failure: { page: 1, message: 'the office is closed' } })
    expect(await project.ask('preview', 'people-list')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the office is closed'),
    })
    project.source({ slowMs: 60_000 })
    const running = project.start('preview', 'people-list')
    await running.says('tenant default')
    running.process.kill('SIGINT')
    expect(await running.ended).toMatchObject({ code: 130 })
  })
})

function everythingIn(folder: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .toSorted()
      .map((file) => {
        const path = join(folder, file)
        return [
          file,
          statSync(path).isFile() ? createHash('sha256').update(readFileSync(path)).digest('hex') : 'folder',
        ]
      }),
  )
}

/** Every table of the store, row by row. */
async function contentOf(project: Project): Promise<unknown> {
  const { rows } = await project.json(
    'query',
    "select name from sqlite_schema where type = 'table' and name like 'tidemark%' order by name",
  )
  const tables: Record<string, unknown> = {}
  for (const { name } of rows as { name: string }[])
    tables[name] = (await project.json('query', `select * from ${name}`, '--limit', '0'))['rows']
  expect(Object.keys(tables).length).toBeGreaterThan(8)
  return tables
}
