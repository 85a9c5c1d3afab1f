import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findFreePorts } from '../../src/runner/restate/free-ports.ts'
import { expectGolden } from './golden.ts'
import { people, Project, type Running } from './project.ts'

const ANY = ['--ingress-port', '0', '--admin-port', '0']

describe('restate up', () => {
  test('starts a server, says where it is, and ends it on Ctrl-C; its folder stays', async () => {
    const project = new Project()
    const up = project.start('restate', 'up', '--json', ...ANY)
    const { ingress, admin, folder, pid } = await serverOf(up)
    expect(folder).toBe(join(project.folder, '.tidemark/restate'))
    expect((await fetch(`${admin}/health`)).ok).toBe(true)
    expect((await fetch(`${ingress}/restate/health`)).ok).toBe(true)
    up.process.kill('SIGINT')
    expect(await up.ended).toMatchObject({ code: 0, stderr: '' })
    expect(isAlive(pid)).toBe(false)
    expect(existsSync(join(folder, 'restate.log'))).toBe(true)
  })

  test('two servers run in parallel; a requested port that is taken is an error, and so is a server that exits', async () => {
    const project = new Project()
    const up = project.start('restate', 'up', '--json')
    const { ingress, admin, pid } = await serverOf(up)
    const second = project.start('restate', 'up', '--folder', 'second', '--json')
    expect([ingress, admin]).not.toContain((await serverOf(second)).ingress)
    second.process.kill('SIGTERM')
    expect(await second.ended).toMatchObject({ code: 0 })
    const { code, stdout } = await project.run(
      'restate',
      'up',
      '--folder',
      'other',
      '--ingress-port',
      new URL(ingress).port,
      '--json',
    )
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 3, error: { code: 'PORT_TAKEN' } })
    process.kill(pid, 'SIGKILL')
    expect(await up.ended).toMatchObject({ code: 3, stdout: expect.stringContaining('exited unexpectedly') })
  })

  test('the worker is served and registered, runs when triggered, and ends with the server', async () => {
    const project = Project.withWorker()
    const up = project.start('restate', 'up', '--json', '--worker-port', '0', '--port', '0', ...ANY)
    const { admin, pid } = await serverOf(up)
    await up.says('"event":"registered"')
    const { services, url } = documents(up).find(({ event }) => event === 'registered')!
    expect(services).toEqual(['tidemark.office'])
    await project.run('trigger', 'people-list')
    await up.says(/"event":"ended".*"sync":"people-list"/)
    const { api } = documents(up).find(({ event }) => event === 'serving')!
    expect(await (await fetch(`${api}/api/syncs`)).json()).toMatchObject({
      data: [{ sync: 'people-list', health: 'HEALTHY' }, {}],
    })
    up.process.kill('SIGINT')
    expect(await up.ended).toMatchObject({ code: 0 })
    expect(isAlive(pid)).toBe(false)
    for (const address of [admin, url, api]) await expect(fetch(address)).rejects.toThrow('fetch failed')
    expect((await project.json('status'))['syncs'][0]).toMatchObject({ held_by: null })
  })

  test('a missing worker file is an error, and nothing is started', async () => {
    const project = new Project()
    const { code, stdout } = await project.run('restate', 'up', '--file', 'elsewhere.ts', '--json')
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 2, error: { code: 'WORKER_NOT_FOUND' } })
    expect(project.has('.tidemark')).toBe(false)
  })
})

describe('restate register', () => {
  test('reports an unreachable server and an invalid address', async () => {
    const project = new Project()
    expectGolden(
      'restate-register-nobody',
      project,
      await project.run('restate', 'register', 'http://127.0.0.1:9080', '--admin', 'http://127.0.0.1:1', '--json'),
    )
    expectGolden('restate-register-url', project, await project.run('restate', 'register', 'localhost:9080', '--json'))
  })
})

describe('start --runner restate', () => {
  test('the worker file as it is runs on Restate: a triggered sync lands, status shows its runner, and a killed one resumes', async () => {
    const project = Project.withWorker({ people: people(60), slowMs: 1_000 })
    // In a folder of its own: where there is a worker, `up` would serve it too.
    const up = new Project().start('restate', 'up', '--json', ...ANY)
    const { ingress, admin } = await serverOf(up)
    const begin = async (port: string): Promise<{ service: Running; url: string }> => {
      const service = project.start(
        'start',
        '--no-api',
        '--all-tenants',
        '--runner',
        'restate',
        '--restate',
        ingress,
        '--restate-port',
        port,
        '--json',
      )
      await service.says('"event":"restate"')
      return {
        service,
        url: JSON.parse(service.stdout.split('\n').find((line) => line.includes('"event":"restate"'))!).url,
      }
    }
    // It comes back at the same port, which no other process may have taken meanwhile.
    const [own] = await findFreePorts([undefined])
    const { service, url } = await begin(String(own))
    expect(await project.json('restate', 'register', url, '--admin', admin)).toMatchObject({
      services: ['tidemark.office'],
    })
    await project.run('trigger', 'people-list')
    await service.says(/"event":"landed".*"sync":"people-list".*"page":2/)
    expect((await project.json('status'))['syncs'][0]).toMatchObject({
      held_by: expect.stringMatching(/^restate\/people-list:/),
      runner: { pid: service.process.pid },
    })
    service.process.kill('SIGKILL')
    await service.ended
    project.source({ people: people(60) })
    const { service: second } = await begin(String(own))
    await second.says(/"event":"started".*"sync":"people-list".*"resumed":true/)
    await second.says(/"event":"ended".*"sync":"people-list"/)
    // A tenant that comes later is run as well.
    await project.run('trigger', 'people-list', '--tenant', 'acme')
    await second.says(/"event":"ended","tenant":"acme".*"sync":"people-list"/)
    second.process.kill('SIGTERM')
    expect(await second.ended).toMatchObject({ code: 0 })
    expect((await project.json('status'))['syncs'][0]).toMatchObject({ health: 'HEALTHY', held_by: null })
    up.process.kill('SIGTERM')
    await up.ended
  })

  test('an unreachable Restate is reported and retried', async () => {
    const service = Project.withWorker().start(
      'start',
      '--no-api',
      '--runner',
      'restate',
      '--restate',
      'http://127.0.0.1:1',
      '--restate-port',
      '0',
      '--json',
    )
    await expect
      .poll(() => service.stderr.split('The Restate ingress at http://127.0.0.1:1 does not respond').length)
      .toBeGreaterThan(2)
    expect(service.stderr).toContain('RESTATE_UNAVAILABLE')
    service.process.kill('SIGTERM')
    expect(await service.ended).toMatchObject({ code: 0 })
  })

  test('a port that is taken is an error', async () => {
    const project = Project.withWorker()
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { code, stdout } = await project.run(
      'start',
      '--no-api',
      '--runner',
      'restate',
      '--restate-port',
      String((taken.address() as AddressInfo).port),
      '--json',
    )
    expect({ code, ...JSON.parse(stdout.trim().split('\n').at(-1)!) }).toMatchObject({
      code: 3,
      error: { code: 'PORT_TAKEN' },
    })
    taken.close()
  })
})

async function serverOf(up: Running): Promise<{ ingress: string; admin: string; folder: string; pid: number }> {
  await up.says('"event":"restate"')
  return JSON.parse(up.stdout.split('\n').find((line) => line.includes('"event":"restate"'))!)
}

function documents({ stdout }: Running): Record<string, any>[] {
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
