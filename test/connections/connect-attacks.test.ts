import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { describe, expect, test } from 'vitest'
import { checkReturnTo } from '../../src/connections/connect/return-to.ts'
import { temporaryFolder } from './temporary-folder.ts'
import {
  CLIENT,
  credentialsOf,
  expectRefused,
  hubspotOptions,
  isAppPage,
  isCallback,
  openConnectFixture,
  startHubspot,
  TestBrowser,
  type ConnectFixture,
} from './connect-fixture.ts'
import type { OAuthVendor } from '../../examples/saas-app/oauth-vendor.ts'

async function open(): Promise<{ fixture: ConnectFixture; vendor: OAuthVendor }> {
  const fixture = await openConnectFixture()
  const vendor = await startHubspot(fixture.base)
  vendor.signIn = '1001'
  fixture.configure({ providers: hubspotOptions(vendor) })
  return { fixture, vendor }
}

const tokenRequests = ({ requests }: OAuthVendor): number =>
  requests.filter((request) => request === 'POST /oauth/v3/token').length

describe('session fixation', () => {
  test('a link that an attacker passes to a victim does not work in the browser of the victim', async () => {
    const { fixture, vendor } = await open()
    const { url } = await fixture.start({ tenant: 'attacker' })
    const victim = new TestBrowser()
    expectRefused(await victim.open(url), 'This link belongs to another browser')
    // Not even with a cookie of a session of the victim.
    await fixture.start({ tenant: 'victim' }, victim)
    expectRefused(await victim.open(url), 'This link belongs to another browser')
    expect(vendor.requests).toEqual([])
  })

  test('a victim who is sent to the vendor with the state of an attacker connects nothing', async () => {
    const { fixture, vendor } = await open()
    const { browser: attacker, url } = await fixture.start({ tenant: 'attacker' })
    const authorize = await attacker.submit(await attacker.open(url), {}, () => true)
    const victim = new TestBrowser()
    vendor.signIn = '2002'
    expectRefused(await victim.open(authorize.url), 'This link belongs to another browser')
    expect(tokenRequests(vendor)).toBe(0)
    expect(await fixture.store.forTenant('attacker').connections()).toEqual([])
  })

  test('a stolen link is of no use in another browser', async () => {
    const { fixture } = await open()
    const { url } = await fixture.start({ tenant: 'victim' })
    const thief = new TestBrowser()
    expectRefused(await thief.open(url), 'This link belongs to another browser')
    const posted = await fetch(url, { method: 'POST', body: 'form_token=x' })
    expect(posted.status).toBe(403)
    expect(await (await fetch(url.replace('/connect/', '/connect/result/'))).json()).toMatchObject({
      data: { status: 'expired', connection: null },
    })
  })

  test('the cookie is sent to this host alone, over TLS alone, and to no script', async () => {
    const { fixture, vendor } = await open()
    fixture.configure({ publicUrl: 'https://app.example.com/sync', providers: hubspotOptions(vendor) })
    const { cookie, url } = await fixture.flow.createSession({ tenant: 'acme', provider: 'hubspot' })
    expect(cookie).toMatch(
      /^__Host-tidemark_connect_[0-9a-f]{16}=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=900; HttpOnly; SameSite=Lax; Secure$/,
    )
    expect(url).toMatch(/^https:\/\/app\.example\.com\/sync\/connect\/[A-Za-z0-9_-]{43}$/)
    for (const publicUrl of ['http://app.example.com', 'http://10.0.0.1', 'ftp://localhost', 'app.example.com'])
      expect(() => fixture.configure({ publicUrl })).toThrow(/publicUrl/)
  })
})

