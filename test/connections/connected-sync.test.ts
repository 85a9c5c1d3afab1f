import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, describe, test, vi } from 'vitest'
import type { ConnectionChange } from '../../src/connections/connection-changes.ts'
import { DatabaseSync } from '@photostructure/sqlite'
import { openStore } from '../../src/stores/open-store.ts'
import { rest } from '../../src/sources/rest/source.ts'
import { Worker } from '../../src/worker/worker.ts'
import { openTidemark, storeUrl } from '../embed/embed-fixture.ts'

/** A vendor whose keys each belong to an account with people. */
class Vendor {
  readonly accounts = new Map<string, readonly string[]>()
  requests = 0
  url = ''

  async start(): Promise<this> {
    const server = createServer((request, response) => this.#answer(request, response)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return this
  }

  #answer({ headers }: IncomingMessage, response: ServerResponse): void {
    this.requests++
    const people = this.accounts.get(headers.authorization?.replace('Bearer ', '') ?? '')
    response.writeHead(people === undefined ? 401 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify((people ?? []).map((name) => ({ id: name, name }))))
  }
}

function createWorker(baseUrl: string, schedule = 'manual'): Worker {
  const worker = new Worker({ name: 'crm' })
  const { people } = rest({
    baseUrl,
    connection: 'crm',
    streams: [{ name: 'people', path: '/people', key: 'id', page: { kind: 'none' } }],
  })
  worker.sync('people', { database: worker.database('people'), schedule, ...people })
  return worker
}

const keyOf = (key: string) => ({ provider: 'crm', kind: 'api_key', secrets: { key } }) as const

describe('a sync that names a connection', () => {
  test('runs with the credentials of each tenant, and a tenant without the connection does not have it', async () => {
    const vendor = await new Vendor().start()
    vendor.accounts.set('key-of-acme', ['ada']).set('key-of-globex', ['bob', 'cy'])
    const tidemark = openTidemark({ workers: [createWorker(vendor.url)], tenants: ['acme', 'globex', 'initech'] })
    await tidemark.connections.create({ ...keyOf('key-of-acme'), tenant: 'acme' })
    await tidemark.connections.create({ ...keyOf('key-of-globex'), tenant: 'globex' })
    for (const tenant of ['acme', 'globex']) await tidemark.run('people', { tenant })
    expect(await tidemark.query('select name from acme__people')).toMatchObject({ rows: [{ name: 'ada' }] })
    expect(await tidemark.status({ tenant: 'globex' })).toMatchObject([
      { health: 'HEALTHY', connection: { name: 'crm', status: 'active' } },
    ])
    expect(await tidemark.status({ tenant: 'initech' })).toEqual([])
    const [refused] = await tidemark.run('people', { tenant: 'initech' })
    expect(refused!.error).toMatchObject({ code: 'CONNECTION_UNKNOWN' })
    expect(JSON.stringify(await tidemark.connections.list({ tenant: 'acme' }))).not.toContain('key-of-acme')
  })

  test('starts and stops at run time with the connection, in every process, for new tenants too', async () => {
    const vendor = await new Vendor().start()
    vendor.accounts.set('key-of-acme', ['ada'])
    const store = storeUrl()
    const tidemark = openTidemark({ store, workers: [createWorker(vendor.url, 'continuous')], tenants: 'all' })
    const other = openTidemark({ store, workers: [createWorker(vendor.url)], tenants: 'all' })
    const changes: ConnectionChange[] = []
    tidemark.on('connectionChanged', (event) => void changes.push(event))
    await tidemark.start()
    expect(vendor.requests).toBe(0)
    await other.connections.create({ ...keyOf('key-of-acme'), tenant: 'acme' })
    await vi.waitFor(
      async () => expect(await tidemark.status({ tenant: 'acme' })).toMatchObject([{ health: 'HEALTHY' }]),
      20_000,
    )
    await other.connections.disable('crm', { tenant: 'acme', reason: 'holiday' })
    await vi.waitFor(() => expect(changes.map(({ status }) => status)).toEqual(['active', 'disabled']), 20_000)
    expect(await tidemark.status({ tenant: 'acme' })).toMatchObject([
      { health: 'PAUSED', due: { kind: 'never', why: 'connection' }, connection: { statusReason: 'holiday' } },
    ])
    await other.connections.enable('crm', { tenant: 'acme' })
    const before = vendor.requests
    await vi.waitFor(() => expect(vendor.requests).toBeGreaterThan(before), 20_000)
    await other.connections.remove('crm', { tenant: 'acme' })
    await vi.waitFor(() => expect(changes.at(-1)).toMatchObject({ status: null }), 20_000)
    expect(await tidemark.status({ tenant: 'acme' })).toEqual([])
    // The rows stay.
    const rows = []
    for await (const row of tidemark.database('people', { tenant: 'acme' }).rows()) rows.push(row.key)
    expect(rows).toEqual(['ada'])
  })

  test('a refused key stops the connection once, and a new key starts its sync again', async () => {
    const vendor = await new Vendor().start()
    vendor.accounts.set('key-one', ['ada'])
    const tidemark = openTidemark({ workers: [createWorker(vendor.url, 'continuous')] })
    const attention: ConnectionChange[] = []
    tidemark.on('connectionNeedsReauthorization', (event) => void attention.push(event))
    await tidemark.connections.create(keyOf('key-one'))
    await tidemark.start()
    await vi.waitFor(async () => expect(await tidemark.status()).toMatchObject([{ health: 'HEALTHY' }]), 20_000)
    vendor.accounts.delete('key-one')
    vendor.accounts.set('key-two', ['ada', 'bob'])
    await vi.waitFor(() => expect(attention).toHaveLength(1), 20_000)
    expect(attention[0]).toMatchObject({ name: 'crm', reason: 'the vendor refused the credentials' })
    expect(await tidemark.status()).toMatchObject([{ health: 'ERROR', due: { kind: 'never', why: 'connection' } }])
    const requests = vendor.requests
    await tidemark.connections.update('crm', { secrets: { key: 'key-two' } })
    await vi.waitFor(
      async () => expect(await tidemark.query('select count(*) as n from people')).toMatchObject({ rows: [{ n: 2 }] }),
      20_000,
    )
    expect(vendor.requests).toBeGreaterThan(requests)
    expect(await tidemark.status()).toMatchObject([{ health: 'HEALTHY', failures: 0 }])
  })

  test('invariant 11: another account, or other scopes, stop the sync before the rows of the first are swept', async () => {
    const vendor = await new Vendor().start()
    vendor.accounts.set('key-one', ['ada', 'bob']).set('key-two', ['eve'])
    const url = storeUrl()
    const tidemark = openTidemark({ store: url, workers: [createWorker(vendor.url)] })
    const store = await openStore(url)
    onTestFinished(() => store.close())
    await tidemark.connections.create(keyOf('key-one'))
    await setAccount(1, 'acct_1')
    await tidemark.run('people')
    const requests = vendor.requests
    await tidemark.connections.update('crm', { secrets: { key: 'key-two' }, allowAccountChange: true })
    await setAccount(3, 'acct_2')
    const [stopped] = await tidemark.run('people')
    expect(stopped).toMatchObject({ stopReason: 'blocked', error: { code: 'SCOPE_CHANGED' } })
    expect(vendor.requests).toBe(requests)
    expect(await tidemark.query('select count(*) as n from people')).toMatchObject({ rows: [{ n: 2 }] })

    // The same account with other scopes: its listing may omit rows.
    await setAccount(4, 'acct_1')
    vendor.accounts.set('key-two', ['ada'])
    await tidemark.connections.update('crm', { scopes: ['read'] })
    const [swept] = await tidemark.run('people')
    expect(swept).toMatchObject({ stopReason: 'blocked', error: { code: 'SCOPE_CHANGED' } })
    expect(await tidemark.query('select count(*) as n from people')).toMatchObject({ rows: [{ n: 2 }] })

    async function setAccount(replaces: number, id: string): Promise<void> {
      const found = await store.connection('crm')
      const account = { id, label: id }
      const read = { ...found!, version: replaces }
      expect(await store.putConnection({ ...found!, account, replaces: read }, { actor: 'test', at: 1 })).not.toBeNull()
    }
  })
})

