import { describe, expect, test } from 'vitest'
import type { SyncContext } from '../../../src/contract/index.ts'
import { createHttpClient } from '../../../src/sources/kit/http-client.ts'
import { clientCredentials, refreshToken } from '../../../src/sources/kit/oauth.ts'
import {
  MemoryTokenStore,
  type StoredTokens,
  type Tokens,
  type TokenStore,
} from '../../../src/sources/kit/token-store.ts'
import { Secret } from '../../../src/redaction/secret.ts'
import { contextOf, failureOf, json, serve } from './loopback.ts'

interface TokenRequest {
  readonly authorization: string | undefined
  readonly form: URLSearchParams
}

/** A source and its token endpoint. Refresh tokens rotate, and a second use revokes all tokens. */
class Provider {
  readonly renewals: TokenRequest[] = []
  /** The tokens that the source accepts. */
  access: string | null = null
  refresh = 'r0'
  isRevoked = false
  /** The next responses of the token endpoint. */
  readonly statuses: number[] = []
  expiresIn: number | undefined
  url = ''

  static async start(): Promise<Provider> {
    const provider = new Provider()
    provider.url = await serve(async (request, response) => {
      if (request.url !== '/token')
        return json(
          response,
          {},
          {
            status:
              provider.access !== null && request.headers.authorization === `Bearer ${provider.access}` ? 200 : 401,
          },
        )
      const form = new URLSearchParams(Buffer.concat((await request.toArray()) as Buffer[]).toString())
      provider.renewals.push({ authorization: request.headers.authorization, form })
      const status = provider.statuses.shift()
      if (status !== undefined) return json(response, { error: 'canary' }, { status, headers: { 'retry-after': '9' } })
      const used = form.get('refresh_token')
      if (used !== null && used !== provider.refresh) provider.isRevoked = true
      if (provider.isRevoked) return json(response, { error: 'invalid_grant' }, { status: 400 })
      const round = provider.renewals.length
      provider.access = `a${round}`
      if (used !== null) provider.refresh = `r${round}`
      json(response, {
        access_token: provider.access,
        ...(used !== null && { refresh_token: provider.refresh }),
        ...(provider.expiresIn !== undefined && { expires_in: provider.expiresIn }),
      })
    })
    return provider
  }

  /** A client in one process, with its own memory and a token store that may be shared. */
  client(store?: TokenStore): (context?: SyncContext) => Promise<{ status: number }> {
    const auth = refreshToken({
      tokenUrl: `${this.url}/token`,
      clientId: 'ID',
      clientSecret: 'SECRET',
      refreshToken: 'REFRESH',
      ...(store !== undefined && { tokens: () => store }),
    })
    const client = createHttpClient({ baseUrl: `${this.url}/api`, auth })
    return (context = contextOf({ secrets: SECRETS })) => client.get('/items', {}, context)
  }
}

const SECRETS = { ID: 'client id', SECRET: 's:cret', REFRESH: 'r0' }

describe('client credentials', () => {
  test('are exchanged for a token, once for many requests', async () => {
    const provider = await Provider.start()
    const auth = clientCredentials({
      tokenUrl: `${provider.url}/token`,
      clientId: 'ID',
      clientSecret: 'SECRET',
      scope: 'read all',
      fields: { audience: 'x' },
    })
    const client = createHttpClient({ baseUrl: provider.url, auth })
    const context = contextOf({ secrets: SECRETS })
    await Promise.all([1, 2, 3].map(() => client.get('/api', {}, context)))
    await client.get('/api', {}, context)
    expect(provider.renewals).toHaveLength(1)
    const { authorization, form } = provider.renewals[0]!
    expect(authorization).toBe(`Basic ${Buffer.from('client+id:s%3Acret').toString('base64')}`)
    expect(Object.fromEntries(form)).toEqual({ grant_type: 'client_credentials', scope: 'read all', audience: 'x' })
  })

  test('are sent in the form if the source requires it', async () => {
    const provider = await Provider.start()
    const auth = clientCredentials({
      tokenUrl: `${provider.url}/token`,
      clientId: new Secret('me'),
      clientSecret: new Secret('it'),
      clientAuth: 'form',
    })
    await createHttpClient({ baseUrl: provider.url, auth }).get('/api', {}, contextOf())
    expect([provider.renewals[0]!.authorization, Object.fromEntries(provider.renewals[0]!.form)]).toEqual([
      undefined,
      { grant_type: 'client_credentials', client_id: 'me', client_secret: 'it' },
    ])
  })

  test('of two tenants are kept apart', async () => {
    const provider = await Provider.start()
    const auth = clientCredentials({ tokenUrl: `${provider.url}/token`, clientId: 'ID', clientSecret: 'SECRET' })
    const of = async (secret: string): Promise<string> =>
      (await auth.credentials(contextOf({ secrets: { ID: 'i', SECRET: secret } }))).headers.authorization!.reveal()
    expect([await of('one'), await of('two'), await of('one')]).toEqual(['Bearer a1', 'Bearer a2', 'Bearer a1'])
  })
})

