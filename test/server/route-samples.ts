import type { ApiKey, WebhookSettings } from '../../src/contract/index.ts'
import type { Route } from '../../src/server/route.ts'

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

/** For routes with a required body. */
export const BODIES: Readonly<Record<string, object>> = {
  editWebhook: { actions: ['deleted'], dryRun: true },
  addWebhook: { url: 'https://hooks.example.com/x' },
  consoleCreateKey: { name: 'x', scopes: ['*:read'] },
}

/** Paths of the row b of things, the sync crm/delta, and the webhook and key above. */
export function pathOf({ path }: Route): string {
  return path
    .replace(':database', 'things')
    .replace(':key', 'b')
    .replace(':worker', 'crm')
    .replace(':sync', 'delta')
    .replace(':webhook', WEBHOOK.id)
    .replace(':name', 'none')
    .replace(':apiKey', API_KEY.id)
}