describe('CSRF', () => {
  test('a form of another site is refused, with and without the cookie', async () => {
    const { fixture, vendor } = await open()
    const { browser, url } = await fixture.start({})
    const page = await browser.open(url)
    const cookie = [...browser.cookies(url)].map(([name, value]) => `${name}=${value}`).join('; ')
    const token = /name="form_token" value="([^"]+)"/.exec(page.text)![1]!
    const post = (headers: Record<string, string>, body: string): Promise<Response> =>
      fetch(url, {
        method: 'POST',
        redirect: 'manual',
        headers: { cookie, 'content-type': 'application/x-www-form-urlencoded', ...headers },
        body,
      })
    // Without the token of the page, or with one of another session.
    expect((await post({}, '')).status).toBe(403)
    expect((await post({}, `form_token=${'x'.repeat(token.length)}`)).status).toBe(403)
    const other = await fixture.start({})
    const otherPage = await other.browser.open(other.url)
    const otherToken = /name="form_token" value="([^"]+)"/.exec(otherPage.text)![1]!
    expect((await post({}, `form_token=${otherToken}`)).status).toBe(403)
    // With the token, but from another site.
    expect((await post({ origin: 'https://evil.example' }, `form_token=${token}`)).status).toBe(403)
    expect((await post({ origin: 'null' }, `form_token=${token}`)).status).toBe(403)
    expect((await post({ 'sec-fetch-site': 'cross-site' }, `form_token=${token}`)).status).toBe(403)
    expect(vendor.requests).toEqual([])
    expect((await post({ origin: new URL(url).origin }, `form_token=${token}`)).status).toBe(303)
  })

  test('a callback with the code of an attacker connects nothing in the browser of a victim', async () => {
    const { fixture, vendor } = await open()
    const { browser: attacker, url } = await fixture.start({ tenant: 'attacker' })
    const callback = await attacker.submit(await attacker.open(url), {}, isCallback)
    const victim = new TestBrowser()
    const own = await fixture.start({ tenant: 'victim' }, victim)
    await victim.submit(await victim.open(own.url), {}, () => true)
    // As it is, and with the state of the victim cut out.
    expectRefused(await victim.open(callback.url), 'This link belongs to another browser')
    const bare = new URL(callback.url)
    bare.searchParams.delete('state')
    expectRefused(await victim.open(bare.href), 'This answer does not belong to your session')
    expect(tokenRequests(vendor)).toBe(0)
  })

  test('opening a link changes nothing, so a preview of it does not use it up', async () => {
    const { fixture } = await open()
    const { browser, url } = await fixture.start({ returnTo: `${fixture.base}/app/` })
    for (let time = 0; time < 3; time++) expect((await browser.open(url)).status).toBe(200)
    expect((await fetch(url, { method: 'HEAD' })).status).toBe(403)
    const end = await browser.submit(await browser.open(url), {}, isAppPage)
    expect(end.url).toContain('connection_status=connected')
  })
})

describe('open redirect', () => {
  const allowed = ['https://app.example.com/settings', 'https://other.example.com/']
  test.each([
    ['https://app.example.com/settings', true],
    ['https://app.example.com/settings/connections?x=1#top', true],
    ['https://other.example.com/any', true],
    ['https://app.example.com/settingsx', false],
    ['https://app.example.com/', false],
    ['https://app.example.com/settings/../admin', false],
    ['https://app.example.com/settings/%2e%2e/admin', false],
    ['https://app.example.com/settings/%2E%2E%2fadmin', false],
    ['https://app.example.com/settings\\..\\admin', false],
    ['https://app.example.com.evil.example/settings', false],
    ['https://app.example.com@evil.example/settings', false],
    ['https://user@app.example.com/settings', false],
    ['http://app.example.com/settings', false],
    ['https://app.example.com:8443/settings', false],
    ['//evil.example/settings', false],
    ['/settings', false],
    ['javascript:alert(1)', false],
    ['https:evil.example', false],
    ['https://app.example.com/settings\n', false],
    ['\thttps://app.example.com/settings', false],
  ])('%j is allowed: %s', (returnTo, isAllowed) => {
    if (isAllowed) expect(checkReturnTo(returnTo, allowed).href).toBe(returnTo)
    else expect(() => checkReturnTo(returnTo, allowed)).toThrow('`returnTo` is not allowed')
  })

  test('a link with another URL is not created', async () => {
    const { fixture } = await open()
    await expect(fixture.start({ returnTo: 'https://evil.example/' })).rejects.toMatchObject({
      code: 'CONNECTION_INVALID',
    })
  })

  test('the list is checked again at the end, and has no entry that allows everything', async () => {
    const { fixture } = await open()
    const { browser, url } = await fixture.start({ returnTo: `${fixture.base}/app/` })
    const page = await browser.open(url)
    fixture.configure({ returnTo: [] })
    expect((await browser.submit(page, {}, isAppPage)).status).toBe(500)
    for (const entry of ['', '*', '/', 'example.com', 'https://', 'https://a.example/?x', 'https://a@b.example/'])
      expect(() => fixture.configure({ returnTo: [entry] })).toThrow(/connect\.returnTo/)
  })

  test('nothing in the query of a page or a callback is a place to go to', async () => {
    const { fixture, vendor } = await open()
    const { browser, url } = await fixture.start({})
    const end = await browser.submit(await browser.open(`${url}?returnTo=https://evil.example&popup=1`))
    expect(new URL(end.url).host).toBe(new URL(fixture.base).host)
    expect(end.text).not.toContain('evil.example')
    expect(tokenRequests(vendor)).toBe(1)
  })
})

