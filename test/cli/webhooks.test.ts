import { Webhook as Official } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { Receiver } from '../webhooks/receiver.ts'
import { expectGolden } from './golden.ts'
import { Project, type Answer } from './project.ts'

const ALLOW = ['--allow', 'http,private,port']

test('Z29 Z37 webhooks: add, list, edit, test, rotate, pause, resume, replay, failed and remove; the secret is shown once', async () => {
  const project = Project.withWorker()
  const receiver = await Receiver.open((_, response) => void response.writeHead(202).end('thank\u001b[31m you'))
  const hide = masking(receiver)
  const added = await project.ask(
    'webhooks',
    'add',
    `${receiver.url}?token=sesame`,
    '--databases',
    'people,rooms',
    '--actions',
    'created,deleted',
    ...ALLOW,
    '--json',
  )
  const {
    webhook: { id, secret },
  } = JSON.parse(added.stdout) as { webhook: { id: string; secret: string } }
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expectGolden('webhooks-add', project, hide(added))
  expectGolden('webhooks-test', project, hide(await project.ask('webhooks', 'test', id, '--json')))
  const [probe] = receiver.received
  expect(new Official(secret).verify(probe!.body, probe!.headers as Record<string, string>)).toMatchObject({
    resourceType: 'tidemark.test',
  })
  expectGolden('webhooks-rotate', project, hide(await project.ask('webhooks', 'rotate', id, '--json')))
  expectGolden(
    'webhooks-edit',
    project,
    hide(
      await project.ask('webhooks', 'edit', id, '--databases', 'all', '--actions', 'deleted', '--dry-run', '--json'),
    ),
  )
  expectGolden('webhooks-edit-nothing', project, hide(await project.ask('webhooks', 'edit', id, '--json')))
  const edited = await project.ask('webhooks', 'edit', id, '--databases', 'people')
  expect(edited.stdout).toMatch(/databases +people, rooms +people\n/)
  expect(edited.stderr).toContain('The new settings apply from sequence 1')
  expect((await project.ask('webhooks', 'edit', id, '--databases', 'people,rooms')).stderr).toContain(
    'did not match the old filter are not sent',
  )
  expectGolden('webhooks-pause', project, hide(await project.ask('webhooks', 'pause', id, '--json')))
  expect((await project.ask('status')).stdout).toMatch(/✗ webhook wh_\w+: disabled: Paused by cli:/)
  expect(await project.json('status')).toMatchObject({ webhooks: [{ id, enabled: false, state: 'disabled' }] })
  expect((await project.json('doctor'))['checks']).toContainEqual({
    check: `webhook ${id}`,
    verdict: 'warn',
    message: expect.stringMatching(/^disabled: Paused by/),
    fix: `npx tidemark webhooks resume ${id}`,
  })
  expectGolden('webhooks-resume', project, hide(await project.ask('webhooks', 'resume', id, '--json')))
  expect((await project.json('doctor'))['checks']).toContainEqual({
    check: `webhook ${id}`,
    verdict: 'ok',
    message: 'enabled',
    fix: null,
  })
  expectGolden('webhooks-replay', project, hide(await project.ask('webhooks', 'replay', id, '--all', '--json')))
  expectGolden('webhooks-failed', project, hide(await project.ask('webhooks', 'failed', id, '--json')))
  const listed = await project.ask('webhooks', 'list', '--json')
  expectGolden('webhooks-list', project, hide(listed))
  expect(listed.stdout).not.toMatch(/whsec_|sesame/)
  expect((await project.ask('webhooks', 'list')).stdout).toMatch(
    /wh_\w+ +http:\/\/127.0.0.1:\d+\/hook\?… +people,rooms created,deleted +0 +0 +0 +– +enabled/,
  )
  expectGolden('webhooks-remove-needs-yes', project, hide(await project.ask('webhooks', 'remove', id, '--json')))
  expectGolden(
    'webhooks-unknown',
    project,
    hide(await project.ask('webhooks', 'test', id, '--tenant', 'acme', '--json')),
  )
  expect(await project.ask('webhooks', 'remove', id, '--yes')).toMatchObject({ code: 0 })
  expect((await project.ask('webhooks', 'list')).stdout).toContain('No webhooks.')
})

test('XF13 a URL that is not public is refused when it is added, and nothing is kept', async () => {
  const project = Project.withWorker()
  expectGolden(
    'webhooks-refused',
    project,
    await project.ask('webhooks', 'add', 'https://169.254.169.254/token', '--json'),
  )
  expect(project.has('.tidemark')).toBe(false)
})

