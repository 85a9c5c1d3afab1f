import type { IncomingMessage, ServerResponse } from 'node:http'
import { krakenSignature } from '@tidemark/simulators'
import { describe, expect, onTestFinished, test } from 'vitest'
import { startOAuthVendor, type VendorQuirks } from '../../examples/saas-app/oauth-vendor.ts'
import { VendorContexts } from '../../src/connections/connect/vendor-context.ts'
import { defineProvider, type Provider } from '../../src/connections/define-provider.ts'
import { revokeGrant } from '../../src/connections/oauth/revoke-grant.ts'
import { refreshTokens } from '../../src/connections/oauth/token-requests.ts'
import { requireOAuth, resolveProvider, templateValues } from '../../src/connections/resolve-provider.ts'
import { systemClock } from '../../src/platform/clock.ts'
import {
  ACCOUNTS,
  CLIENT,
  credentialsOf,
  hubspotOptions,
  isAppPage,
  openConnectFixture,
  startHubspot,
  type ConnectFixture,
  type Page,
} from './connect-fixture.ts'
import { serveVendor } from './serve-vendor.ts'

const TOKEN = expect.stringMatching(/^\S{20,}$/) as string

describe('the connect flow', () => {
  test('connects an account: page, vendor, callback, connection, and back to the program', async () => {
    const fixture = await openConnectFixture(undefined, '/sync')
    const vendor = await startHubspot(fixture.base)
    fixture.configure({ providers: hubspotOptions(vendor), appName: 'Harbour' })
    vendor.signIn = '1001'
    const returnTo = `${new URL(fixture.base).origin}/app/settings?tab=2`
    const { browser, url } = await fixture.start({ returnTo })

    const page = await browser.open(url)
    expect(page.status).toBe(200)
    expect(page.text).toContain('<h1>Connect HubSpot to Harbour</h1>')
    expect(page.text).toContain('href="/sync/connect/page.css"')
    expect(page.headers.get('content-security-policy')).toBe(
      `default-src 'none'; script-src 'self'; style-src 'self'; form-action 'self' ${vendor.url}; base-uri 'none'; frame-ancestors 'none'`,
    )
    const end = await browser.submit(page, {}, isAppPage)
    expect(end.url).toBe(`${returnTo}&connection=hubspot&connection_status=connected`)
    expect(end.via[0]).toMatch(/\/oauth\/authorize\?.*code_challenge_method=S256/)

    const acme = fixture.store.forTenant('acme')
    expect(await acme.connection('hubspot')).toMatchObject({
      provider: 'hubspot',
      status: 'active',
      account: { id: '1001', label: 'ada.example' },
      scopes: ['crm.objects.companies.read', 'crm.objects.contacts.read', 'crm.objects.deals.read', 'oauth'],
    })
    expect(await credentialsOf(acme)).toMatchObject({
      kind: 'oauth',
      accessToken: TOKEN,
      refreshToken: TOKEN,
      client: null,
    })
    expect(fixture.events).toEqual([
      {
        tenant: 'acme',
        connection: 'hubspot',
        provider: 'hubspot',
        account: { id: '1001', label: 'ada.example' },
        isNew: true,
      },
    ])
    expect(await fixture.store.connection('hubspot')).toBeNull()
  })

  test('a pop-up ends on a page that reports to the origin of the program', async () => {
    const fixture = await openConnectFixture()
    const vendor = await startHubspot(fixture.base)
    vendor.signIn = '1001'
    fixture.configure({ providers: hubspotOptions(vendor), returnTo: ['https://app.example.com/'] })
    const { browser, url } = await fixture.start({ returnTo: 'https://app.example.com/settings' })
    const result = async (): Promise<unknown> =>
      JSON.parse((await browser.open(url.replace('/connect/', '/connect/result/'))).text)
    expect(await result()).toEqual({ data: { status: 'open', connection: 'hubspot', provider: 'hubspot' } })
    const page = await browser.submit(await browser.open(`${url}?popup=1`))
    expect(page.text).toContain('<h1>HubSpot is connected</h1>')
    expect(page.text).toContain('data-origin="https://app.example.com"')
    expect(await result()).toEqual({ data: { status: 'connected', connection: 'hubspot', provider: 'hubspot' } })
  })

  test('a user who declines may try again, or leave', async () => {
    const fixture = await openConnectFixture()
    const vendor = await startHubspot(fixture.base)
    fixture.configure({ providers: hubspotOptions(vendor) })
    vendor.signIn = 'nobody at all'
    const { browser, url } = await fixture.start({ returnTo: `${fixture.base}/app/` })
    const declined = await browser.submit(await browser.open(url))
    expect(declined.text).toContain('<p class="failure" role="alert">You did not grant access at HubSpot.')
    expect(declined.text).toContain('connection_status=cancelled')
    vendor.signIn = '1001'
    expect((await browser.submit(declined, {}, isAppPage)).url).toContain('connection_status=connected')
  })

  test('a vendor that is down, or does not know the client, is named on the page', async () => {
    const fixture = await openConnectFixture()
    const vendor = await startHubspot(fixture.base, { quirks: { refusesWith200: true } })
    vendor.signIn = '1001'
    fixture.configure({ providers: { hubspot: { ...CLIENT, clientSecret: 'wrong', baseUrl: vendor.url } } })
    const { browser, url } = await fixture.start({})
    const refused = await browser.submit(await browser.open(url))
    expect(refused.text).toContain('HubSpot does not accept the registration of this app')
    expect(fixture.logs.join('\n')).toContain('invalid_client')
    const callback = await browser.submit(refused, {}, ({ pathname }) => pathname.includes('/connect/callback/'))
    await vendor.close()
    expect((await browser.open(callback.url)).text).toContain('HubSpot did not answer')
    expect(await fixture.store.forTenant('acme').connections()).toEqual([])
  })

  test('a token that the API rejects connects nothing', async () => {
    const fixture = await openConnectFixture()
    const vendor = await startHubspot(fixture.base, {
      api: (_request, response) => response.writeHead(403, { 'content-type': 'application/json' }).end('{}'),
    })
    vendor.signIn = '1001'
    fixture.configure({ providers: hubspotOptions(vendor) })
    const { browser, url } = await fixture.start({})
    const page = await browser.submit(await browser.open(url))
    expect(page.text).toContain('HubSpot did not accept these credentials. Check them, and their permissions.')
    expect(await fixture.store.forTenant('acme').connections()).toEqual([])
  })
})

