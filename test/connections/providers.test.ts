import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkHost } from '../../src/connections/check-host.ts'
import { defineProvider, type Provider } from '../../src/connections/define-provider.ts'
import { buildAuthorizeUrl } from '../../src/connections/oauth/authorize-url.ts'
import { PROVIDERS } from '../../src/connections/registry.ts'
import {
  authorizeOrigins,
  checkInputs,
  chooseMethod,
  listInputs,
  resolveProvider,
  templateValues,
} from '../../src/connections/resolve-provider.ts'
import { SOURCES } from '../../src/sources/registry.ts'
import { ROOT } from '../cli/package.ts'

const ALL = Object.values<Provider>(PROVIDERS)
const client = { clientId: 'client-1', clientSecret: 'secret-1' }

function authorizeUrlOf(name: string, settings: Record<string, string> = {}): URL {
  const provider = resolveProvider(name, { [name]: client })
  return buildAuthorizeUrl(provider.oauth!, {
    clientId: 'client-1',
    redirectUri: 'https://app.example.com/connect/callback/x',
    scopes: provider.oauth!.scopes,
    state: 'state-1',
    codeVerifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
    values: templateValues(provider, settings),
  })
}

describe('provider descriptors', () => {
  test('every file is in the registry, under the name of its file', () => {
    const files = readdirSync(join(ROOT, 'src/connections/providers')).map((file) => file.replace(/\.ts$/, ''))
    expect(Object.entries(PROVIDERS).map(([name, { name: own }]) => [name, own])).toEqual(
      files.toSorted().map((name) => [name, name]),
    )
  })

  test('every SaaS source has one, and each names a source that exists', () => {
    const SAAS = [
      'salesforce',
      'stripe',
      'hubspot',
      'github',
      'servicenow',
      'linear',
      'airtable',
      'bookmarks',
      'kraken',
    ]
    expect(ALL.flatMap(({ source }) => source ?? [])).toEqual(expect.arrayContaining(SAAS))
    for (const { source } of ALL) if (source !== null) expect(Object.keys(SOURCES)).toContain(source)
  })

  test.each(ALL.map((provider) => [provider.name, provider] as const))(
    '%s is complete: https URLs without a query for a token request, and a way in',
    (_name, { oauth, form, account, documentation }) => {
      expect(oauth ?? form).toBeDefined()
      for (const url of [documentation, account.url, oauth?.authorizeUrl, oauth?.tokenUrl, oauth?.revocation?.url])
        if (url !== undefined) expect(url).toMatch(/^(?:https:\/\/|\{instance_url\}|\{base_url\})/)
      for (const step of form?.steps ?? []) expect(step).toMatch(/^[A-Z].*\.$/)
      expect(Object.values(form?.fields ?? {}).some(({ isSecret }) => isSecret === true)).toBe(form !== undefined)
    },
  )

  test('the authorization request of each vendor has what its documentation requires', () => {
    const linear = authorizeUrlOf('linear')
    expect(linear.origin + linear.pathname).toBe('https://linear.app/oauth/authorize')
    expect(Object.fromEntries(linear.searchParams)).toMatchObject({
      response_type: 'code',
      client_id: 'client-1',
      scope: 'read',
      state: 'state-1',
      // The example of RFC 7636.
      code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
      code_challenge_method: 'S256',
      prompt: 'consent',
    })
    expect(authorizeUrlOf('x').searchParams.get('scope')).toBe('bookmark.read tweet.read users.read offline.access')
    expect(authorizeUrlOf('stripe').searchParams.has('code_challenge')).toBe(false)
    expect(authorizeUrlOf('github-app').searchParams.has('scope')).toBe(false)
    expect(authorizeUrlOf('salesforce', { login_host: 'acme.my.salesforce.com' }).host).toBe('acme.my.salesforce.com')
  })

  test('several scopes are separated as the vendor reads them', () => {
    const provider = resolveProvider('linear', { linear: { ...client, scopes: ['read', 'write'] } })
    const url = buildAuthorizeUrl(provider.oauth!, {
      clientId: 'c',
      redirectUri: 'https://a.example/',
      scopes: provider.oauth!.scopes,
      state: 's',
      codeVerifier: 'v',
      values: templateValues(provider, {}),
    })
    expect(url.searchParams.get('scope')).toBe('read,write')
  })
})

describe('a host that a user enters', () => {
  const ANY: readonly string[] = []
  test.each([
    ['acme.service-now.com', ['.service-now.com'], 'acme.service-now.com'],
    [' https://Acme.service-now.com/login?x ', ['.service-now.com'], 'acme.service-now.com'],
    ['login.salesforce.com', ['.my.salesforce.com', 'login.salesforce.com'], 'login.salesforce.com'],
    ['erp.example.com', ANY, 'erp.example.com'],
    ['service-now.com.evil.example', ['.service-now.com'], null],
    ['acme.service-now.com.evil.example', ['.service-now.com'], null],
    ['evilservice-now.com', ['.service-now.com'], null],
    ['xlogin.salesforce.com', ['login.salesforce.com'], null],
    ['https://acme.service-now.com@evil.example/', ['.service-now.com'], null],
    ['evil.example#.service-now.com', ['.service-now.com'], null],
    ['evil.example/.service-now.com', ['.service-now.com'], null],
    ['acme.service-now.com:8080', ['.service-now.com'], null],
    ['https://acme.service-now.com:8080', ['.service-now.com'], null],
    ['127.0.0.1', ANY, null],
    ['http://169.254.169.254/latest', ANY, null],
    ['[::1]', ANY, null],
    ['0x7f.1', ANY, null],
    ['2130706433', ANY, null],
    ['localhost', ANY, null],
    ['db.internal', ANY, null],
    ['metadata.google.internal', ANY, null],
    ['-a.example.com', ANY, null],
  ])('XD29: %s with %j is %s', (entered, suffixes, host) => {
    expect(checkHost(entered, suffixes)).toBe(host)
  })
})

