import { toIsoTime } from '../feed/read-feed-page.ts'
import { allowsScope, databaseReadScope } from './api-key.ts'
import { listDatabaseSchemas } from './database-schemas.ts'
import { HttpError } from './http-error.ts'
import { buildOpenApiDocument } from './openapi.ts'
import { sendData, sendJson, type Route } from './route.ts'
import { LIMIT_DEFAULT, LIMIT_MAX, objectSchema, WAIT_MAX_S } from './schemas.ts'
import { readSyncMetrics } from './sync-metrics.ts'

const PUBLIC_ACCESS = { kind: 'public' } as const
const ANY_OBJECT = { type: 'object', additionalProperties: true }
const STATUS_SCHEMA = objectSchema({ status: { type: 'string' } })

/** The anonymous document is cached, because unauthenticated callers may request it at any rate. */
const openApiCache = new WeakMap<readonly Route[], string>()

export const metaRoutes: readonly Route[] = [
  {
    method: 'GET', path: '/health', id: 'getHealth', access: PUBLIC_ACCESS, response: STATUS_SCHEMA, summary: 'The process lives.',
    handle: async ({ reply }) => sendJson(reply, '{"status":"ok"}'),
  },
  {
    method: 'GET', path: '/readiness', id: 'getReadiness', access: PUBLIC_ACCESS, response: STATUS_SCHEMA, summary: 'The store answers; 503 when it does not.',
    async handle({ reply, caller }) {
      await caller.store.headSequence().catch(() => {
        throw new HttpError('SERVICE_UNAVAILABLE', 'The store does not answer.', { headers: { 'retry-after': '5' } })
      })
      return sendJson(reply, '{"status":"ready"}')
    },
  },
  {
    method: 'GET', path: '/metrics', id: 'getMetrics', access: { kind: 'control', scope: 'sync:read' }, response: { type: 'string' }, mediaType: 'text/plain', summary: 'Figures for Prometheus.',
    async handle({ reply, caller, context: hall }) {
      const { store } = caller
      const text = await hall.metrics.render({ store, syncMetrics: await readSyncMetrics(hall, store), now: hall.ports.clock.now(), isOperator: hall.isServedTenant(store.tenant), capacity: hall.runnerCapacity() })
      return reply.type(hall.metrics.contentType).send(text)
    },
  },
  {
    method: 'GET', path: '/openapi.json', id: 'getOpenApi', access: { kind: 'open' }, response: ANY_OBJECT, summary: 'This interface, described by OpenAPI 3.1; for a key, with the databases that it may read and their records.',
    async handle({ reply, context: hall, caller }) {
      if (caller.scopes.length === 0) {
        const known = openApiCache.get(hall.routes) ?? JSON.stringify(buildOpenApiDocument(hall.routes, hall.version))
        openApiCache.set(hall.routes, known)
        return sendJson(reply, known)
      }
      return sendJson(reply, JSON.stringify(buildOpenApiDocument(hall.routes, hall.version, await listDatabaseSchemas(hall, caller))))
    },
  },
  {
    method: 'GET', path: '/agents/v1/capabilities', id: 'getCapabilities', access: { kind: 'key' }, response: ANY_OBJECT, summary: 'What this key may read, and within which limits.',
    async handle({ reply, caller, context: hall }) {
      const databases = (await caller.store.databaseNames()).filter((name) => allowsScope(caller.scopes, databaseReadScope(name)))
      return sendJson(reply, JSON.stringify({
        version: hall.version, tenant: caller.store.tenant, scopes: caller.scopes, databases: databases.map((name) => ({ name, path: `/agents/v1/${name}` })),
        changes: allowsScope(caller.scopes, 'changes:read') ? { path: '/agents/v1/changes', stream: true, longPollSecondsMax: WAIT_MAX_S } : null,
        limits: { limitDefault: LIMIT_DEFAULT, limitMax: LIMIT_MAX, requestsPerMinute: caller.rateLimit?.limit ?? null, cursorLifeDays: 7 },
      }))
    },
  },
  {
    method: 'GET', path: '/agents/v1/schema', id: 'getSchema', access: { kind: 'key' }, summary: 'The records of the databases that this key may read, as JSON Schemas: as declared, else by what has landed.',
    response: objectSchema({ data: { type: 'array', items: objectSchema({ name: { type: 'string' }, from: { type: 'string', enum: ['schema', 'columns'] }, schema: ANY_OBJECT }) } }),
    handle: async ({ reply, context: hall, caller }) => sendData(reply, await listDatabaseSchemas(hall, caller)),
  },
  {
    method: 'GET', path: '/agents/v1/auth/whoami', id: 'getWhoAmI', access: { kind: 'key' }, summary: 'Whose key this is, and what it may do.',
    response: objectSchema({
      data: objectSchema({
        tenant: { type: 'string' }, id: { type: 'string' }, name: { type: 'string' }, scopes: { type: 'array', items: { type: 'string' } }, requestsPerMinute: { type: 'integer' },
        endsAt: { type: ['string', 'null'], description: 'When the key ends; null when nobody has ended it.' },
      }),
    }),
    handle: async ({ reply, caller: { id, name, scopes, store, rateLimit: allowance, endsAt } }) =>
      sendData(reply, { tenant: store.tenant, id, name, scopes, requestsPerMinute: allowance?.limit, endsAt: endsAt === null ? null : toIsoTime(endsAt) }),
  },
]
