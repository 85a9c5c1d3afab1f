import { Ajv } from 'ajv'
import pg from 'pg'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { renderDestinationSchemas } from '../docs/render-destination-schemas.ts'
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
    const worker = `import { Worker } from 'tidemark'
import { postgres } from 'tidemark/destinations/postgres'
const worker = new Worker({ name: 'office' })
const people = worker.database('people')
worker.sync('people', { database: people, mode: 'replace', schedule: 'manual', execute: async () => ({
  changes: [{ type: 'upsert', key: 'a', record: { name: 'Ana' } }, { type: 'upsert', key: 'b', record: { name: 'Bo' } }],
  hasMore: false }) })
worker.destination('warehouse', postgres({ url: ${JSON.stringify(server)}, schema: '${schema}' }))
export default worker
`
    project.write('worker.ts', worker)
    const schemas = JSON.parse(renderDestinationSchemas()) as { definitions: Record<string, object> }
    /** The document of a verb, which must match its published schema. */
    const documentOf = async (verb: string, ...args: string[]): Promise<Record<string, unknown>> => {
      const document = await project.json('destinations', verb, ...args)
      const validate = new Ajv({ strict: false, allErrors: true }).compile(schemas.definitions[verb]!)
      expect(validate(document) || validate.errors, verb).toBe(true)
      expect(Object.keys(document).filter((name) => !(name in (schemas.definitions[verb] as any).properties))).toEqual(
        [],
      )
      return document
    }
    const listed = async () => ((await documentOf('list')) as { destinations: object[] }).destinations[0]
    expect(await listed()).toMatchObject({
      destination: 'warehouse',
      health: 'INITIALIZING',
      behind: null,
      next: { why: 'schedule' },
      databases: [{ database: 'people', state: 'new' }],
    })
    const run = await project.ask('run')
    expect(run.code, run.stderr).toBe(0)
    expect(run.stdout).toContain('destination warehouse: 2 changes applied')
    const names = async () =>
      (await client.query<{ name: string }>(`select name from ${schema}.people order by _key`)).rows.map((r) => r.name)
    expect(await names()).toEqual(['Ana', 'Bo'])
    expect(await listed()).toMatchObject({
      health: 'HEALTHY',
      behind: 0,
      lag_ms: 0,
      mode: 'mirror',
      kind: 'postgres',
      next: { at: null, why: 'current' },
    })
    const status = await project.ask('status')
    expect(status.stdout).toMatch(
      /warehouse\s+HEALTHY\s+mirror\s+continuous\s+0ms\s+0\s+2 changes applied.*with the next change/,
    )
    expect((await project.json('status'))['destinations']).toEqual([await listed()])

    expect(await documentOf('pause', 'warehouse')).toMatchObject({ signal: 'pause' })
    expect(await listed()).toMatchObject({ health: 'PAUSED', next: { why: 'paused' } })
    expect((await project.ask('destinations', 'run', 'warehouse')).stdout).toContain('not run')
    expect(await documentOf('resume', 'warehouse')).toMatchObject({ signal: 'resume' })

    await client.query(`update ${schema}.people set name = 'changed'`)
    expect((await project.ask('destinations', 'resync', 'warehouse')).code).toBe(2)
    expect(await names()).toEqual(['changed', 'changed'])
    expect(await documentOf('resync', 'warehouse', '--yes')).toMatchObject({ resync: ['people'] })
    expect(await documentOf('run', 'warehouse')).toMatchObject({ ok: true, destinations: [{ changes: 2 }] })
    expect(await names()).toEqual(['Ana', 'Bo'])

    expect((await project.ask('destinations', 'pause', 'warehose')).stderr).toContain('DESTINATION_UNKNOWN')
    expect((await project.ask('destinations', 'remove', 'warehouse', '--drop')).code).toBe(2)

    // A constraint of the user rejects one record: the status names it, and the destination waits before it.
    await client.query(`alter table ${schema}.people add constraint short check (length(name) < 8)`)
    project.write('worker.ts', worker.replace("'Bo' }", "'Bo-Katherine' }"))
    const failing = await project.run('run')
    expect(failing.code).toBe(3)
    const failed = (await project.run('destinations', 'list', '--json')).stdout
    expect(JSON.parse(failed)).toMatchObject({
      destinations: [
        {
          health: 'ERROR',
          behind: 1,
          error: { code: 'DESTINATION_FAILED', message: expect.stringContaining('key "b"') },
          databases: [{ state: 'failed', failure: { first_sequence: 3, last_sequence: 3, key: 'b' } }],
        },
      ],
    })
    const shown = await project.run('status')
    expect(shown.stdout).toMatch(
      /warehouse\s+ERROR[^]*✗ warehouse: .*DESTINATION_FAILED.*database people, sequence 3, key "b"/,
    )
    await client.query(`alter table ${schema}.people drop constraint short`)
    expect((await project.run('destinations', 'run')).code).toBe(0)
    expect(await names()).toEqual(['Ana', 'Bo-Katherine'])

    expect(await documentOf('remove', 'warehouse', '--drop', '--yes')).toMatchObject({ drops: ['people'] })
    await expect(names()).rejects.toThrow('does not exist')
  })
})
