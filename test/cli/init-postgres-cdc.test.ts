import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { SharedPostgres } from '../../simulators/src/postgres/shared-postgres.ts'
import { EmbeddedPostgres } from '../simulators/postgres/embedded-postgres.ts'
import { ROOT } from './package.ts'
import { Project } from './project.ts'

let project: Project
let server: EmbeddedPostgres

beforeEach(async () => {
  project = new Project()
  server = new EmbeddedPostgres(join(project.folder, 'postgres'))
  onTestFinished(() => server.remove())
  expect(await project.run('init', '--source', 'postgres-cdc', '--yes')).toMatchObject({ code: 0 })
})

test('the project has the server as a dev dependency in the tested version', () => {
  const manifestIn = (folder: string): { devDependencies: Record<string, string> } =>
    JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as never
  expect(manifestIn(project.folder).devDependencies).toEqual({
    'embedded-postgres': manifestIn(ROOT).devDependencies['embedded-postgres'],
  })
})

test('it runs immediately, two concurrent commands share the server, and the next run lands only new writes', async () => {
  const [ran, shown] = await Promise.all([project.run('run'), project.run('preview', 'orders-backfill')])
  expect(ran).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/✓ orders-backfill .*1\d\d created[^]*✓ orders /),
  })
  expect(shown).toMatchObject({ code: 0, stdout: expect.stringMatching(/^upsert /m) })
  await server.gone()

  const person = await SharedPostgres.join(server.folder, new AbortController().signal, () => {})
  await person.query(
    "insert into orders (id, customer, item) values (9001, 'Me', 'oar'), (9002, 'Me', 'pump'); delete from orders where id = 9002; update orders set customer = 'Me' where id = 1",
  )
  await person.leave()
  await server.gone()
  // Which takes nothing away from the next run, such as the slot that it reads from.
  expect(await project.run('check', 'worker.ts')).toMatchObject({ code: 0 })
  const {
    syncs: [delta, ...others],
  } = await project.json('run')
  expect(others).toEqual([])
  expect(delta).toMatchObject({ error: null, counts: { unchanged: 0, swept: 0 } })
  expect(delta.counts.created + delta.counts.updated).toBeLessThan(60)
  expect((await project.json('query', "select id from orders where customer = 'Me' order by id")).rows).toEqual([
    { id: 1 },
    { id: 9001 },
  ])
})

test('Ctrl-C and kill -9 both end the server, and the next run continues', async () => {
  const first = project.start('start', '--no-api')
  await first.says(/"cycle ended".*"orders",/)
  expect(server.pid).not.toBeNull()
  first.process.kill('SIGINT')
  expect(await first.ended).toMatchObject({ code: 0 })
  await server.gone()

  const second = project.start('start', '--no-api')
  await second.says(/"cycle ended".*"orders",/)
  second.process.kill('SIGKILL')
  await server.gone()
  expect(await project.run('run')).toMatchObject({ code: 0, stdout: expect.stringContaining('✓ orders ') })
  await server.gone()
})
