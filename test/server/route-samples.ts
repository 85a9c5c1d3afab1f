import type { ApiKey, Store, WebhookSettings } from '../../src/contract/index.ts'
import type { Route } from '../../src/server/route.ts'
import type { ServerOptions } from '../../src/server/server.ts'

/** Not reachable. */
export const WEBHOOK: WebhookSettings = {
  id: 'wh_1',
  url: 'http://127.0.0.1:9/',
  databases: null,
  actions: null,
  allow: ['http', 'private', 'port'],
  secrets: '[["whsec_c2VjcmV0",null]]',
  createdAt: 1,
}

/** Its secret is unknown. */
export const API_KEY: Omit<ApiKey, 'tenant'> = {
  id: '00000000000000aa',
  name: 'sample',
  hash: '00'.repeat(32),
  scopes: ['*:read'],
  rateLimit: 1,
  createdAt: 1,
  endsAt: null,
}

/** A destination that rejects the row b of things; the message and the key contain `text`. */
export async function addDestination(store: Store, text: string): Promise<void> {
  const claim = (await store.claimDestination('copy', { holder: 'one', ttlMs: 60_000, at: 0 }))!
  await store.recordDestination(claim, {
    kind: 'memory',
    location: 'memory',
    mode: 'mirror',
    startedAt: 1,
    endedAt: 2,
    failures: 1,
    retryAt: 3,
    error: { code: 'DESTINATION_FAILED', message: `no ${text}` },
    databases: [
      {
        database: 'things',
        state: 'failed',
        sequence: 0,
        readSequence: 0,
        committedAt: 0,
        changes: 0,
        loadReason: 'new',
        failure: {
          code: 'DESTINATION_FAILED',
          message: `no ${text}`,
          at: 2,
          firstSequence: 1,
          lastSequence: 1,
          key: `b ${text}`,
        },
      },
    ],
    resynced: [],
  })
  await store.releaseDestination(claim)
}

/** A connection whose provider states no account, so that nothing is requested. */
export async function addConnection(store: Store): Promise<void> {
  await store.putConnection(
    {
      name: 'shop',
      provider: 'shop',
      status: 'active',
      statusReason: null,
      settings: {},
      scopes: [],
      account: null,
      replaces: null,
      credentials: JSON.stringify({ kind: 'api_key', key: 'sesame-of-the-shop', fields: {} }),
    },
    { actor: 'test', at: 1 },
  )
}

/** Answers every statement alike. */
export const SELECT: NonNullable<ServerOptions['select']> = async () => ({
  columns: ['one'],
  rows: [[1]],
  truncated: false,
})

/** For routes with a required body. */
export const BODIES: Readonly<Record<string, object>> = {
  editWebhook: { actions: ['deleted'], dryRun: true },
  addWebhook: { url: 'https://hooks.example.com/x' },
  consoleManifest: { source: 'stripe', config: { api_key: '${STRIPE_KEY}' }, stream: { id: 'customers' } },
  createConnectSession: { provider: 'kraken' },
  createConnection: { provider: 'shop', name: 'other', kind: 'api_key', secrets: { key: 'sesame-of-another' } },
  consoleQuery: { sql: 'select 1 as one' },
  consoleCreateKey: { name: 'x', scopes: ['*:read'] },
}

/** Paths of the row b of things, the sync crm/delta, the destination copy, the connection shop, and the webhook and key above. */
export function pathOf({ id, path }: Route): string {
  const query = id === 'consoleStatistics' ? '?field=text' : ''
  return `${path}${query}`
    .replace(':database', 'things')
    .replace(':key', 'b')
    .replace(':worker', 'crm')
    .replace(':sync', 'delta')
    .replace(':destination', 'copy')
    .replace(':connection', 'shop')
    .replace(':webhook', WEBHOOK.id)
    .replace(':name', 'none')
    .replace(':token', 'none')
    .replace(':provider', 'kraken')
    .replace(':apiKey', API_KEY.id)
}