describe('a token', () => {
  test('NX9, XD4: that is rejected is renewed once for all rejected requests', async () => {
    const provider = await Provider.start()
    const store = new WatchedStore()
    const ask = provider.client(store)
    await ask()
    provider.access = 'revoked at the other side'
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask()))
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200))
    expect(provider.renewals.map(({ form }) => form.get('refresh_token'))).toEqual(['r0', 'r1'])
    // In one process: no request had to poll the store.
    expect(store.reads).toBe(2)
  })

  test('NX9, XD4: that is rejected when new is not renewed again', async () => {
    const provider = await Provider.start()
    const url = await serve((_, response) => json(response, {}, { status: 401 }))
    const auth = refreshToken({ tokenUrl: `${provider.url}/token`, clientId: 'ID', refreshToken: 'REFRESH' })
    const error = await failureOf(
      createHttpClient({ baseUrl: url, auth }).get('/items', {}, contextOf({ secrets: SECRETS })),
    )
    expect([error.code, provider.renewals.length]).toEqual(['AUTH_REJECTED', 2])
  })

  test('is renewed before it expires', async () => {
    const provider = await Provider.start()
    provider.expiresIn = 3_600
    const ask = provider.client()
    let now = Date.parse('2026-03-01T00:00:00Z')
    const context = contextOf({ secrets: SECRETS })
    const later: SyncContext = { ...context, clock: { ...context.clock, now: () => now } }
    await ask(later)
    now += 3_500_000
    await ask(later)
    expect(provider.renewals).toHaveLength(1)
    now += 71_000
    await ask(later)
    expect(provider.renewals).toHaveLength(2)
  })

  test('that expires within seconds is still used for a while', async () => {
    const provider = await Provider.start()
    provider.expiresIn = 20
    const ask = provider.client()
    await ask()
    await ask()
    expect(provider.renewals).toHaveLength(1)
  })
})

describe('a rotated refresh token', () => {
  test('is stored before the token that came with it is used', async () => {
    const provider = await Provider.start()
    const store = new MemoryTokenStore()
    const inner = contextOf({ secrets: SECRETS })
    const stored: Array<StoredTokens | null> = []
    await provider.client(store)({
      ...inner,
      fetch: async (input, init) => {
        if (!String(input).endsWith('/token')) stored.push(await store.read())
        return inner.fetch(input, init)
      },
    })
    expect(stored).toMatchObject([{ accessToken: 'a1', refreshToken: 'r1', claimedUntil: null }])
  })

  test('is used by the next process instead of the first one', async () => {
    const provider = await Provider.start()
    const store = new MemoryTokenStore()
    await provider.client(store)()
    provider.access = null
    await provider.client(store)()
    expect(provider.renewals.map(({ form }) => form.get('refresh_token'))).toEqual(['r0', 'r1'])
    expect(provider.isRevoked).toBe(false)
  })

  test('is used by one process only', async () => {
    const provider = await Provider.start()
    const store = new MemoryTokenStore()
    const processes = Array.from({ length: 6 }, () => provider.client(store))
    await Promise.all(processes.map((ask) => ask()))
    provider.access = null
    await Promise.all(processes.map((ask) => ask()))
    expect(provider.renewals.map(({ form }) => form.get('refresh_token'))).toEqual(['r0', 'r1'])
  })

  test('that could not be stored is stored first in the next attempt', async () => {
    const provider = await Provider.start()
    const store = new WatchedStore()
    const ask = provider.client(store)
    store.failures = [null, new Error('disk full')]
    await expect(ask()).rejects.toThrow('disk full')
    await ask()
    expect(provider.renewals).toHaveLength(1)
    expect(await store.read()).toMatchObject({ accessToken: 'a1', refreshToken: 'r1' })
  })

  test('of a source that does not rotate stays the same', async () => {
    const store = new MemoryTokenStore()
    const url = await serve((_, response) => json(response, { access_token: 'a', expires_in: '3600' }))
    const auth = refreshToken({
      tokenUrl: `${url}/token`,
      clientId: 'ID',
      refreshToken: 'REFRESH',
      tokens: () => store,
    })
    await auth.credentials(contextOf({ secrets: SECRETS }))
    expect(await store.read()).toMatchObject({ refreshToken: 'r0' })
  })

  test('that is configured again belongs to another account', async () => {
    const provider = await Provider.start()
    const accounts: string[] = []
    const auth = refreshToken({
      tokenUrl: `${provider.url}/token`,
      clientId: 'ID',
      refreshToken: 'REFRESH',
      tokens: (account) => (accounts.push(account), new MemoryTokenStore()),
    })
    await auth.credentials(contextOf({ secrets: SECRETS }))
    await failureOf(auth.credentials(contextOf({ secrets: { ...SECRETS, REFRESH: 'by hand' } })))
    expect(new Set(accounts).size).toBe(2)
    for (const account of accounts) expect(account).toMatch(/^[0-9a-f]{64}$/)
  })

  test('whose renewal crashed is taken over after the claim expires', async () => {
    const provider = await Provider.start()
    const store = new MemoryTokenStore()
    const context = contextOf({ secrets: SECRETS })
    let now = 1_000_000
    const slept: number[] = []
    await store.write(0, { accessToken: null, refreshToken: 'r0', renewAt: null, claimedUntil: now + 60_000 })
    const auth = refreshToken({
      tokenUrl: `${provider.url}/token`,
      clientId: 'ID',
      refreshToken: 'REFRESH',
      tokens: () => store,
    })
    // The body deadline is never reached here: only the wait for the claim advances the clock.
    await auth.credentials({
      ...context,
      clock: {
        now: () => now,
        sleep: (ms, signal) =>
          ms > 1_000 ? context.clock.sleep(ms, signal) : (slept.push(ms), (now += ms), Promise.resolve()),
      },
    })
    expect(slept.reduce((sum, ms) => sum + ms, 0)).toBe(60_000)
    expect(provider.renewals).toHaveLength(1)
  })
})

