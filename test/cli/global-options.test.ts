import { expect, test } from 'vitest'
import { Project } from './project.ts'

const WORKER = `
import { Worker } from 'tidemark'
const worker = new Worker({ name: 'office' })
worker.sync('people', { database: worker.database('people'), mode: 'replace', schedule: 'manual', async execute(state, { log, secrets }) {
  log.debug('asked for a page')
  log.info('read a page')
  return { changes: [{ type: 'upsert', key: 'a', record: { from: process.env.OFFICE, token: secrets.get('TOKEN') === 'of-the-file' } }], hasMore: false }
} })
export default worker
`

test('variables come from the environment, then from --env-file, then from .env', async () => {
  const project = new Project()
  project.write('worker.mjs', WORKER)
  project.write('.env', 'OFFICE=dotenv\nTOKEN=of-dotenv\n')
  project.write('staging.env', 'OFFICE=file\nTOKEN=of-the-file\nTIDEMARK_STORE=sqlite:staging.db\n')
  const read = async (env: Record<string, string>): Promise<unknown> => {
    expect(await project.run('run', '--env-file', 'staging.env', { env })).toMatchObject({ code: 0 })
    const { stdout } = await project.run(
      'query',
      'select "from", token from people',
      '--json',
      '--env-file=staging.env',
    )
    return JSON.parse(stdout)
  }
  expect(await read({})).toMatchObject({ rows: [{ from: 'file', token: 1 }] })
  expect(await read({ OFFICE: 'environment' })).toMatchObject({ rows: [{ from: 'environment', token: 1 }] })
  const missing = await project.run('run', '--env-file', 'nowhere.env')
  expect(missing).toMatchObject({ code: expect.toBeOneOf([2, 9]), stdout: '' })
  // Node 20 reads the option too, and ends the process itself.
  expect(missing.stderr).toMatch(/nowhere\.env.*(?:cannot be read \(ENOENT\)|not found)/)
})

test('--quiet prints no remarks but errors, --verbose and --debug set what is logged', async () => {
  const project = new Project()
  project.write('worker.mjs', WORKER)
  project.write('.env', 'TOKEN=of-dotenv\n')
  const said = async (...flags: string[]): Promise<string> => (await project.run(...flags, 'run')).stderr
  expect(await said('--quiet')).toBe('')
  expect(await said()).toContain('sqlite:')
  expect(await said('--verbose')).toContain('read a page')
  expect(await said('--verbose')).not.toContain('asked for a page')
  expect(await said('--debug')).toContain('asked for a page')
  expect((await project.run('run', 'absent', '--quiet')).stderr).toContain('SYNC_UNKNOWN')
  expect((await project.run('run', '--quiet', '--debug')).stderr).toMatch(/cannot be used with option/)
})