describe('mix-up', () => {
  test('an answer that states another issuer is refused before its code is sent anywhere', async () => {
    const { fixture, vendor } = await open()
    const { browser, url } = await fixture.start({})
    const callback = new URL((await browser.submit(await browser.open(url), {}, isCallback)).url)
    expect(callback.searchParams.get('iss')).toBe(vendor.url)
    callback.searchParams.set('iss', 'https://evil.example')
    const page = await browser.open(callback.href)
    expect(page.text).toContain('The answer came from another server than HubSpot')
    expect(tokenRequests(vendor)).toBe(0)
    expect(await fixture.store.forTenant('acme').connections()).toEqual([])
  })

  test('a malicious vendor that forwards the user to an honest one gets neither the code nor the verifier', async () => {
    const { fixture, vendor: honest } = await open()
    const seen: string[] = []
    const evil = await startHubspot(fixture.base, { provider: 'evil', quirks: { statesNoIssuer: true } })
    fixture.configure({
      providers: {
        ...hubspotOptions(honest),
        evil: { provider: 'hubspot', title: 'Evil', ...CLIENT, baseUrl: evil.url },
      },
    })
    const { browser, url } = await fixture.start({ provider: 'evil' })
    const sent = await browser.submit(await browser.open(url), {}, () => true)
    // The malicious authorization endpoint redirects to the honest one, with the client and the state of this session.
    const forwarded = new URL(sent.url)
    forwarded.host = new URL(honest.url).host
    forwarded.searchParams.set('redirect_uri', `${fixture.base}/connect/callback/hubspot`)
    const page = await browser.open(forwarded.href)
    expectRefused(page, 'This answer does not belong to your session')
    expect(page.url).toContain('/connect/callback/hubspot?')
    expect(page.url).toContain('code=')
    expect([tokenRequests(evil), tokenRequests(honest), seen.length]).toEqual([0, 0, 0])
  })
})

describe('code injection', () => {
  test('a stolen code is refused by the vendor, because the verifier of another session does not fit', async () => {
    const { fixture, vendor } = await open()
    const victim = await fixture.start({ tenant: 'victim' })
    const stolen = new URL((await victim.browser.submit(await victim.browser.open(victim.url), {}, isCallback)).url)
    const attacker = await fixture.start({ tenant: 'attacker' })
    vendor.signIn = '2002'
    const own = new URL((await attacker.browser.submit(await attacker.browser.open(attacker.url), {}, isCallback)).url)
    own.searchParams.set('code', stolen.searchParams.get('code')!)
    const page = await attacker.browser.open(own.href)
    expect(tokenRequests(vendor)).toBe(1)
    expect(page.text).toContain('HubSpot did not accept the authorization')
    expect(await fixture.store.forTenant('attacker').connections()).toEqual([])
  })

  test('a state with another secret is refused, and does not use up the session', async () => {
    const { fixture, vendor } = await open()
    const { browser, url } = await fixture.start({ returnTo: `${fixture.base}/app/` })
    const callback = await browser.submit(await browser.open(url), {}, isCallback)
    const forged = new URL(callback.url)
    const [id] = forged.searchParams.get('state')!.split('.')
    forged.searchParams.set('state', `${id}.${'A'.repeat(43)}`)
    expectRefused(await browser.open(forged.href), 'This answer does not belong to your session')
    expect(tokenRequests(vendor)).toBe(0)
    expect((await browser.open(callback.url, isAppPage)).url).toContain('connection_status=connected')
  })

  test('a parameter that is sent twice counts as absent', async () => {
    const { fixture, vendor } = await open()
    const { browser, url } = await fixture.start({})
    const callback = await browser.submit(await browser.open(url), {}, isCallback)
    const page = await browser.open(`${callback.url}&code=injected`)
    expect(page.text).toContain('HubSpot reported an error')
    expect(tokenRequests(vendor)).toBe(0)
  })
})