describe('credentials at rest', () => {
  test('invariant 10: a sealed record that is moved to another tenant, name or version is refused', async () => {
    const url = storeUrl()
    const sealed = await openStore(url)
    onTestFinished(() => sealed.close())
    const by = { actor: 'test', at: 1 }
    const write = (name: string, text: string) => ({
      name,
      provider: 'crm',
      status: 'active' as const,
      statusReason: null,
      settings: {},
      scopes: [],
      account: null,
      replaces: null,
      credentials: text,
    })
    const acme = sealed.forTenant('acme')
    const globex = sealed.forTenant('globex')
    await acme.putConnection(write('crm', 'canary-of-acme'), by)
    await acme.putConnection(write('other', 'canary-of-acme-other'), by)
    await globex.putConnection(write('crm', 'canary-of-globex'), by)
    const database = new DatabaseSync(url.slice('sqlite:'.length))
    onTestFinished(() => database.close())
    const rows = database.prepare('select tenant_id, name, credentials from tidemark_connections').all()
    expect(JSON.stringify(rows)).not.toContain('canary')
    const move = (tenant: string, from: string, to: string): void => {
      database.exec(
        `update tidemark_connections set credentials = (select credentials from tidemark_connections c join tidemark_tenants t on t.tenant_id = c.tenant_id
           where t.name = '${tenant}' and c.name = '${from}') where name = '${to}' and tenant_id = (select tenant_id from tidemark_tenants where name = 'globex')`,
      )
    }
    move('acme', 'crm', 'crm')
    await expect(globex.connectionCredentials('crm')).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
    const other = database.prepare("select credentials from tidemark_connections where name = 'other'").get() as {
      credentials: string
    }
    database.prepare("update tidemark_connections set credentials = ? where name = 'crm'").run(other.credentials)
    await expect(acme.connectionCredentials('crm')).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
    // An older text of the same connection: a refresh token that was used already.
    const before = database.prepare("select credentials from tidemark_connections where name = 'other'").get() as {
      credentials: string
    }
    await acme.swapCredentials('other', {
      credentials: 'canary-new',
      replaces: { createdAt: 1, credentialsVersion: 1 },
      at: 1,
    })
    database.prepare("update tidemark_connections set credentials = ? where name = 'other'").run(before.credentials)
    await expect(acme.connectionCredentials('other')).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
  })
})
