import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, onTestFinished, test } from 'vitest'
import { findFreePorts } from '../../../src/runner/restate/free-ports.ts'
import { registerService } from '../../../src/runner/restate/register-service.ts'
import {
  LOG_BYTES_MAX,
  RestateServer,
  findServerBinary,
  type RestateServerOptions,
} from '../../../src/runner/restate/restate-server.ts'

describe('a local Restate server', () => {
  test('listens on loopback only, exits by its pid, and continues with its folder', async () => {
    const folder = ownFolder()
    const server = await start({ folder })
    const { version } = (await (await fetch(`${server.admin}/version`)).json()) as { version: string }
    expect(version).toMatch(/^1\.7\./)
    expect(isAlive(server.pid)).toBe(true)
    const beyond = Object.values(networkInterfaces())
      .flat()
      .filter((address) => address?.family === 'IPv4' && !address.internal)
      .map((address) => address!.address)
    for (const address of beyond)
      for (const port of Object.values(server.ports))
        await expect(fetch(`http://${address}:${port}/health`)).rejects.toThrow()
    const service = await serve('greeter')
    const first = await registerService(server.admin, service.url)
    expect(first).toEqual({ deployment: expect.stringMatching(/^dp_/), services: ['greeter'] })

    await server.stop()
    expect(isAlive(server.pid)).toBe(false)
    await expect(fetch(`${server.admin}/health`)).rejects.toThrow()

    const again = await start({ folder })
    expect(await deployments(again)).toEqual([{ id: first.deployment, services: ['greeter'] }])
  })

  test('registering a worker again at the same address replaces the registration', async () => {
    const server = await start({ folder: ownFolder() })
    const service = await serve('before')
    const { deployment } = await registerService(server.admin, service.url)
    service.offer('after')
    expect(await registerService(server.admin, service.url)).toEqual({ deployment, services: ['after'] })
    expect(await deployments(server)).toEqual([{ id: deployment, services: ['after'] }])
  })

  test('an address without a service is rejected with a clear error', async () => {
    const server = await start({ folder: ownFolder() })
    const service = await serve('gone')
    await service.close()
    await expect(registerService(server.admin, service.url)).rejects.toMatchObject({
      code: 'RESTATE_REFUSED',
      message: expect.stringContaining(service.url),
    })
    expect(await deployments(server)).toEqual([])
  })

  test('a long log is rotated at the next start, and one rotated file is kept', async () => {
    const folder = ownFolder()
    const log = join(folder, 'restate.log')
    writeFileSync(`${log}.1`, 'older')
    writeFileSync(log, Buffer.alloc(LOG_BYTES_MAX + 1))
    await (await start({ folder })).stop()
    expect(statSync(`${log}.1`).size).toBe(LOG_BYTES_MAX + 1)
    const { size } = statSync(log)
    expect(size).toBeLessThan(LOG_BYTES_MAX)
    // A short log is continued.
    await start({ folder })
    expect(statSync(log).size).toBeGreaterThan(size)
    expect(readdirSync(folder).filter((name) => name.startsWith('restate.log'))).toEqual([
      'restate.log',
      'restate.log.1',
    ])
  })

  test('a taken port, or a folder in use by another server, is reported', async () => {
    const folder = ownFolder()
    const server = await start({ folder })
    await expect(start({ folder: ownFolder(), ports: { ingress: server.ports.ingress } })).rejects.toMatchObject({
      code: 'PORT_TAKEN',
      message: expect.stringContaining(`127.0.0.1:${server.ports.ingress}`),
    })
    // The server does not always log the reason itself.
    await expect(start({ folder })).rejects.toMatchObject({
      code: 'RESTATE_UNAVAILABLE',
      message: expect.stringContaining(`another one may be running in ${folder}`),
    })
    expect(isAlive(server.pid)).toBe(true)
  })
})

test('an automatically chosen port is outside the ephemeral range', async () => {
  const ports = await findFreePorts(Array.from({ length: 50 }))
  expect(new Set(ports).size).toBe(50)
  expect(ports.filter((port) => port < 10_000 || port >= 32_768)).toEqual([])
})

test('without the package, or on an unsupported platform, the error names the remedy', () => {
  const nowhere = pathToFileURL(join(ownFolder(), 'worker.ts')).href
  expect(() => findServerBinary(nowhere)).toThrow(
    expect.objectContaining({
      code: 'PACKAGE_UNFIT',
      message: expect.stringContaining('npm install --save-dev @restatedev/restate-server'),
    }),
  )
  expect(() => findServerBinary(import.meta.url, 'sunos-sparc')).toThrow(
    expect.objectContaining({
      code: 'PACKAGE_UNFIT',
      message: expect.stringContaining('has no binary for sunos-sparc'),
    }),
  )
  expect(findServerBinary(import.meta.url)).toMatch(/bin\/restate-server$/)
})

test('an unreachable server is distinguished from a refusal', async () => {
  const service = await serve('x')
  await service.close()
  await expect(registerService(service.url, 'http://127.0.0.1:1')).rejects.toMatchObject({
    code: 'RESTATE_UNAVAILABLE',
  })
})

async function start(options: RestateServerOptions): Promise<RestateServer> {
  const server = await RestateServer.start(options)
  onTestFinished(() => server.kill())
  return server
}

function ownFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-restate-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function deployments({ admin }: RestateServer): Promise<Array<{ id: string; services: string[] }>> {
  const { deployments: all } = (await (await fetch(`${admin}/deployments`)).json()) as {
    deployments: Array<{ id: string; services: Array<{ name: string }> }>
  }
  return all.map(({ id, services }) => ({ id, services: services.map(({ name }) => name) }))
}

/** A minimal service for registrations. */
async function serve(
  name: string,
): Promise<{ url: string; offer: (name: string) => void; close: () => Promise<void> }> {
  let offered = name
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/vnd.restate.endpointmanifest.v1+json' })
    response.end(
      JSON.stringify({
        protocolMode: 'BIDI_STREAM',
        minProtocolVersion: 5,
        maxProtocolVersion: 5,
        services: [
          {
            name: offered,
            ty: 'SERVICE',
            handlers: [
              {
                name: 'greet',
                input: { required: false, contentType: 'application/json' },
                output: { contentType: 'application/json', setContentTypeIfEmpty: false },
              },
            ],
          },
        ],
      }),
    )
  })
  const sessions = new Set<{ destroy(): void }>()
  server.on('session', (session) => sessions.add(session))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = async (): Promise<void> => {
    for (const session of sessions) session.destroy()
    await new Promise((resolve) => server.close(resolve))
  }
  onTestFinished(close)
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    offer: (other) => (offered = other),
    close,
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