describe('replayed callbacks', () => {
  test('a callback connects once, also when it is sent many times at once', async () => {
    const { fixture, vendor } = await open()
    const { browser, url } = await fixture.start({ returnTo: `${fixture.base}/app/` })
    const callback = await browser.submit(await browser.open(url), {}, isCallback)
    const pages = await Promise.all(Array.from({ length: 5 }, () => browser.open(callback.url, isAppPage)))
    expect(pages.filter((page) => page.url.includes('connection_status=connected'))).toHaveLength(1)
    expect(pages.filter((page) => page.status === 403)).toHaveLength(4)
    expect(tokenRequests(vendor)).toBe(1)
    expect(fixture.events).toHaveLength(1)
    expectRefused(await browser.open(callback.url), 'This link was already used')
  })

  test('a link is used once, and a used one starts no second authorization', async () => {
    const { fixture, vendor } = await open()
    const { browser, url } = await fixture.start({})
    const page = await browser.open(url)
    await browser.submit(page)
    expectRefused(await browser.submit(page), 'This link was already used')
    expect((await browser.open(url)).text).toContain('HubSpot is connected')
    expect(tokenRequests(vendor)).toBe(1)
  })

  test('a link and its callback expire', async () => {
    const { fixture, vendor } = await open()
    const { browser, url } = await fixture.start({})
    const callback = await browser.submit(await browser.open(url), {}, isCallback)
    fixture.clock.offsetMs = 15 * 60_000
    expectRefused(await browser.open(callback.url), 'This link has expired')
    expectRefused(await browser.open(url), 'This link has expired')
    expect(tokenRequests(vendor)).toBe(0)
  })
})

describe('token substitution between tenants', () => {
  test('the sealed secrets of one session do not work in another, nor credentials in another tenant', async () => {
    const file = join(temporaryFolder(), 'store.db')
    const fixture = await openConnectFixture(file)
    const vendor = await startHubspot(fixture.base)
    vendor.signIn = '1001'
    fixture.configure({ providers: hubspotOptions(vendor) })
    const victim = await fixture.start({ tenant: 'victim' })
    const attacker = await fixture.start({ tenant: 'attacker' })
    const stolen = await victim.browser.submit(await victim.browser.open(victim.url), {}, isCallback)
    const own = await attacker.browser.submit(await attacker.browser.open(attacker.url), {}, isCallback)
    const database = new DatabaseSync(file)
    const copy = (table: string, column: string): void => {
      const rows = database.prepare(`select tenant_id, ${column} as text from tidemark_${table}`).all() as {
        tenant_id: number
        text: string
      }[]
      const [from, to] = rows as [(typeof rows)[0], (typeof rows)[0]]
      database.prepare(`update tidemark_${table} set ${column} = ? where tenant_id = ?`).run(from.text, to.tenant_id)
      database.prepare(`update tidemark_${table} set ${column} = ? where tenant_id = ?`).run(to.text, from.tenant_id)
    }
    copy('connect_sessions', 'secrets')
    expect((await victim.browser.open(stolen.url)).status).toBe(500)
    expect((await attacker.browser.open(own.url)).status).toBe(500)
    copy('connect_sessions', 'secrets')
    await victim.browser.open(stolen.url)
    vendor.signIn = '2002'
    await attacker.browser.open(own.url)
    expect(tokenRequests(vendor)).toBe(2)
    expect(await credentialsOf(fixture.store.forTenant('attacker'))).not.toBeNull()
    copy('connections', 'credentials')
    for (const tenant of ['victim', 'attacker'])
      await expect(credentialsOf(fixture.store.forTenant(tenant))).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
    database.close()
  })

  test('nothing that the store or the log keeps is a token, a verifier or a cookie', async () => {
    const file = join(temporaryFolder(), 'store.db')
    const fixture = await openConnectFixture(file)
    const vendor = await startHubspot(fixture.base)
    vendor.signIn = '1001'
    fixture.configure({ providers: hubspotOptions(vendor) })
    const { browser, url } = await fixture.start({})
    const cookie = [...browser.cookies(url).values()][0]!
    const callback = new URL((await browser.submit(await browser.open(url), {}, isCallback)).url)
    await browser.open(callback.href)
    const credentials = (await credentialsOf(fixture.store.forTenant('acme')))!
    const secrets = [
      url.split('/').at(-1)!,
      cookie,
      callback.searchParams.get('code')!,
      callback.searchParams.get('state')!.split('.')[1]!,
      credentials['accessToken'] as string,
      credentials['refreshToken'] as string,
      CLIENT.clientSecret,
    ]
    const database = new DatabaseSync(file)
    const stored = ['connect_sessions', 'connections', 'audit']
      .flatMap((table) => database.prepare(`select * from tidemark_${table}`).all())
      .map((row) => JSON.stringify(row))
      .join('\n')
    database.close()
    for (const secret of secrets) {
      expect(stored).not.toContain(secret)
      expect(fixture.logs.join('\n')).not.toContain(secret)
    }
    expect(stored).toContain('hubspot')
  })
})