describe('the differences of vendors, played in front of a certified server', () => {
  async function connect(
    name: string,
    quirks: VendorQuirks,
    account: unknown,
    more: { provider?: Provider; clientAuth?: 'basic' | 'form' } = {},
  ): Promise<{ fixture: ConnectFixture; page: Page; requests: readonly string[]; url: string }> {
    const fixture = await openConnectFixture()
    const vendor = await startOAuthVendor({
      ...CLIENT,
      redirectUris: [`${fixture.base}/connect/callback/${name}`],
      accounts: ACCOUNTS,
      quirks,
      ...(more.clientAuth !== undefined && { clientAuth: more.clientAuth }),
      api: (_request, response, owner) => {
        response.writeHead(owner === null ? 401 : 200, { 'content-type': 'application/json' })
        response.end(owner === null ? '{}' : JSON.stringify(account))
      },
    })
    onTestFinished(() => vendor.close())
    vendor.signIn = '1001'
    fixture.configure({
      providers: { [name]: { ...CLIENT, baseUrl: vendor.url, ...(more.provider && { provider: more.provider }) } },
    })
    const { browser, url } = await fixture.start({ provider: name, name: 'main' })
    const page = await browser.submit(await browser.open(url))
    return { fixture, page, requests: vendor.requests, url: vendor.url }
  }
  const stored = async ({ fixture }: { fixture: ConnectFixture }): Promise<unknown> => ({
    ...(await fixture.store.forTenant('acme').connection('main')),
    credentials: await credentialsOf(fixture.store.forTenant('acme'), 'main'),
  })

  test('Linear: comma-separated scopes, GraphQL, status 201, no token_type', async () => {
    const world = await connect(
      'linear',
      {
        authorizePath: '/oauth/authorize',
        tokenPath: '/oauth/token',
        scopeSeparator: ',',
        rewriteTokens: (tokens) => ({ status: 201, body: JSON.stringify({ ...tokens, token_type: undefined }) }),
      },
      { data: { viewer: { id: 'u', organization: { id: 'org-1', name: 'Acme' } } } },
    )
    expect(world.page.text).toContain('Linear is connected')
    expect(await stored(world)).toMatchObject({ scopes: ['read'], account: { id: 'org-1', label: 'Acme' } })
    expect(world.requests).toContain('POST /graphql')
  })

  test('GitHub: a form as the answer, no expiry, no refresh token', async () => {
    const world = await connect(
      'github',
      {
        authorizePath: '/login/oauth/authorize',
        tokenPath: '/login/oauth/access_token',
        statesNoIssuer: true,
        rewriteTokens: ({ access_token: token }) => ({
          type: 'application/x-www-form-urlencoded',
          body: new URLSearchParams({
            access_token: String(token),
            scope: 'repo,read:org',
            token_type: 'bearer',
          }).toString(),
        }),
      },
      { id: 9007199254740991, login: 'ada' },
    )
    expect(await stored(world)).toMatchObject({
      account: { id: '9007199254740991', label: 'ada' },
      scopes: ['read:org', 'repo'],
      credentials: { refreshToken: null, expiresAt: null, renewAt: null },
    })
  })

  test('Salesforce: the URL of the instance in the answer, and no expires_in', async () => {
    const world = await connect(
      'salesforce',
      {
        authorizePath: '/services/oauth2/authorize',
        tokenPath: '/services/oauth2/token',
        rewriteTokens: (tokens, url) => ({
          body: JSON.stringify({ ...tokens, expires_in: undefined, instance_url: `${url}/`, id: `${url}/id/00D/005` }),
        }),
      },
      { records: [{ Id: '00D1', Name: 'Acme' }] },
    )
    expect(await stored(world)).toMatchObject({
      account: { id: '00D1', label: 'Acme' },
      settings: { login_host: 'login.salesforce.com', instance_url: world.url },
      credentials: { expiresAt: null, refreshToken: TOKEN },
    })
    expect(world.requests).toContain('GET /services/data/v60.0/query')
  })

  test.each([
    'http://169.254.169.254',
    'https://10.0.0.1',
    'https://db.internal',
    'https://a.example:8443',
    'file:///etc',
  ])('XD29: Salesforce: an instance at %s is refused', async (instance) => {
    const world = await connect(
      'salesforce',
      {
        authorizePath: '/services/oauth2/authorize',
        tokenPath: '/services/oauth2/token',
        rewriteTokens: (tokens) => ({ body: JSON.stringify({ ...tokens, instance_url: instance }) }),
      },
      {},
    )
    expect(world.page.text).toContain('Salesforce gave an answer that could not be read')
    expect(await stored(world)).toEqual({ credentials: null })
  })

  test('Airtable: a basic header, and a required code challenge', async () => {
    const world = await connect(
      'airtable',
      { authorizePath: '/oauth2/v1/authorize', tokenPath: '/oauth2/v1/token' },
      { id: 'usr1', email: 'ada@acme.example' },
      { clientAuth: 'basic' },
    )
    expect(await stored(world)).toMatchObject({ account: { id: 'usr1', label: 'ada@acme.example' } })
  })

  test('one of your own: a JSON request, nested tokens, token_type user', async () => {
    const provider = defineProvider({
      name: 'chat',
      title: 'Chat',
      documentation: 'https://chat.example.com',
      source: null,
      oauth: {
        authorizeUrl: 'https://chat.example.com/auth',
        tokenUrl: 'https://chat.example.com/token',
        scopes: ['a', 'b'],
        pkce: 'supported',
        clientAuth: 'form',
        tokenFormat: 'json',
        tokensAt: 'authed_user',
        refreshTokens: 'rotating',
        expiry: 'stated',
      },
      account: { url: 'https://chat.example.com/me', id: 'user.id', label: 'user.name' },
    })
    const world = await connect(
      'chat',
      {
        rewriteTokens: (tokens) => ({
          body: JSON.stringify({ ok: true, authed_user: { ...tokens, token_type: 'user' } }),
        }),
      },
      { user: { id: 'U1', name: '' } },
      { provider },
    )
    expect(await stored(world)).toMatchObject({ account: { id: 'U1', label: 'U1' }, scopes: ['a', 'b'] })
  })

  test('XD29: without a base URL, no request goes to a private address', async () => {
    const fixture = await openConnectFixture()
    const vendor = await startHubspot(fixture.base)
    vendor.signIn = '1001'
    const provider = resolveProvider('hubspot', hubspotOptions(vendor))
    fixture.configure({ providers: { hubspot: { ...CLIENT, provider } } })
    const { browser, url } = await fixture.start({})
    const page = await browser.submit(await browser.open(url))
    expect(page.text).toContain('HubSpot gave an answer that could not be read')
    expect(vendor.requests).not.toContain('POST /oauth/v3/token')
  })
})