describe('a provider of a program', () => {
  const own = defineProvider({
    name: 'billing',
    title: 'Billing',
    documentation: 'https://billing.example.com/docs',
    source: null,
    form: {
      steps: ['Create a key.'],
      fields: { api_key: { label: 'API key', isSecret: true } },
      auth: { kind: 'header', header: 'x-key', field: 'api_key' },
    },
    account: { url: 'https://billing.example.com/me', id: 'id', label: 'name' },
  })

  test('has its own descriptor, or extends a generic one with its base URL', () => {
    expect(resolveProvider('crm', { crm: { provider: own } })).toMatchObject({ name: 'crm', title: 'Billing' })
    const generic = resolveProvider('erp', {
      erp: { provider: 'oauth2', title: 'ERP', baseUrl: 'https://erp.example.com/api/', ...client },
    })
    expect(generic.oauth).toMatchObject({
      authorizeUrl: 'https://erp.example.com/api/authorize',
      tokenUrl: 'https://erp.example.com/api/token',
    })
    expect(() => resolveProvider('oauth2', { oauth2: client })).toThrow('The provider oauth2 needs `baseUrl`.')
  })

  test('a base URL replaces the origin of every URL', () => {
    const { oauth, account } = resolveProvider('hubspot', { hubspot: { baseUrl: 'http://127.0.0.1:4100', ...client } })
    expect([oauth?.authorizeUrl, oauth?.tokenUrl, oauth?.revocation?.url, account.url]).toEqual([
      'http://127.0.0.1:4100/oauth/authorize',
      'http://127.0.0.1:4100/oauth/v3/token',
      'http://127.0.0.1:4100/oauth/v1/refresh-tokens/{refresh_token}',
      'http://127.0.0.1:4100/account-info/v3/details',
    ])
  })

  test('an unknown name or a missing client is an error that says what to add', () => {
    expect(() => resolveProvider('hubpsot', { hubspot: {} })).toThrow(
      /no provider "hubpsot".*hubspot.*connect\.providers/,
    )
    expect(() => resolveProvider('toString', {})).toThrow('no provider')
    expect(() => resolveProvider('x', { x: { provider: 'twitter' } })).toThrow('no shipped provider "twitter"')
    expect(() => chooseMethod(resolveProvider('x', { x: {} }))).toThrow(/`clientId` and `clientSecret`/)
    expect(() => chooseMethod(resolveProvider('kraken', { kraken: {} }), 'oauth')).toThrow(
      'cannot be connected with OAuth',
    )
    expect(() => chooseMethod(resolveProvider('x', { x: client }), 'form')).toThrow('cannot be connected with a form')
  })

  test('uses OAuth if a client is configured, and the form otherwise', () => {
    expect(chooseMethod(resolveProvider('hubspot', { hubspot: client }))).toBe('oauth')
    expect(chooseMethod(resolveProvider('hubspot', { hubspot: client }), 'form')).toBe('form')
    expect(chooseMethod(resolveProvider('hubspot', { hubspot: {} }))).toBe('form')
    expect(chooseMethod(resolveProvider('servicenow', { servicenow: {} }))).toBe('oauth')
  })

  test('inputs are checked, and a secret is never a setting', () => {
    const provider = resolveProvider('servicenow', { servicenow: {} })
    expect(Object.keys(listInputs(provider, 'oauth'))).toEqual(['instance_host', 'client_id', 'client_secret'])
    expect(
      checkInputs(provider, 'form', { instance_host: 'acme.service-now.com', user: 'u', password: ' p ', other: 'x' }),
    ).toEqual({ settings: { instance_host: 'acme.service-now.com' }, credentials: { user: 'u', password: 'p' } })
    expect(checkInputs(provider, 'form', { instance_host: '10.0.0.1', user: '', password: 'a\u0000b' })).toEqual({
      errors: {
        instance_host:
          'Enter a host name such as acme.service-now.com. It must end in .service-now.com or .servicenowservices.com.',
        user: 'Enter the user name.',
        password: 'Password contains a control character.',
      },
    })
    const salesforce = resolveProvider('salesforce', { salesforce: client })
    expect(checkInputs(salesforce, 'oauth', {})).toMatchObject({ settings: { login_host: 'login.salesforce.com' } })
  })

  test('the content security policy allows the vendor alone', () => {
    const originsOf = (name: string): readonly string[] => authorizeOrigins(resolveProvider(name, { [name]: client }))
    expect(originsOf('hubspot')).toEqual(['https://app.hubspot.com'])
    expect(originsOf('salesforce')).toEqual([
      'https://*.my.salesforce.com',
      'https://login.salesforce.com',
      'https://test.salesforce.com',
    ])
    expect(originsOf('kraken')).toEqual([])
  })
})
