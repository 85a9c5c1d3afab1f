import { join } from 'node:path'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { createTidemark, type ConnectedEvent, type Tidemark } from '../../src/embed/index.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { Worker } from '../../src/worker/worker.ts'
import { ACCOUNTS, credentialsOf, hubspotOptions, startHubspot, TestBrowser } from '../connections/connect-fixture.ts'
import { temporaryFolder } from '../connections/temporary-folder.ts'
import type { OAuthVendor } from '../../examples/saas-app/oauth-vendor.ts'
import type { Store } from '../../src/contract/index.ts'

interface World {
  readonly tidemark: Tidemark
  readonly store: Store
  readonly vendor: OAuthVendor
  readonly events: ConnectedEvent[]
  /** The keys of the account that the credentials of the connection belong to. */
  readonly keys: Record<string, readonly string[]>
  connect(options?: { allowAccountChange?: boolean }): Promise<string>
}

async function open(): Promise<World> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/sync`
  const vendor = await startHubspot(base)
  vendor.signIn = '1001'
  const keys: Record<string, readonly string[]> = { '1001': ['a', 'b', 'c'], '2002': ['x'] }
  const worker = new Worker({ name: 'crm' })
  worker.sync('contacts', {
    database: worker.database('contacts'),
    mode: 'replace',
    schedule: 'manual',
    connection: 'hubspot',
    execute: async (_state, context) => ({
      changes: (keys[context.connection?.account?.id ?? ''] ?? []).map((key) => ({
        type: 'upsert' as const,
        key,
        record: { key },
      })),
      hasMore: false,
    }),
  })
  const store = await openStore(`sqlite:${join(temporaryFolder(), 'store.db')}`)
  const tidemark = createTidemark({
    store,
    workers: [worker],
    tenants: ['acme'],
    prefix: '/sync',
    log: 'error',
    connect: { publicUrl: base, providers: hubspotOptions(vendor) },
  })
  server.on('request', tidemark.nodeListener)
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await tidemark.stop()
    await store.close()
  })
  const events: ConnectedEvent[] = []
  tidemark.on('accountConnected', (event) => void events.push(event))
  return {
    tidemark,
    store: store.forTenant('acme'),
    vendor,
    events,
    keys,
    async connect(options = {}) {
      const { url, cookie } = await tidemark.connections.createSession({ provider: 'hubspot', ...options })
      const browser = new TestBrowser()
      browser.setCookie(base, cookie)
      return (await browser.submit(await browser.open(url))).text
    },
  }
}

const keysIn = async ({ store }: World): Promise<string[]> =>
  (await store.rows({ database: 'contacts', limit: 10 })).map(({ key }) => key).toSorted()

describe('the connect flow of an embedded instance', () => {
  test('connects an account, emits the event, and the sync runs with it', async () => {
    const world = await open()
    expect(await world.connect()).toContain('HubSpot is connected')
    expect(world.events).toEqual([
      {
        tenant: 'acme',
        connection: 'hubspot',
        provider: 'hubspot',
        account: { id: '1001', label: ACCOUNTS['1001'] },
        isNew: true,
      },
    ])
    const [result] = await world.tidemark.run('contacts')
    expect(result?.error).toBeNull()
    expect(await keysIn(world)).toEqual(['a', 'b', 'c'])
  })

  test('another account over a connection is refused; if it is allowed, the sync stops before it deletes a row', async () => {
    const world = await open()
    await world.connect()
    await world.tidemark.run('contacts')
    world.vendor.signIn = '2002'
    expect(await world.connect()).toContain('but you signed in as grace.example')
    const [same] = await world.tidemark.run('contacts')
    expect([same?.error, await keysIn(world)]).toEqual([null, ['a', 'b', 'c']])

    expect(await world.connect({ allowAccountChange: true })).toContain('HubSpot is connected')
    const [stopped] = await world.tidemark.run('contacts')
    expect(stopped?.error?.code).toBe('SCOPE_CHANGED')
    expect(await keysIn(world)).toEqual(['a', 'b', 'c'])
  })

  test('a removed connection is revoked at the vendor, and its rows stay', async () => {
    const world = await open()
    await world.connect()
    await world.tidemark.run('contacts')
    const { refreshToken } = (await credentialsOf(world.store)) as { refreshToken: string }
    expect((await world.tidemark.connections.list()).map(({ name, status }) => [name, status])).toEqual([
      ['hubspot', 'active'],
    ])
    await world.tidemark.connections.remove('hubspot')
    expect(world.vendor.requests).toContain(`DELETE /oauth/v1/refresh-tokens/${refreshToken}`)
    expect(await world.tidemark.connections.list()).toEqual([])
    await expect(world.tidemark.connections.remove('hubspot')).rejects.toMatchObject({ code: 'CONNECTION_UNKNOWN' })
    expect(await keysIn(world)).toEqual(['a', 'b', 'c'])
  })

  test('a link is for a tenant of the instance, and needs the option', async () => {
    const world = await open()
    await expect(
      world.tidemark.connections.createSession({ tenant: 'other', provider: 'hubspot' }),
    ).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
    })
    const plain = createTidemark({ store: 'sqlite::memory:', workers: [new Worker({ name: 'w' })] })
    onTestFinished(() => plain.stop())
    await expect(plain.connections.createSession({ provider: 'hubspot' })).rejects.toMatchObject({
      code: 'ARGUMENT_INVALID',
      message: 'Set the option `connect` of createTidemark to create connect links.',
    })
    expect(() =>
      createTidemark({
        store: 'sqlite::memory:',
        workers: [new Worker({ name: 'w' })],
        connect: { publicUrl: 'http://app.example.com', providers: {} },
      }),
    ).toThrow('`connect.publicUrl` must use https')
  })
})