describe('tokens of a connection', () => {
  test('are renewed with rotation, and a used refresh token is refused; a grant is revoked at the vendor', async () => {
    const fixture = await openConnectFixture()
    const vendor = await startOAuthVendor({
      ...CLIENT,
      redirectUris: [`${fixture.base}/connect/callback/oauth2`],
      accounts: ACCOUNTS,
      clientAuth: 'basic',
      quirks: { authorizePath: '/authorize', revokePath: '/revoke' },
      api: (_request, response, account) =>
        response
          .writeHead(account === null ? 401 : 200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ sub: account, name: 'Ada' })),
    })
    onTestFinished(() => vendor.close())
    vendor.signIn = '1001'
    const providers = { oauth2: { ...CLIENT, baseUrl: vendor.url } }
    fixture.configure({ providers })
    const { browser, url } = await fixture.start({ provider: 'oauth2' })
    await browser.submit(await browser.open(url))
    const { accessToken, refreshToken } = (await credentialsOf(fixture.store.forTenant('acme'), 'oauth2')) as {
      accessToken: string
      refreshToken: string
    }

    const provider = resolveProvider('oauth2', providers)
    const silent = (): void => {}
    const ports = {
      clock: systemClock,
      random: { next: Math.random },
      log: { debug: silent, info: silent, warn: silent, error: silent },
    }
    const context = new VendorContexts(ports).create(provider, new AbortController().signal)
    const values = templateValues(provider, {})
    const refresh = (token: string): ReturnType<typeof refreshTokens> =>
      refreshTokens(requireOAuth(provider), provider.client!, token, values, context)
    const renewed = await refresh(refreshToken)
    expect(renewed).toMatchObject({ kind: 'granted', lifetimeMs: 3_600_000, refreshToken: TOKEN })
    if (renewed.kind !== 'granted') throw new Error('refused')
    expect(renewed.refreshToken).not.toBe(refreshToken)

    const tokens = { accessToken: renewed.accessToken, refreshToken: renewed.refreshToken }
    expect(await revokeGrant(requireOAuth(provider), provider.client!, tokens, values, context)).toBe(true)
    expect(await refresh(renewed.refreshToken!)).toMatchObject({ kind: 'refused', reason: 'invalid_grant' })
    const wrong = { ...provider.client!, secret: 'wrong' }
    expect(await revokeGrant(requireOAuth(provider), wrong, tokens, values, context)).toBe(false)
    expect(await refresh(refreshToken)).toMatchObject({ kind: 'refused', reason: 'invalid_grant' })
    expect(accessToken).not.toBe(renewed.accessToken)
  })
})

