import pg from 'pg'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { Project } from './project.ts'

const server = inject('postgresUrl')
const suite = server === '' ? describe.skip : describe

suite('destinations', () => {
  test('run copies after the syncs; list, pause, resync and remove manage the copy', async () => {
    const schema = `cli_${process.pid}`
    const client = new pg.Client({ connectionString: server })
    await client.connect()
    onTestFinished(async () => {
      await client.query(`drop schema if exists ${schema} cascade`)
      await client.end()
    })
    const project = new Project()
    project.write(
      'worker.ts',
      `import { Worker } from 'tidemark'
import { postgres } from 'tidemark/destinations/postgres'
const worker = new Worker({ name: 'office' })
const people = worker.database('people')
worker.sync('people', { database: people, mode: 'replace', schedule: 'manual', execute: async () => ({
  changes: [{ type: 'upsert', key: 'a', record: { name: 'Ana' } }, { type: 'upsert', key: 'b', record: { name: 'Bo' } }],
  hasMore: false }) })
worker.destination('warehouse', postgres({ url: ${JSON.stringify(server)}, schema: '${schema}' }))
export default worker
`,
    )
    const listed = async () =>
      (JSON.parse((await project.ask('destinations', 'list', '--json')).stdout) as { destinations: object[] })
        .destinations[0]
    expect(await listed()).toMatchObject({ destination: 'warehouse', status: 'never run', behind: null })
    const run = await project.ask('run')
    expect(run.code, run.stderr).toBe(0)
    expect(run.stdout).toContain('destination warehouse: 2 changes applied')
    const names = async () =>
      (await client.query<{ name: string }>(`select name from ${schema}.people order by _key`)).rows.map((r) => r.name)
    expect(await names()).toEqual(['Ana', 'Bo'])
    expect(await listed()).toMatchObject({ status: 'ok', behind: 0, mode: 'mirror', kind: 'postgres' })

    expect((await project.ask('destinations', 'pause', 'warehouse')).code).toBe(0)
    expect(await listed()).toMatchObject({ status: 'paused' })
    expect((await project.ask('destinations', 'run', 'warehouse')).stdout).toContain('not run')
    expect((await project.ask('destinations', 'resume', 'warehouse')).code).toBe(0)

    await client.query(`update ${schema}.people set name = 'changed'`)
    expect((await project.ask('destinations', 'resync', 'warehouse')).code).toBe(2)
    expect(await names()).toEqual(['changed', 'changed'])
    expect((await project.ask('destinations', 'resync', 'warehouse', '--yes')).code).toBe(0)
    expect((await project.ask('destinations', 'run', 'warehouse', '--json')).code).toBe(0)
    expect(await names()).toEqual(['Ana', 'Bo'])

    expect((await project.ask('destinations', 'pause', 'warehose')).stderr).toContain('DESTINATION_UNKNOWN')
    expect((await project.ask('destinations', 'remove', 'warehouse', '--drop')).code).toBe(2)
    expect((await project.ask('destinations', 'remove', 'warehouse', '--drop', '--yes')).code).toBe(0)
    await expect(names()).rejects.toThrow('does not exist')
  })
})
