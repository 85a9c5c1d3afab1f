import { describe, expect, test } from 'vitest'
import {
  ACCOUNTS,
  CLIENT,
  credentialsOf,
  hubspotOptions,
  isAppPage,
  openConnectFixture,
  startHubspot,
  TestBrowser,
} from './connect-fixture.ts'

describe('the connect flow', () => {
  test('connects an account: page, vendor, callback, connection, and back to the program', async () => {
    const fixture = await openConnectFixture()
    const vendor = await startHubspot(fixture.base)
    fixture.configure({ providers: hubspotOptions(vendor), appName: 'Harbour' })
    vendor.signIn = '1001'
    const returnTo = `${fixture.base}/app/settings?tab=2`
    const { browser, url } = await fixture.start({ returnTo })

    const page = await browser.open(url)
    expect(page.status).toBe(200)
    expect(page.text).toContain('<h1>Connect HubSpot to Harbour</h1>')
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
      accessToken: expect.stringMatching(/^\S{20,}$/) as string,
      refreshToken: expect.stringMatching(/^\S{20,}$/) as string,
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
})