describe('a renewal', () => {
  test.each([
    [400, 'AUTH_REJECTED', undefined],
    [401, 'AUTH_REJECTED', undefined],
    [403, 'RATE_LIMITED', 9_000],
    [429, 'RATE_LIMITED', 9_000],
    [500, 'SOURCE_UNAVAILABLE', 9_000],
    [503, 'SOURCE_UNAVAILABLE', 9_000],
  ])('XD4: answered %i is %s, and gives its claim back', async (status, code, waitMs) => {
    const provider = await Provider.start()
    const store = new MemoryTokenStore()
    provider.statuses.push(status)
    const error = await failureOf(provider.client(store)())
    expect(error).toMatchObject({ code, ...(waitMs !== undefined && { retryAfterMs: waitMs }) })
    expect(error.message).toMatch(/^POST \/token answered \d+/)
    expect(`${error.message}${error.stack}`).not.toMatch(/canary|r0|s:cret/)
    expect(await store.read()).toMatchObject({ claimedUntil: null })
    await provider.client(store)()
    expect(provider.isRevoked).toBe(false)
  })

  test.each([['{}'], ['[]'], ['{"access_token":""}'], ['{"access_token":7}'], ['<html>'], ['{"access_token":"a"']])(
    'answered with %s has no token',
    async (body) => {
      const url = await serve((_, response) => json(response, body))
      const auth = clientCredentials({ tokenUrl: url, clientId: new Secret('i') })
      expect(await failureOf(auth.credentials(contextOf()))).toMatchObject({ code: 'SOURCE_INVALID' })
    },
  )

  test('XD29: that is redirected does not send the client secret', async () => {
    const visits: string[] = []
    const other = await serve((request, response) => (visits.push(request.url), json(response, { access_token: 'a' })))
    const url = await serve((_, response) => response.writeHead(307, { location: `${other}/token` }).end())
    const auth = clientCredentials({
      tokenUrl: `${url}/token`,
      clientId: new Secret('i'),
      clientSecret: new Secret('s'),
    })
    expect(await failureOf(auth.credentials(contextOf()))).toMatchObject({ code: 'SOURCE_INVALID' })
    expect(visits).toEqual([])
  })

  test('aborted by its first caller is restarted by a waiting caller', async () => {
    const provider = await Provider.start()
    const first = new AbortController()
    let asked = (): void => {}
    const asking = new Promise<void>((resolve) => (asked = resolve))
    const base = contextOf({ secrets: SECRETS })
    const hanging: SyncContext = {
      ...base,
      signal: first.signal,
      fetch: (_, init) => {
        asked()
        return new Promise((_, reject) =>
          init!.signal!.addEventListener('abort', () => reject(init!.signal!.reason as Error)),
        )
      },
    }
    const ask = provider.client()
    const beginning = failureOf(ask(hanging))
    await asking
    const waiting = ask()
    first.abort(new Error('cancelled'))
    expect((await beginning).message).toBe('cancelled')
    expect((await waiting).status).toBe(200)
  })

  test('Z16: with an invalid token URL is rejected at declaration', () => {
    expect(() => clientCredentials({ tokenUrl: 'https://user:canary@x.org/token', clientId: 'ID' })).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('canary') }),
    )
  })
})

class WatchedStore implements TokenStore {
  failures: Array<Error | null> = []
  reads = 0
  readonly #inner = new MemoryTokenStore()

  read(): Promise<StoredTokens | null> {
    this.reads++
    return this.#inner.read()
  }

  async write(expectedVersion: number, tokens: Tokens): Promise<boolean> {
    const failure = this.failures.shift()
    if (failure) throw failure
    return this.#inner.write(expectedVersion, tokens)
  }
}
