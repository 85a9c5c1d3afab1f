import { hostname } from 'node:os'
import { describe, expect, test } from 'vitest'
import { people, Project } from './project.ts'

describe('start runs every sync on its schedule, until stopped', () => {
  test('N17 a manual sync runs only when it is triggered; SIGTERM ends it in order', async () => {
    const project = Project.withWorker()
    project.write('worker.ts', SCHEDULED)
    const service = project.start('start', '--json')
    await service.says(/"event":"ended".*"sync":"eager"/)
    expect(service.stdout).not.toMatch(/"event":"started".*"sync":"patient"/)
    await project.run('trigger', 'patient')
    await service.says(/"event":"started".*"sync":"patient","why":"trigger"/)
    await service.says(/"event":"ended".*"sync":"patient"/)
    service.process.kill('SIGTERM')
    expect(await service.ended).toMatchObject({ code: 0 })
  })

  test('XA10 it stops within the page, releases its leases, and unfinished cycles resume later', async () => {
    const project = Project.withWorker({ people: people(100), slowMs: 100 })
    await project.run('trigger', 'people-list')
    const service = project.start('start')
    await service.says('"message":"cycle started"')
    service.process.kill('SIGINT')
    const { code, stdout, stderr } = await service.ended
    expect(code).toBe(0)
    expect(stdout).toMatch(/people-list +replace +manual +people/)
    for (const line of stderr
      .trim()
      .split('\n')
      .filter((text) => text.startsWith('{')))
      expect(JSON.parse(line)).toMatchObject({
        time: expect.any(String),
        level: expect.any(String),
        message: expect.any(String),
      })
    const [standing] = (await project.json('status'))['syncs']
    expect(standing).toMatchObject({ held_by: null, unfinished: { cycle: expect.any(Number) } })
  })

  test('status shows the runner of each sync, its host, and the remaining lease', async () => {
    const project = Project.withWorker({ people: people(2_000), slowMs: 500 })
    await project.run('trigger', 'people-list')
    const service = project.start('start')
    await service.says('"message":"cycle started"')
    const {
      syncs: [standing],
    } = await project.json('status')
    const { pid } = service.process
    expect(standing).toMatchObject({
      held_by: expect.stringContaining(`:${pid}:`),
      runner: { host: hostname(), pid, since: expect.any(String), gone: false },
    })
    expect(standing.runner.lease_left_ms).toBeGreaterThan(0)
    expect((await project.run('status')).stdout).toMatch(
      new RegExp(`people-list: run by process ${pid} on .*, lease acquired .*, expires in \\d+s`),
    )
    service.process.kill('SIGKILL')
    await service.ended
    expect((await project.json('status'))['syncs'][0]).toMatchObject({ runner: { pid, gone: true } })
    expect((await project.run('status')).stdout).toContain('is abandoned; the next run takes over.')
  })

  test('RX9 the log lines of a cycle have its tenant, sync, number and result', async () => {
    const project = Project.withWorker()
    project.write('worker.ts', SCHEDULED)
    const service = project.start('start', '--no-api')
    await service.says('"stopReason":"complete"')
    service.process.kill('SIGTERM')
    const lines = (await service.ended).stderr
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines.find(({ stopReason }) => stopReason === 'complete')).toMatchObject({
      time: expect.any(String) as string,
      level: 'info',
      tenant: 'default',
      worker: expect.any(String) as string,
      sync: expect.any(String) as string,
      cycle: expect.any(Number) as number,
      pages: expect.any(Number) as number,
      created: expect.any(Number) as number,
      ms: expect.any(Number) as number,
    })
  })

  test('TIDEMARK_LOG sets the log level', async () => {
    const project = Project.withWorker()
    project.write('worker.ts', SCHEDULED)
    project.write('.env', 'TIDEMARK_LOG=error\n')
    const service = project.start('start', '--json')
    await service.says(/"event":"ended"/)
    service.process.kill('SIGTERM')
    expect((await service.ended).stderr).toBe('')
  })
})

