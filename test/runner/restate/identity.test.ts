import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { registerService } from '../../../src/runner/restate/register-service.ts'
import { serveRestate, type RestateService } from '../../../src/runner/restate/serve-restate.ts'
import { RestateServer } from '../../../src/runner/restate/restate-server.ts'
import { declare, RunnerFixture } from '../runner-fixture.ts'

/** The key of another server. */
const STRANGER = 'publickeyv1_2G8dCQhArfvGpzPw5Vx2ALciR4xCLHfS5YaT93XjNxX9'

describe('authentication of calls from Restate', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-identity-'))
  let server: RestateServer
  let own: string
  let scene: RunnerFixture

  beforeAll(async () => {
    const pem = join(folder, 'identity.pem')
    writeFileSync(pem, generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }))
    server = await RestateServer.start({
      folder: join(folder, 'restate'),
      settings: { RESTATE_REQUEST_IDENTITY_PRIVATE_KEY_PEM_FILE: pem },
    })
    own = /publickeyv1_\w+/.exec(server.logTail(1_000))![0]
    scene = await RunnerFixture.open()
  })
  afterAll(async () => {
    await server.kill()
    await scene.close()
    rmSync(folder, { recursive: true, force: true })
  })

  async function serve(identityKeys?: readonly string[]): Promise<RestateService> {
    const served = await serveRestate({
      store: scene.store,
      syncs: declare({ one: { schedule: 'manual' } }),
      ports: scene.ports(),
      fetch: () => Promise.reject(new Error('no network here')),
      secrets: { get: (name) => name },
      holder: 'here',
      ingress: server.ingress,
      ...(identityKeys !== undefined && { identityKeys }),
    })
    onTestFinished(() => served.close())
    return served
  }

  test('a call signed with the key of its Restate server is accepted', async () => {
    const { url } = await serve([STRANGER, own])
    expect((await registerService(server.admin, url)).services).toEqual(['tidemark.shop'])
    const status = await fetch(`${server.ingress}/tidemark.shop/${encodeURIComponent('default/one')}/status`, {
      method: 'POST',
    })
    expect([status.status, await status.json()]).toEqual([200, expect.objectContaining({ sync: 'one' })])
  })

  test('a call signed with another key, or unsigned, is rejected', async () => {
    const { url } = await serve([STRANGER])
    await expect(registerService(server.admin, url)).rejects.toMatchObject({
      code: 'RESTATE_REFUSED',
      message: expect.stringContaining('401'),
    })
    for (const path of ['/discover', '/invoke/tidemark.shop/status']) expect(await statusOf(url, path)).toBe(401)
    // Without an identity key, every call is answered.
    expect(await statusOf((await serve()).url, '/discover')).not.toBe(401)
  })

  test('an invalid key is reported before anything is served', async () => {
    await expect(serve([`${STRANGER}${STRANGER.slice(-20)}`])).rejects.toMatchObject({ code: 'ARGUMENT_INVALID' })
  })
})

async function statusOf(url: string, path: string): Promise<number> {
  const session = connect(url)
  try {
    const request = session.request({ ':path': path, accept: 'application/vnd.restate.endpointmanifest.v3+json' })
    const [headers] = (await once(request, 'response')) as [{ ':status': number }]
    return headers[':status']
  } finally {
    session.destroy()
  }
}