describe('a form', () => {
  const answer = (response: ServerResponse, status: number, body: unknown): void =>
    void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))

  test('connects with an API key; errors are shown in place, and the key never comes back', async () => {
    const keys: (string | undefined)[] = []
    const vendor = await serveVendor((request, response) => {
      keys.push(request.headers.authorization)
      if (request.headers.authorization !== 'Bearer good-api-key') return answer(response, 401, {})
      return answer(response, 200, { portalId: 7, uiDomain: '<b>app</b>' })
    })
    const fixture = await openConnectFixture()
    fixture.configure({ providers: { hubspot: { baseUrl: vendor } } })
    const { browser, url } = await fixture.start({ returnTo: `${fixture.base}/app/` })
    const page = await browser.open(url)
    expect(page.text).toContain('<li>Open the tab Auth, and copy the access token. It begins with pat-.</li>')
    expect(page.text).toContain('type="password"')

    const empty = await browser.submit(page, { access_token: '  ' })
    expect([empty.status, empty.text.includes('Enter the access token.')]).toEqual([422, true])
    expect(empty.text).toContain('aria-invalid="true"')
    const wrong = await browser.submit(empty, { access_token: 'wrong-api-key' })
    expect([wrong.status, wrong.text.includes('HubSpot did not accept these credentials')]).toEqual([422, true])
    expect(wrong.text).not.toContain('wrong-api-key')

    const end = await browser.submit(wrong, { access_token: 'good-api-key' }, isAppPage)
    expect(end.url).toContain('connection_status=connected')
    expect(keys).toEqual(['Bearer wrong-api-key', 'Bearer good-api-key'])
    const acme = fixture.store.forTenant('acme')
    expect(await credentialsOf(acme)).toEqual({ kind: 'api_key', key: 'good-api-key', fields: {} })
    expect((await acme.connection('hubspot'))?.account).toEqual({ id: '7', label: '<b>app</b>' })
    const again = await fixture.start({})
    expect((await again.browser.open(again.url)).text).toContain('account &#60;b&#62;app&#60;/b&#62;')
  })

  test('connects with a user and a password, at the host that was entered', async () => {
    const vendor = await serveVendor((request, response) =>
      request.headers.authorization === `Basic ${Buffer.from('ada:p:w').toString('base64')}`
        ? answer(response, 200, { result: [{ sys_id: 'abc', user_name: 'ada' }] })
        : answer(response, 401, {}),
    )
    const fixture = await openConnectFixture()
    fixture.configure({ providers: { servicenow: { baseUrl: vendor } } })
    const { browser, url } = await fixture.start({ provider: 'servicenow', method: 'form' })
    const fields = { instance_host: 'evil.example.com', user: 'ada', password: 'p:w' }
    const refused = await browser.submit(await browser.open(url), fields)
    expect(refused.text).toContain('Enter a host name such as acme.service-now.com.')
    expect(refused.text).toContain('value="evil.example.com"')
    expect(refused.text).not.toContain('p:w')
    const page = await browser.submit(refused, { ...fields, instance_host: 'https://acme.service-now.com/nav_to.do' })
    expect(page.text).toContain('ServiceNow is connected')
    const acme = fixture.store.forTenant('acme')
    expect(await acme.connection('servicenow')).toMatchObject({
      settings: { instance_host: 'acme.service-now.com' },
      account: { label: 'ada' },
    })
    expect(await credentialsOf(acme, 'servicenow')).toEqual({ kind: 'basic', user: 'ada', password: 'p:w', fields: {} })
  })

  test('an id of an instance is unique only with its host', async () => {
    const { identifyAccount } = await import('../../src/connections/identify-account.ts')
    const provider = resolveProvider('servicenow', { servicenow: {} })
    const silent = (): void => {}
    const ports = {
      clock: systemClock,
      random: { next: Math.random },
      log: { debug: silent, info: silent, warn: silent, error: silent },
    }
    const fetch = async (): Promise<Response> => Response.json({ result: [{ sys_id: 'abc', user_name: 'ada' }] })
    const context = new VendorContexts(ports, fetch, fetch).create(provider, new AbortController().signal)
    const at = (host: string): ReturnType<typeof identifyAccount> =>
      identifyAccount(provider, (request) => request, templateValues(provider, { instance_host: host }), context)
    expect(await at('one.service-now.com')).toEqual({ id: 'one.service-now.com/abc', label: 'ada' })
    expect((await at('two.service-now.com')).id).toBe('two.service-now.com/abc')
  })

  test('connects with a signed request where the vendor wants one', async () => {
    const secret = Buffer.from('a private key').toString('base64')
    const vendor = await serveVendor(async (request, response) => {
      const form = new URLSearchParams(await readText(request))
      const signature = krakenSignature(request.url!, form.get('nonce')!, form.toString(), secret)
      return request.headers['api-key'] === 'key-1' && request.headers['api-sign'] === signature
        ? answer(response, 200, { error: [], result: { iban: 'AA88 N84G', apiKeyName: 'sync' } })
        : answer(response, 200, { error: ['EAPI:Invalid signature'] })
    })
    const fixture = await openConnectFixture()
    fixture.configure({ providers: { kraken: { baseUrl: vendor } } })
    const { browser, url } = await fixture.start({ provider: 'kraken' })
    const wrong = await browser.submit(await browser.open(url), { api_key: 'key-1', api_secret: 'wrong' })
    expect(wrong.text).toContain('Kraken did not accept these credentials')
    expect((await browser.submit(wrong, { api_key: 'key-1', api_secret: secret })).text).toContain(
      'Kraken is connected',
    )
    const acme = fixture.store.forTenant('acme')
    expect(await credentialsOf(acme, 'kraken')).toEqual({
      kind: 'api_key',
      key: 'key-1',
      fields: { api_secret: secret },
    })
    expect((await acme.connection('kraken'))?.account).toEqual({ id: 'AA88 N84G', label: 'sync' })
  })

  test('asks for the client that a user registered in the own instance', async () => {
    const fixture = await openConnectFixture()
    const vendor = await startOAuthVendor({
      ...CLIENT,
      redirectUris: [`${fixture.base}/connect/callback/servicenow`],
      accounts: ACCOUNTS,
      quirks: { authorizePath: '/oauth_auth.do', tokenPath: '/oauth_token.do' },
      api: (_request, response, owner) =>
        answer(response, owner === null ? 401 : 200, { result: [{ sys_id: owner, user_name: 'ada' }] }),
    })
    onTestFinished(() => vendor.close())
    vendor.signIn = '1001'
    fixture.configure({ providers: { servicenow: { baseUrl: vendor.url } } })
    const { browser, url } = await fixture.start({ provider: 'servicenow' })
    const page = await browser.submit(await browser.open(url), {
      instance_host: 'acme.service-now.com',
      client_id: CLIENT.clientId,
      client_secret: CLIENT.clientSecret,
    })
    expect(page.text).toContain('ServiceNow is connected')
    const acme = fixture.store.forTenant('acme')
    expect(await credentialsOf(acme, 'servicenow')).toMatchObject({
      kind: 'oauth',
      client: {
        clientId: CLIENT.clientId,
        clientSecret: CLIENT.clientSecret,
        tokenUrl: `${vendor.url}/oauth_token.do`,
      },
    })
    expect((await acme.connection('servicenow'))?.settings).toEqual({ instance_host: 'acme.service-now.com' })
  })
})

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