test('start delivers the changes of its syncs', async () => {
  const project = Project.withWorker()
  const receiver = await Receiver.open()
  const {
    webhook: { secret },
  } = await project.json('webhooks', 'add', receiver.url, ...ALLOW)
  await project.ask('trigger', 'people-list')
  const service = project.start('start', '--port', '0')
  await receiver.until(({ length }) => length === 5)
  for (const { body, headers } of receiver.received)
    expect(new Official(secret).verify(body, headers as Record<string, string>)).toMatchObject({
      resourceType: 'people',
      action: 'created',
    })
  service.process.kill('SIGTERM')
  expect(await service.ended).toMatchObject({ code: 0 })
  const { webhooks } = await project.json('webhooks', 'list')
  expect(webhooks).toMatchObject([{ behind: 0, waiting: 0, failed: 0, last_status: 204, enabled: true }])
})

function masking({ port }: Receiver): (answer: Answer) => Answer {
  return ({ code, stdout, stderr }) => ({
    code,
    stderr,
    stdout: stdout
      .replaceAll(/Paused by cli:[^"]*\./g, 'Paused by <actor>.')
      .replaceAll(String(port), '<port>')
      .replaceAll(/whsec_[A-Za-z0-9+/]{43}=/g, 'whsec_<secret>')
      .replaceAll(/wh_[0-9a-f]{16}/g, 'wh_<id>')
      .replaceAll(/msg_test_[0-9a-f]{16}/g, 'msg_test_<nonce>'),
  })
}

test('start receives vendor webhooks, lands them and triggers a sync; a replayed message has no effect', async () => {
  const project = Project.withWorker()
  project.write('worker.ts', TAKING)
  project.write('.env', `HOOK_SECRET=${SECRET}\n`)
  const service = project.start('start', '--json', '--port', '0')
  await service.says('"event":"serving"')
  const url = /"api":"(http:[^"]+)"/.exec(service.stdout)![1]!
  const body = JSON.stringify({ id: 'p1', name: 'Ada' })
  const headers = {
    'content-type': 'application/json',
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(Date.now() / 1_000)),
    'webhook-signature': new Official(SECRET).sign('msg_1', new Date(), body),
  }
  const post = (given = headers): Promise<Response> =>
    fetch(`${url}/webhooks/office/vendor`, { method: 'POST', body, headers: given })
  expect(await (await post()).json()).toEqual({ status: 'accepted' })
  expect(await (await post()).json()).toEqual({ status: 'duplicate' })
  expect((await post({ ...headers, 'webhook-id': 'msg_2' })).status).toBe(401)
  await service.says(/"event":"ended".*"sync":"patient"/)
  service.process.kill('SIGTERM')
  expect(await service.ended).toMatchObject({ code: 0 })
  expect(await project.json('query', 'select * from people')).toMatchObject({ rows: [{ id: 'p1', name: 'Ada' }] })
  expect((await project.json('status'))['syncs']).toMatchObject([
    { sync: 'patient', health: 'HEALTHY' },
    { sync: 'vendor', health: 'HEALTHY' },
  ])
})

test('start for several tenants receives webhooks at each tenant’s address, verified with its own secret', async () => {
  const project = Project.withWorker()
  project.write('worker.ts', TAKING)
  project.write('.env', `HOOK_SECRET=${SECRET}\nHOOK_SECRET__acme=${ACME_SECRET}\n`)
  const service = project.start('start', '--json', '--port', '0', '--tenant', 'default,acme')
  await service.says('"event":"serving"')
  const url = /"api":"(http:[^"]+)"/.exec(service.stdout)![1]!
  const body = JSON.stringify({ id: 'p1', name: 'Ada' })
  const post = (secret: string): Promise<Response> =>
    fetch(`${url}/webhooks/acme/office/vendor`, {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        'webhook-id': 'msg_1',
        'webhook-timestamp': String(Math.floor(Date.now() / 1_000)),
        'webhook-signature': new Official(secret).sign('msg_1', new Date(), body),
      },
    })
  expect((await post(SECRET)).status).toBe(401)
  expect((await post(ACME_SECRET)).status).toBe(200)
  service.process.kill('SIGTERM')
  expect(await service.ended).toMatchObject({ code: 0 })
  expect(await project.json('query', 'select * from acme__people', '--tenant', 'acme')).toMatchObject({
    rows: [{ id: 'p1', name: 'Ada' }],
  })
})

const ACME_SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`
const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`

const TAKING = `
import { standardSignature, Worker } from 'tidemark'
const worker = new Worker({ name: 'office' })
const database = worker.database('people')
worker.sync('patient', { database: worker.database('things'), mode: 'incremental', schedule: 'manual', execute: async () => ({ changes: [], hasMore: false, nextState: 1 }) })
worker.webhook('vendor', {
  database, verify: standardSignature({ secret: 'HOOK_SECRET' }),
  execute: ({ body }) => ({ changes: [{ type: 'upsert', key: body.id, record: body }], trigger: 'patient' }),
})
export default worker
`
