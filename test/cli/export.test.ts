import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { expectGolden } from './golden.ts'
import { people, Project } from './project.ts'

test('export: a database, only the changes since, and the log', async () => {
  const project = Project.withWorker()
  await project.ask('run', 'people-list')
  expectGolden('export', project, await project.ask('export', 'people', '--to', 'out/people.csv', '--json'))
  expect(readFileSync(join(project.folder, 'out/people.csv'), 'utf8').split('\n')).toHaveLength(7)
  await project.ask('export', 'people', '--to', 'out/since.ndjson', '--since-last')
  project.source({ people: people(6) })
  await project.ask('run', 'people-list')
  expectGolden(
    'export-since-last',
    project,
    await project.ask('export', 'people', '--to', 'out/since.ndjson', '--since-last', '--json'),
  )
  const nothing = await project.ask('export', 'people', '--to', 'out/since.ndjson', '--since-last')
  expect(nothing).toMatchObject({ code: 0, stdout: 'No changes since the last export.\n' })
  expect(await project.ask('export', 'log', '--to', 'out/log.parquet')).toMatchObject({
    code: 0,
    stdout: 'Wrote 6 rows to out/log.parquet.\n',
  })
  expect(readdirSync(join(project.folder, 'out')).toSorted()).toEqual([
    'log.parquet',
    'people.csv',
    'since.0-5.ndjson',
    'since.5-6.ndjson',
    'since.ndjson.position',
  ])
})

test('export: a missing database or an unknown file extension is refused', async () => {
  const project = Project.withWorker()
  expect(await project.ask('export', 'people', '--to', 'people.csv')).toMatchObject({ code: 3 })
  await project.ask('run', 'people-list')
  expectGolden('export-unknown', project, await project.ask('export', 'nobody', '--to', 'people.csv', '--json'))
  expect(await project.ask('export', 'people', '--to', 'people.xlsx')).toMatchObject({ code: 2 })
})
