import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { ConnectFlow } from '../../src/connections/connect/connect-flow.ts'
import { checkConnectOptions } from '../../src/connections/connect/connect-options.ts'
import { VendorContexts } from '../../src/connections/connect/vendor-context.ts'
import { addConnection } from '../../src/connections/manage-connections.ts'
import type { Store } from '../../src/contract/index.ts'
import { Worker } from '../../src/index.ts'
import { listDeclaredSyncs } from '../../src/runner/declared-sync.ts'
import { createServer } from '../../src/server/server.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { addKey } from '../server/server-fixture.ts'
import { expectAccessible, launch, loaded, missing, NARROW, openPage, sideways, type PageOptions } from './browser.ts'
import { ports } from './console-fixture.ts'

const LARGE = { width: 1440, height: 900 }
const MIDDLE = { width: 1024, height: 768 }
const HOSTILE = '<img src=x onerror=alert(1)> \u202Ereversed\u202C '.padEnd(4_000, 'x')

if (missing !== null) console.info(`skipped: the connections in a browser: ${missing}`)

describe.skipIf(missing !== null)('the connections in a browser', () => {
  let browser: Browser
  let trouble: string[] = []
  beforeAll(async () => {
    browser = await launch()
  })
  afterAll(() => browser?.close())
  afterEach(() => expect(trouble).toEqual([]))

  async function open(options: PageOptions = {}): Promise<{ page: Page; store: Store; url: string }> {
    const store = await openSqliteStore({ file: ':memory:' })
    const worker = new Worker({ name: 'crm' })
    for (const name of ['contacts', 'deals'])
      worker.sync(name, {
        database: worker.database(name),
        mode: 'incremental',
        schedule: '1h',
        connection: 'hubspot',
        execute: async () => ({ changes: [], hasMore: false, nextState: {} }),
      } as never)
    const by = { actor: 'test', at: Date.now() }
    const key = { kind: 'api_key', key: 'sk_secret_value', fields: {} } as const
    await addConnection(store, { name: 'kraken', provider: 'kraken', credentials: key }, by)
    await addConnection(store, { name: 'stripe-eu', provider: 'stripe', credentials: key }, by)
    await addConnection(store, { name: 'hubspot', provider: 'hubspot', credentials: key }, by)
    const hubspot = (await store.connection('hubspot'))!
    const account = { id: HOSTILE, label: HOSTILE }
    await store.putConnection({ ...hubspot, account, replaces: hubspot }, by)
    await store.setConnectionStatus('hubspot', { status: 'needs_reauthorization', reason: HOSTILE }, by)
    // The console needs the address of the connect flow, which needs the port: a free one is taken first.
    const port = await findFreePort()
    const origin = `http://127.0.0.1:${port}`
    const server = createServer({
      store,
      ports,
      syncs: listDeclaredSyncs(worker),
      version: '0.0.0',
      connect: new ConnectFlow({
        ...checkConnectOptions({
          publicUrl: origin,
          providers: { hubspot: { clientId: 'client', clientSecret: 'x' } },
        }),
        store,
        ports,
        vendors: new VendorContexts(ports),
        onConnected: () => {},
      }),
    })
    const url = await server.listen(port)
    onTestFinished(async () => {
      await server.close()
      await store.close()
    })
    const page = await openPage(browser, url, { size: LARGE, ...options })
    trouble = page.trouble
    onTestFinished(() => page.context().close())
    await page.goto(`${url}/console/connections`)
    await loaded(page)
    return { page, store, url }
  }
  const card = (page: Page, name: string) => page.getByRole('region', { name: `Connection ${name}`, exact: true })

  test('those that need a person come first, with their syncs and the next step; names are text', async () => {
    const { page } = await open()
    await page.getByText('1 connection needs to be authorized again').waitFor()
    const cards = page.getByRole('region', { name: /^Connection / })
    await expect.poll(() => cards.count()).toBe(3)
    await expect
      .poll(() => cards.first().innerText())
      .toMatch(/hubspot[\s\S]*Needs authorization[\s\S]*Next step Authorize it again[\s\S]*contacts, deals/)
    expect(await page.locator('main img').count()).toBe(0)
    // A long name does not push the others away.
    expect((await cards.first().boundingBox())!.height).toBeLessThan(400)
    expect(await page.content()).not.toContain('sk_secret_value')
    await page.getByRole('searchbox').fill('stripe')
    await expect.poll(() => cards.count()).toBe(1)
    await expect.poll(() => page.url()).toMatch(/\?search=stripe$/)
    await page.getByRole('searchbox').fill('nothing')
    await page.getByRole('button', { name: 'Show all' }).click()
    await page.getByRole('button', { name: /^Active/ }).click()
    await expect.poll(() => cards.count()).toBe(2)
    // The overview names the same cause.
    await page.getByRole('link', { name: 'Overview', exact: true }).click()
    await page.getByText('Connection hubspot needs to be authorized').waitFor()
    await page.getByRole('link', { name: '1 connection to authorize' }).waitFor()
    await page.getByRole('link', { name: 'Open the connection' }).click()
    await expect.poll(() => cards.count()).toBe(1)
  })

  test('a connection is added by the form of its provider, and its secret is never shown', async () => {
    const { page, store } = await open()
    await page.getByRole('button', { name: 'New connection…' }).click()
    const dialog = page.getByRole('dialog', { name: 'New connection' })
    await dialog.getByLabel('Vendor').selectOption('ServiceNow')
    await dialog.getByText('Give the user a role with read access').waitFor()
    await expectAccessible(page, 'the form of a connection')
    await dialog.getByLabel(/^Name/).fill('service')
    await dialog.getByLabel('User name').fill('sync')
    await dialog.getByLabel('Password').fill('hunter-2')
    await dialog.getByLabel('Instance', { exact: true }).fill('acme.service-now.com')
    expect(await dialog.getByLabel('Password').getAttribute('type')).toBe('password')
    await page.setViewportSize(NARROW)
    expect(await sideways(page)).toBe(0)
    await dialog.getByRole('button', { name: 'Add connection' }).click()
    await dialog.waitFor({ state: 'detached' })
    await card(page, 'service').waitFor()
    expect(await store.connection('service')).toMatchObject({
      provider: 'servicenow',
      status: 'active',
      settings: { instance_host: 'acme.service-now.com' },
    })
    expect(JSON.parse((await store.connectionCredentials('service'))!.credentials)).toMatchObject({
      kind: 'basic',
      user: 'sync',
      password: 'hunter-2',
    })
    expect(await page.content()).not.toContain('hunter-2')
    // The same name again is refused, and says why.
    await page.getByRole('button', { name: 'New connection…' }).click()
    await dialog.getByLabel('Vendor').selectOption('Stripe')
    await dialog.getByLabel(/^Name/).fill('service')
    await dialog.getByLabel('Restricted key').fill('rk_test_1')
    await dialog.getByRole('button', { name: 'Add connection' }).click()
    await dialog.getByRole('alert').filter({ hasText: 'already has a connection service' }).waitFor()
  })

  test('a connection is disabled, enabled, revoked, gets new credentials and is removed, with a confirmation', async () => {
    const { page, store } = await open()
    const kraken = card(page, 'kraken')
    const status = async () => (await store.connection('kraken'))?.status
    await kraken.getByRole('button', { name: 'Disable' }).click()
    await expect.poll(status).toBe('disabled')
    await kraken.getByRole('button', { name: 'Enable' }).click()
    await expect.poll(status).toBe('active')
    await kraken.getByRole('button', { name: 'Revoke…' }).click()
    const confirm = page
      .getByRole('dialog', { name: 'Revoke kraken' })
      .getByRole('button', { name: 'Revoke connection' })
    expect(await confirm.isDisabled()).toBe(true)
    await page.getByLabel(/to confirm/).fill('krake')
    expect(await confirm.isDisabled()).toBe(true)
    await expectAccessible(page, 'the confirmation')
    await page.getByLabel(/to confirm/).fill('kraken')
    await confirm.click()
    await expect.poll(status).toBe('revoked')
    await kraken.getByRole('button', { name: 'Replace credentials…' }).click()
    const form = page.getByRole('dialog', { name: 'Replace the credentials of kraken' })
    await form.getByLabel('API key', { exact: true }).fill('new-key')
    await form.getByLabel('Private key').fill('new-secret')
    await form.getByRole('button', { name: 'Replace credentials' }).click()
    await expect.poll(status).toBe('active')
    expect(JSON.parse((await store.connectionCredentials('kraken'))!.credentials)).toMatchObject({
      kind: 'api_key',
      key: 'new-key',
      fields: { api_secret: 'new-secret' },
    })
    await kraken.getByRole('button', { name: 'Remove…' }).click()
    await page.getByLabel(/to confirm/).fill('kraken')
    await page.getByRole('button', { name: 'Remove connection' }).click()
    await kraken.waitFor({ state: 'detached' })
    expect(await store.connection('kraken')).toBeNull()
  })

  test('a test that the server cannot do says so, and a key with few scopes may not act', async () => {
    const { page, store, url } = await open()
    await card(page, 'stripe-eu').getByRole('button', { name: 'Test' }).click()
    await card(page, 'stripe-eu').getByText('The vendor was not asked.').waitFor()
    const reader = await addKey(store, ['sync:read', 'connections:read'])
    await page.addInitScript(`sessionStorage.setItem('tidemark.key', '${reader}')`)
    await page.goto(`${url}/console/connections`)
    await card(page, 'stripe-eu').waitFor()
    expect(await page.getByRole('button', { name: 'New connection…' }).isDisabled()).toBe(true)
    for (const button of await card(page, 'stripe-eu').getByRole('button').all())
      expect(await button.isDisabled(), await button.innerText()).toBe(true)
    const none = await addKey(store, ['sync:read'])
    await page.addInitScript(`sessionStorage.setItem('tidemark.key', '${none}')`)
    await page.goto(`${url}/console/connections`)
    await page.getByText('Not allowed for this key').first().waitFor()
  })

  test('a connection is authorized again in this browser: the link has its cookie', async () => {
    const { page } = await open()
    await card(page, 'hubspot').getByRole('button', { name: 'Authorize again' }).click()
    await page.waitForURL(/\/connect\/[\w-]+$/)
    await page.getByRole('heading', { name: /HubSpot/ }).waitFor()
    const cookies = await page.context().cookies()
    expect(cookies).toMatchObject([
      { name: expect.stringMatching(/^tidemark_connect_/), httpOnly: true, sameSite: 'Lax' },
    ])
  })

  for (const scheme of ['light', 'dark'] as const)
    for (const size of [LARGE, MIDDLE, NARROW])
      test(`fits and is accessible, ${scheme}, ${size.width} wide`, async () => {
        const { page } = await open({ scheme, size })
        await card(page, 'hubspot').waitFor()
        expect(await sideways(page)).toBe(0)
        await expectAccessible(page, `connections ${scheme} ${size.width}`)
      })
})

async function findFreePort(): Promise<number> {
  const probe = createHttpServer()
  await new Promise<void>((resolve) => void probe.listen(0, '127.0.0.1', resolve))
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  return port
}