describe('another account over an existing connection', () => {
  test('is refused, nothing is changed, and the user can try again with the right one', async () => {
    const { fixture, vendor } = await open()
    const first = await fixture.start({})
    await first.browser.submit(await first.browser.open(first.url))
    const acme = fixture.store.forTenant('acme')
    await acme.setConnectionStatus(
      'hubspot',
      { status: 'needs_reauthorization', reason: 'invalid_grant' },
      { actor: 'test', at: 1 },
    )
    const before = [await acme.connection('hubspot'), await credentialsOf(acme)]

    vendor.signIn = '2002'
    const again = await fixture.start({ returnTo: `${fixture.base}/app/` })
    const page = await again.browser.open(again.url)
    expect(page.text).toContain('<h1>Connect HubSpot again</h1>')
    expect(page.text).toContain('The connection belongs to the account ada.example.')
    const refused = await again.browser.submit(page)
    expect(refused.text).toContain('belongs to the account ada.example, but you signed in as grace.example')
    expect([await acme.connection('hubspot'), await credentialsOf(acme)]).toEqual(before)

    vendor.signIn = '1001'
    const end = await again.browser.submit(refused, {}, isAppPage)
    expect(end.url).toContain('connection_status=connected')
    expect(await acme.connection('hubspot')).toMatchObject({ status: 'active', account: { id: '1001' }, version: 3 })
    expect(fixture.events.map(({ isNew }) => isNew)).toEqual([true, false])
  })

  test('is possible where the program allows it', async () => {
    const { fixture, vendor } = await open()
    const first = await fixture.start({})
    await first.browser.submit(await first.browser.open(first.url))
    vendor.signIn = '2002'
    const again = await fixture.start({ allowAccountChange: true })
    await again.browser.submit(await again.browser.open(again.url))
    expect((await fixture.store.forTenant('acme').connection('hubspot'))?.account).toEqual({
      id: '2002',
      label: 'grace.example',
    })
  })

  test('does not enable a connection that an operator disabled', async () => {
    const { fixture } = await open()
    const first = await fixture.start({})
    await first.browser.submit(await first.browser.open(first.url))
    const acme = fixture.store.forTenant('acme')
    await acme.setConnectionStatus('hubspot', { status: 'disabled', reason: 'unpaid' }, { actor: 'test', at: 1 })
    const again = await fixture.start({})
    await again.browser.submit(await again.browser.open(again.url))
    expect(await acme.connection('hubspot')).toMatchObject({ status: 'disabled', statusReason: 'unpaid' })
  })

  test('nor does another provider replace a connection of the same name', async () => {
    const { fixture, vendor } = await open()
    fixture.configure({ providers: { ...hubspotOptions(vendor), kraken: {} } })
    const first = await fixture.start({ name: 'main' })
    const second = await fixture.start({ name: 'main', provider: 'kraken' })
    await first.browser.submit(await first.browser.open(first.url))
    await expect(fixture.start({ name: 'main', provider: 'kraken' })).rejects.toMatchObject({
      code: 'CONNECTION_INVALID',
    })
    expect((await second.browser.open(second.url)).status).toBe(200)
    expect((await fixture.store.forTenant('acme').connection('main'))?.provider).toBe('hubspot')
  })
})
