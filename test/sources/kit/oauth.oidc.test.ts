import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { clientCredentials, refreshToken } from '../../../src/sources/kit/oauth.ts'
import { Secret } from '../../../src/redaction/secret.ts'
import { MemoryTokenStore } from '../../../src/sources/kit/token-store.ts'
import { contextOf, failureOf } from './loopback.ts'

/** The used parts of the package, which has no types. */
interface OidcProvider {
  callback(): RequestListener
  Client: { find(id: string): Promise<unknown> }
  Grant: new (of: { clientId: string; accountId: string }) => {
    addOIDCScope(scope: string): void
    save(): Promise<string>
  }
  RefreshToken: new (of: object) => { save(): Promise<string> }
}

const PACKAGE = 'oidc-provider'
const installed = (await import(PACKAGE).catch(() => null)) as {
  default: new (issuer: string, options: object) => OidcProvider
} | null
if (installed === null) console.warn(`skipped: npm install --save-dev ${PACKAGE}`)

describe.skipIf(installed === null)('against a certified OAuth server', () => {
  let server: Server
  let provider: OidcProvider
  let tokenUrl: string

  beforeAll(async () => {
    let listener: RequestListener = () => {}
    server = createServer((request, response) => listener(request, response)).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    provider = new installed!.default(issuer, {
      clients: [
        {
          client_id: 'tide mark',
          client_secret: 's:cret/+%',
          grant_types: ['client_credentials', 'refresh_token', 'authorization_code'],
          redirect_uris: ['https://example.com/'],
        },
      ],
      features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
      rotateRefreshToken: true,
      findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
      scopes: ['openid', 'offline_access', 'read'],
    })
    listener = provider.callback()
    tokenUrl = `${issuer}/token`
  })
  afterAll(() => void server.close())

  const identity = { clientId: new Secret('tide mark'), clientSecret: new Secret('s:cret/+%') }

  /** Simulates the consent of a user in a browser. */
  async function granted(): Promise<string> {
    const grant = new provider.Grant({ clientId: 'tide mark', accountId: 'somebody' })
    grant.addOIDCScope('openid offline_access')
    const token = new provider.RefreshToken({
      client: await provider.Client.find('tide mark'),
      accountId: 'somebody',
      grantId: await grant.save(),
      scope: 'openid offline_access',
      gty: 'authorization_code',
      rotations: 0,
      iiat: Math.floor(Date.now() / 1_000),
    })
    return token.save()
  }

  test('client credentials with special characters are accepted', async () => {
    const auth = clientCredentials({ ...identity, tokenUrl })
    const { headers } = await auth.credentials(contextOf())
    expect(headers.authorization!.reveal()).toMatch(/^Bearer \S{20,}$/)
  })

  test('NX9: refresh tokens rotate, are stored, and the stored one works in the next process', async () => {
    const store = new MemoryTokenStore()
    const seed = new Secret(await granted())
    const processes = [1, 2, 3].map(() =>
      refreshToken({ ...identity, tokenUrl, refreshToken: seed, tokens: () => store }),
    )
    const seen = new Set<string>()
    let last = await processes[0]!.credentials(contextOf())
    for (const auth of [...processes, ...processes]) {
      const known = await auth.credentials(contextOf())
      last = (await auth.renew(known, contextOf()))!
      seen.add((await store.read())!.refreshToken!)
    }
    expect(last.headers.authorization!.reveal()).toMatch(/^Bearer \S{20,}$/)
    expect(seen.size).toBeGreaterThan(3)
    expect(seen).not.toContain(seed.reveal())
  })

  test('NX9: many concurrently rejected processes send the refresh token once; a second use would revoke all tokens', async () => {
    const store = new MemoryTokenStore()
    const seed = new Secret(await granted())
    const processes = Array.from({ length: 5 }, () =>
      refreshToken({ ...identity, tokenUrl, refreshToken: seed, tokens: () => store }),
    )
    const first = await Promise.all(processes.map((auth) => auth.credentials(contextOf())))
    const second = await Promise.all(processes.map((auth, index) => auth.renew(first[index]!, contextOf())))
    expect(new Set(second.map((credentials) => credentials!.headers.authorization!.reveal())).size).toBe(1)
    // Still valid: no token was used twice.
    await processes[0]!.renew(second[0]!, contextOf())
  })

  test('XD4: a used refresh token is rejected with advice', async () => {
    const seed = new Secret(await granted())
    const once = (): ReturnType<typeof refreshToken> =>
      refreshToken({ ...identity, tokenUrl, refreshToken: seed, tokens: () => new MemoryTokenStore() })
    await once().credentials(contextOf())
    const error = await failureOf(once().credentials(contextOf()))
    expect(error).toMatchObject({
      code: 'AUTH_REJECTED',
      message:
        'POST /token answered 400: the token was not renewed. Check the client credentials and the refresh token.',
    })
  })
})
