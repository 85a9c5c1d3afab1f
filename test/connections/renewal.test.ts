import { describe, expect, onTestFinished, test } from 'vitest'
import { buildCredentials } from '../../src/connections/build-credentials.ts'
import { addConnection, editConnection, removeConnection } from '../../src/connections/manage-connections.ts'
import { SourceConnections } from '../../src/connections/source-connections.ts'
import type { ConnectionCredentials, OAuthCredentials, Store, SyncContext } from '../../src/contract/index.ts'
import { maskSecrets } from '../../src/redaction/known-secrets.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { storeUrl } from '../embed/embed-fixture.ts'
import { contextOf } from '../sources/kit/loopback.ts'

const BY = { actor: 'test', at: 1 }
const SECONDS = 60

/** A token endpoint that rotates refresh tokens. It accepts exactly one. */
class TokenEndpoint {
  valid = 'refresh-token-0'
  answered = 0
  readonly sent: string[] = []
  before: () => Promise<void> | void = () => {}
  refusal = 'invalid_grant'

  readonly fetch: SyncContext['fetch'] = async (_url, init) => {
    const sent = new URLSearchParams(String(init?.body)).get('refresh_token') ?? ''
    this.sent.push(sent)
    await this.before()
    if (sent !== this.valid) return Response.json({ error: this.refusal }, { status: 400 })
    this.valid = `refresh-token-${++this.answered}`
    return Response.json({
      access_token: `access-token-${this.answered}`,
      refresh_token: this.valid,
      expires_in: SECONDS,
    })
  }
}

const TOKENS = { token_url: 'https://vendor.example/token', client_id: 'client', client_secret: 'secret-of-the-client' }

interface Fleet {
  readonly store: Store
  readonly endpoint: TokenEndpoint
  readonly clock: { now: number; skipsWaits: boolean }
  /** The connections of another process. */
  join(): { token(): Promise<string>; context: SyncContext }
  stored(): Promise<OAuthCredentials>
}

async function openFleet(): Promise<Fleet> {
  const store = await openStore(storeUrl())
  onTestFinished(() => store.close())
  const endpoint = new TokenEndpoint()
  const time = { now: Date.parse('2026-01-01T00:00:00Z'), skipsWaits: false }
  const clock = {
    now: () => time.now,
    sleep: async (ms: number) => {
      // A process that waits for another must not end the claim of the other while that one writes.
      await new Promise((resolve) => setTimeout(resolve, 1))
      if (time.skipsWaits) time.now += ms
    },
  }
  const credentials = buildCredentials('crm', 'oauth', {
    refresh_token: endpoint.valid,
    ...TOKENS,
  })
  await addConnection(store, { name: 'crm', provider: 'crm', credentials }, BY)
  const silent = (): void => {}
  const log = { debug: silent, info: silent, warn: silent, error: silent }
  return {
    store,
    endpoint,
    clock: time,
    join() {
      const connections = new SourceConnections({
        ports: { clock, log },
        fetch: endpoint.fetch,
        findClient: () => null,
      })
      const context = contextOf({ clock })
      return {
        context,
        async token() {
          const found = await (await connections.open(store, 'crm')).credentials(context)
          return found.kind === 'oauth' ? found.accessToken : ''
        },
      }
    },
    stored: async () =>
      JSON.parse((await store.connectionCredentials('crm'))!.credentials) as ConnectionCredentials as OAuthCredentials,
  }
}