describe('start for many tenants', () => {
  test('Z14 runs the syncs of current and future tenants with their own secrets; status shows them all', async () => {
    const project = Project.withWorker()
    project.write('worker.ts', SECRETIVE)
    project.write('.env', 'WHO=everybody\nWHO__acme=acme itself\n')
    await project.run('trigger', 'eager', '--tenant', 'acme')
    const service = project.start('start', '--all-tenants', '--no-api', '--json')
    await service.says(/"event":"ended".*"tenant":"default"/)
    await service.says(/"event":"ended".*"tenant":"acme"/)
    await project.run('trigger', 'eager', '--tenant', 'late')
    await service.says(/"event":"ended".*"tenant":"late"/)
    service.process.kill('SIGTERM')
    expect(await service.ended).toMatchObject({ code: 0 })
    expect(service.stdout).toContain('"tenants":"all"')
    const { tenants } = await project.json('status', '--all-tenants')
    expect(tenants).toMatchObject(
      ['acme', 'default', 'late'].map((tenant) => ({ tenant, syncs: [{ sync: 'eager', health: 'HEALTHY' }] })),
    )
    expect((await project.run('status', '--all-tenants')).stdout).toMatch(
      /tenant acme\n[^]*tenant default\n[^]*tenant late\n/,
    )
    for (const [tenant, who] of [
      ['acme', 'acme itself'],
      ['default', 'everybody'],
    ]) {
      expect(
        (await project.run('query', `select * from ${tenant === 'default' ? 'things' : `${tenant}__things`}`)).stdout,
      ).toContain(who)
    }
  })

  test('--tenant accepts several tenants, and only their syncs run', async () => {
    const project = Project.withWorker()
    project.write('worker.ts', SECRETIVE)
    project.write('.env', 'WHO=everybody\n')
    await project.run('trigger', 'eager', '--tenant', 'stranger')
    const service = project.start('start', '--tenant', 'acme,other', '--no-api', '--json')
    await service.says(/"event":"ended".*"tenant":"acme"/)
    await service.says(/"event":"ended".*"tenant":"other"/)
    service.process.kill('SIGTERM')
    await service.ended
    expect(service.stdout).toContain('"tenants":["acme","other"]')
    expect(service.stdout).not.toMatch(/"tenant":"(stranger|default)"/)
    expect(await project.run('start', '--tenant', 'acme,')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('NAME_INVALID'),
    })
  })
})

describe('NX5 status --watch', () => {
  test('refreshes until it is stopped', async () => {
    const project = Project.withWorker()
    const watch = project.start('status', '--watch', '1', '--json')
    await watch.says(/"health":"INITIALIZING".*\n.*"health":"INITIALIZING"/)
    await project.run('run', 'room-changes')
    await watch.says('"health":"HEALTHY"')
    watch.process.kill('SIGINT')
    expect(await watch.ended).toMatchObject({ code: 0 })
  })
})

const SCHEDULED = `
import { Worker } from 'tidemark'
const worker = new Worker({ name: 'office' })
const database = worker.database('things')
const execute = async () => ({ changes: [{ type: 'upsert', key: 'k', record: {} }], hasMore: false, nextState: 1 })
worker.sync('eager', { database, mode: 'incremental', schedule: '1d', execute })
worker.sync('patient', { database, mode: 'incremental', schedule: 'manual', execute })
export default worker
`

describe('start serves the feed', () => {
  test('A1 A2 at the printed address, to callers with a key, while syncs run; SIGTERM ends a stream cleanly', async () => {
    const project = Project.withWorker()
    project.write('worker.ts', SCHEDULED)
    const { key } = await project.json('keys', 'create', 'reader')
    const service = project.start('start', '--json', '--port', '0')
    await service.says(/"event":"ended".*"sync":"eager"/)
    const url = /"api":"(http:[^"]+)"/.exec(service.stdout)![1]!
    const ask = (path: string, headers = {}): Promise<Response> =>
      fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key.text}`, ...headers } })
    expect(await (await ask('/agents/v1/things')).json()).toMatchObject({
      data: [{ id: 'k', record: {} }],
      page: { syncMode: 'full' },
    })
    expect(await (await ask('/agents/v1/changes')).json()).toMatchObject({
      data: [{ resourceType: 'thing', database: 'things', resourceId: 'k', action: 'created' }],
    })
    expect((await fetch(`${url}/agents/v1/things`)).status).toBe(401)
    expect(await (await fetch(`${url}/api/syncs`)).json()).toMatchObject({
      data: [{ sync: 'eager', health: 'HEALTHY' }, { sync: 'patient' }],
    })
    const stream = await ask('/agents/v1/changes', { accept: 'text/event-stream' })
    service.process.kill('SIGTERM')
    expect(await stream.text()).toMatch(/^id: \S+\nevent: change\ndata: \{/)
    expect(await service.ended).toMatchObject({ code: 0 })
  })

  test('a requested port that is taken is an error; --no-api serves nothing', async () => {
    const project = Project.withWorker()
    const first = project.start('start', '--json', '--port', '0')
    await first.says('"event":"serving"')
    const port = /"api":"http:[^"]+:(\d+)"/.exec(first.stdout)![1]!
    const { code, stdout } = await project.run('start', '--json', '--port', port)
    expect(code).toBe(3)
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'PORT_TAKEN' } })
    const silent = project.start('start', '--json', '--no-api')
    await silent.says('"api":null')
    for (const { process } of [first, silent]) process.kill('SIGTERM')
    expect([(await first.ended).code, (await silent.ended).code]).toEqual([0, 0])
  })
})

const SECRETIVE = `
import { Worker } from 'tidemark'
const worker = new Worker({ name: 'office' })
const database = worker.database('things')
const execute = async (_, { secrets }) => ({ changes: [{ type: 'upsert', key: 'k', record: { who: secrets.get('WHO') } }], hasMore: false, nextState: 1 })
worker.sync('eager', { database, mode: 'incremental', schedule: '1d', execute })
export default worker
`
