import { randomBytes } from 'node:crypto'
import { expect, inject, onTestFinished, test } from 'vitest'
import { runSelect } from '../../src/stores/run-select.ts'
import { locateStore } from '../../src/stores/drivers.ts'
import { people, Project } from '../cli/project.ts'
import { createDatabase, dropDatabase } from '../setup/postgres-server.ts'
import { connect } from './agent.ts'

test('on PostgreSQL an agent asks the same questions, and sees its own tenant alone', async () => {
  const server = inject('postgresUrl')
  const url = await createDatabase(server)
  onTestFinished(() => dropDatabase(server, url))
  const project = Project.withWorker({ people: people(5) })
  project.write('.env', `TIDEMARK_STORE=${url}\nTIDEMARK_KEY=${randomBytes(32).toString('base64')}\n`)
  expect(await project.json('run', '--tenant', 'acme')).toMatchObject({ ok: true })
  project.source({ people: [...people(3), { id: "o'brien", name: '\\x27; drop table x; --' }] })
  expect(await project.json('run')).toMatchObject({ ok: true })
  const { agent, call, raw } = await connect(project)
  expect((await call('list_databases'))['databases']).toMatchObject([
    { name: 'people', rows: 4 },
    { name: 'rooms', rows: 1 },
  ])
  const rows = async (given: object): Promise<unknown> =>
    (await call('query_records', { database: 'people', ...given }))['rows']
  expect(
    await rows({ columns: ['_key'], where: [{ column: 'name', is: '=', value: '\\x27; drop table x; --' }] }),
  ).toEqual([{ _key: "o'brien" }])
  expect(await rows({ columns: ['_key'], where: [{ column: 'name', is: 'contains', value: 'son 2' }] })).toEqual([
    { _key: 'p0002' },
  ])
  expect(
    await rows({ aggregates: [{ function: 'count' }], where: [{ column: '_key', is: '>=', value: 'p' }] }),
  ).toEqual([{ count: 3 }])
  expect(
    (await call('query_records', { database: 'rooms', aggregates: [{ function: 'max', column: 'floor' }] }))['rows'],
  ).toEqual([{ 'max floor': 1 }])
  expect((await call('read_changes', { after: 0 }))['changes']).toHaveLength(5)
  expect(
    await raw('query_records', { database: 'people', where: [{ column: 'name', is: '=', value: 5 }] }),
  ).toMatchObject({ isError: true, text: expect.stringMatching(/^ARGUMENT_INVALID: PostgreSQL: /) as unknown })
  expect(await call('status')).toMatchObject({
    tenant: 'default',
    syncs: [{ health: 'HEALTHY' }, { health: 'HEALTHY' }],
  })
  await agent.close()
  await expect(
    runSelect(locateStore(url, '/'), 'select pg_sleep(60)', { limit: 1, tenant: 'default', deadlineMs: 50 }),
  ).rejects.toMatchObject({ code: 'QUERY_TOO_LONG' })

  const acme = await connect(project, '--tenant', 'acme')
  expect((await acme.call('query_records', { database: 'people', columns: ['_key'] }))['rows']).toHaveLength(5)
  expect(await acme.call('get_record', { database: 'people', key: "o'brien" })).toMatchObject({ record: null })
  await acme.agent.close()
})