describe('the tokens of a connection', () => {
  test('many processes renew once, and the rotated refresh token is stored with the one before it', async () => {
    const { endpoint, clock, join, stored } = await openFleet()
    const processes = [join(), join(), join(), join()]
    expect(new Set(await Promise.all(processes.map(({ token }) => token())))).toEqual(new Set(['access-token-1']))
    expect(endpoint.sent).toEqual(['refresh-token-0'])
    expect(await stored()).toMatchObject({
      refreshToken: 'refresh-token-1',
      previousRefreshToken: 'refresh-token-0',
      claimedUntil: null,
    })
    clock.now += SECONDS * 1_000
    expect(new Set(await Promise.all(processes.map(({ token }) => token())))).toEqual(new Set(['access-token-2']))
    expect(endpoint.sent).toEqual(['refresh-token-0', 'refresh-token-1'])
    expect(maskSecrets('refresh-token-1 access-token-2 secret-of-the-client')).not.toMatch(/token-|of-the-client/)
  })

  test('a renewal that is refused tries the token before it, then stops the connection and asks no more', async () => {
    const { store, endpoint, clock, join } = await openFleet()
    const one = join()
    await one.token()
    endpoint.valid = 'revoked'
    clock.now += SECONDS * 1_000
    await expect(one.token()).rejects.toMatchObject({ code: 'CONNECTION_INACTIVE' })
    expect(endpoint.sent.slice(1)).toEqual(['refresh-token-1', 'refresh-token-0'])
    for (const process of [one, join()])
      await expect(process.token()).rejects.toMatchObject({
        code: 'CONNECTION_INACTIVE',
        message: expect.stringContaining('invalid_grant'),
      })
    expect(endpoint.sent).toHaveLength(3)
    expect(await store.connection('crm')).toMatchObject({ status: 'needs_reauthorization' })
  })

  test('an answer that was lost in a crash is repaired with the token before it', async () => {
    const { store, endpoint, clock, join } = await openFleet()
    await join().token()
    // The vendor answered and the process was killed: the vendor still accepts the token that it replaced.
    const { connection, credentials } = (await store.connectionCredentials('crm'))!
    const claimed = { ...(JSON.parse(credentials) as OAuthCredentials), claimedUntil: clock.now + 30_000 }
    clock.now += SECONDS * 1_000 - 20_000
    await store.swapCredentials('crm', {
      credentials: JSON.stringify({ ...claimed, claimedUntil: clock.now + 30_000 }),
      replaces: connection,
      at: 1,
    })
    endpoint.valid = 'refresh-token-0'
    clock.skipsWaits = true
    const before = clock.now
    expect(await join().token()).toBe('access-token-2')
    // Not before the claim of the other process ended.
    expect(clock.now - before).toBeGreaterThanOrEqual(30_000)
    expect(endpoint.sent.slice(1)).toEqual(['refresh-token-1', 'refresh-token-0'])
  })

  test('a refused client is the operator’s mistake: the connection stays active', async () => {
    const { store, endpoint, join } = await openFleet()
    endpoint.refusal = 'invalid_client'
    endpoint.valid = 'other'
    await expect(join().token()).rejects.toMatchObject({ code: 'CONNECTION_INVALID' })
    expect(await store.connection('crm')).toMatchObject({ status: 'active' })
  })

  test('after a failure every process waits before the next attempt', async () => {
    const { endpoint, clock, join } = await openFleet()
    endpoint.before = () => {
      throw new TypeError('fetch failed')
    }
    await expect(join().token()).rejects.toThrow()
    endpoint.before = () => {}
    await expect(join().token()).rejects.toMatchObject({ code: 'SOURCE_UNAVAILABLE', retryAfterMs: 5_000 })
    expect(endpoint.sent).toHaveLength(1)
    clock.now += 5_000
    expect(await join().token()).toBe('access-token-1')
  })

  test('a renewal that a stopped cycle began is stored, and replaced credentials are not overwritten by it', async () => {
    const { store, endpoint, join, stored } = await openFleet()
    const stopping = new AbortController()
    const one = join()
    Object.assign(one.context, { signal: stopping.signal })
    endpoint.before = () => stopping.abort(new Error('the cycle is stopped'))
    await one.token().catch(() => {})
    await expect.poll(async () => (await stored()).refreshToken).toBe('refresh-token-1')

    endpoint.before = async () => {
      const credentials = buildCredentials('crm', 'oauth', { access_token: 'access-token-of-the-user' })
      await editConnection(store, 'crm', { credentials }, BY)
    }
    const late = join()
    const { credentials, connection } = (await store.connectionCredentials('crm'))!
    await store.swapCredentials('crm', {
      credentials: JSON.stringify({ ...(JSON.parse(credentials) as object), renewAt: 0 }),
      replaces: connection,
      at: 1,
    })
    expect(await late.token()).toBe('access-token-of-the-user')
  })

  test('tokens of a removed connection are neither stored in one that was added later nor used for it', async () => {
    const { store, endpoint, join, stored } = await openFleet()
    const process = join()
    endpoint.before = async () => {
      endpoint.before = () => {}
      await replace('refresh-token-of-the-other')
    }
    await expect(process.token()).rejects.toMatchObject({ code: 'CONNECTION_CHANGED' })
    expect(await stored()).toMatchObject({ accessToken: null, refreshToken: 'refresh-token-of-the-other' })

    endpoint.valid = 'refresh-token-of-the-other'
    expect(await process.token()).toBe('access-token-2')
    await replace('refresh-token-of-the-third')
    endpoint.valid = 'refresh-token-of-the-third'
    expect(await process.token()).toBe('access-token-3')
    expect(endpoint.sent.at(-1)).toBe('refresh-token-of-the-third')

    async function replace(refreshToken: string): Promise<void> {
      const { createdAt } = (await store.connection('crm'))!
      await removeConnection(store, 'crm', BY)
      const credentials = buildCredentials('crm', 'oauth', { refresh_token: refreshToken, ...TOKENS })
      await addConnection(store, { name: 'crm', provider: 'crm', credentials }, { ...BY, at: createdAt + 1 })
    }
  })
})
