import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'

/** One use of a refresh token, in the vendor's own log. */
export interface RefreshUse {
  readonly token: string
  readonly account: string
  readonly at: number
}

interface Payload {
  readonly kind?: string
  readonly grantId?: string
  readonly accountId?: string
  consumed?: number
  readonly exp?: number
}

/** The used parts of oidc-provider, which has no types. */
interface OidcProvider {
  callback(): RequestListener
  on(event: string, listener: (...args: any[]) => void): void
  Client: { find(id: string): Promise<unknown> }
  AccessToken: { find(token: string): Promise<{ accountId: string; isExpired: boolean } | undefined> }
  Grant: new (of: { clientId: string; accountId: string }) => {
    addOIDCScope(scope: string): void
    save(): Promise<string>
  }
  RefreshToken: new (of: object) => { save(): Promise<string> }
}

export const VENDOR_CLIENT = { clientId: 'fleet', clientSecret: 'secret-of-the-fleet' }
const OIDC_PROVIDER = 'oidc-provider'

/**
 * A certified OAuth server that rotates refresh tokens, and revokes the grant when one is used again. `graceMs`: as many
 * vendors do, it accepts the token before the newest one again until the newest one was used.
 */
export class RotatingVendor {
  readonly uses: RefreshUse[] = []
  readonly refusals: { readonly error: string; readonly at: number }[] = []
  /** Requests with a valid access token, by account. */
  readonly reads = new Map<string, number>()
  readonly #records = new Map<string, Payload>()
  readonly #newest = new Map<string, string>()
  readonly #hasGrace: boolean
  #provider!: OidcProvider
  #close: () => void = () => {}
  url = ''

  constructor({ hasGrace }: { readonly hasGrace: boolean }) {
    this.#hasGrace = hasGrace
  }

  async start(accessTokenSeconds: number): Promise<this> {
    const { default: Provider } = (await import(OIDC_PROVIDER)) as {
      default: new (issuer: string, options: object) => OidcProvider
    }
    let listener: RequestListener = () => {}
    const server = createServer((request, response) => {
      if (request.url?.startsWith('/people') !== true) return listener(request, response)
      const token = request.headers.authorization?.replace('Bearer ', '') ?? ''
      void this.#provider.AccessToken.find(token).then((found) => {
        const isValid = found !== undefined && !found.isExpired
        if (isValid) this.reads.set(found.accountId, (this.reads.get(found.accountId) ?? 0) + 1)
        response.writeHead(isValid ? 200 : 401, { 'content-type': 'application/json' })
        response.end(JSON.stringify(isValid ? [{ id: found.accountId }] : {}))
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    this.#close = () => {
      server.closeAllConnections()
      server.close()
    }
    this.#provider = new Provider(this.url, {
      adapter: (model: string) => ({
        upsert: async (id: string, payload: Payload): Promise<void> => {
          this.#records.set(`${model}:${id}`, { ...payload })
          if (model === 'RefreshToken') this.#newest.set(payload.grantId ?? '', id)
        },
        find: async (id: string): Promise<Payload | undefined> => {
          const found = this.#records.get(`${model}:${id}`)
          return found === undefined ? undefined : this.#withGrace(model, id, found)
        },
        consume: async (id: string): Promise<void> => {
          const found = this.#records.get(`${model}:${id}`)
          if (found !== undefined) found.consumed = Math.floor(Date.now() / 1_000)
        },
        destroy: async (id: string): Promise<void> => {
          this.#records.delete(`${model}:${id}`)
        },
        revokeByGrantId: async (grantId: string): Promise<void> => {
          for (const [key, record] of this.#records) if (record.grantId === grantId) this.#records.delete(key)
        },
        findByUid: async (): Promise<undefined> => {},
        findByUserCode: async (): Promise<undefined> => {},
      }),
      clients: [
        {
          client_id: VENDOR_CLIENT.clientId,
          client_secret: VENDOR_CLIENT.clientSecret,
          grant_types: ['refresh_token', 'authorization_code'],
          redirect_uris: ['https://example.com/'],
        },
      ],
      features: { devInteractions: { enabled: false } },
      rotateRefreshToken: true,
      findAccount: (_: unknown, id: string) => ({ accountId: id, claims: () => ({ sub: id }) }),
      scopes: ['openid', 'offline_access'],
      ttl: { AccessToken: accessTokenSeconds, RefreshToken: 86_400, Grant: 86_400 },
    })
    this.#provider.on(
      'grant.success',
      ({ oidc }: { oidc: { entities: { RotatedRefreshToken?: { jti: string; accountId: string } } } }) => {
        const { RotatedRefreshToken: used } = oidc.entities
        if (used !== undefined) this.uses.push({ token: used.jti, account: used.accountId, at: Date.now() })
      },
    )
    this.#provider.on('grant.error', (_context: unknown, error: Error) =>
      this.refusals.push({ error: error.message, at: Date.now() }),
    )
    listener = this.#provider.callback()
    return this
  }

  /** Simulates the consent of a user in a browser; returns the first refresh token. */
  async grant(accountId: string): Promise<string> {
    const grant = new this.#provider.Grant({ clientId: VENDOR_CLIENT.clientId, accountId })
    grant.addOIDCScope('openid offline_access')
    return new this.#provider.RefreshToken({
      client: await this.#provider.Client.find(VENDOR_CLIENT.clientId),
      accountId,
      grantId: await grant.save(),
      scope: 'openid offline_access',
      gty: 'authorization_code',
      rotations: 0,
      iiat: Math.floor(Date.now() / 1_000),
    }).save()
  }

  close(): void {
    this.#close()
  }

  /** Consumed tokens are accepted while their successor, the newest of the grant, was never used. */
  #withGrace(model: string, id: string, found: Payload): Payload {
    if (model !== 'RefreshToken' || !this.#hasGrace || found.consumed === undefined) return found
    const newest = this.#newest.get(found.grantId ?? '')
    const isUnused = newest !== undefined && this.#records.get(`RefreshToken:${newest}`)?.consumed === undefined
    const { consumed: _, ...rest } = found
    return isUnused && newest !== id ? rest : found
  }
}
