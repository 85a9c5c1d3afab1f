import { toIsoTime } from '../feed/read-feed-page.ts'
import { allowsScope, databaseReadScope } from './api-key.ts'
import { readCertificate } from './certificates.ts'
import { listDatabaseSchemas } from './database-schemas.ts'
import { HttpError } from './http-error.ts'
import { buildOpenApiDocument } from './openapi.ts'
import { sendData, sendJson, type Route } from './route.ts'
import { LIMIT_DEFAULT, LIMIT_MAX, objectSchema, WAIT_MAX_S } from './schemas.ts'
import { readDestinationOverviews } from '../destinations/loop/destination-overview.ts'
import { readSyncMetrics } from './sync-metrics.ts'

const PUBLIC_ACCESS = { kind: 'public' } as const
const ANY_OBJECT = { type: 'object', additionalProperties: true }
const STATUS_SCHEMA = objectSchema({ status: { type: 'string' } })

/** The anonymous document is cached, because unauthenticated callers may request it at any rate. */
const openApiCache = new WeakMap<readonly Route[], string>()

export const metaRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/health',
    id: 'getHealth',
    access: PUBLIC_ACCESS,
    response: STATUS_SCHEMA,
    summary: 'Liveness: the process is running.',
    handle: async ({ reply }) => sendJson(reply, '{"status":"ok"}'),
  },
  {
    method: 'GET',
    path: '/readiness',
    id: 'getReadiness',
    access: PUBLIC_ACCESS,
    response: STATUS_SCHEMA,
    summary: 'Readiness: the store is reachable; 503 if it is not.',
    async handle({ reply, caller }) {
      await caller.store.headSequence().catch(() => {
        throw new HttpError('SERVICE_UNAVAILABLE', 'The store is unreachable.', { headers: { 'retry-after': '5' } })
      })
      return sendJson(reply, '{"status":"ready"}')
    },
  },
  {
    method: 'GET',
    path: '/metrics',
    id: 'getMetrics',
    access: { kind: 'control', scope: 'sync:read' },
    response: { type: 'string' },
    mediaType: 'text/plain',
    summary: 'Metrics in the Prometheus format.',
    async handle({ reply, caller, context }) {
      const { store } = caller
      const text = await context.metrics.render({
        store,
        syncMetrics: await readSyncMetrics(context, store),
        destinations: await readDestinationOverviews(
          store,
          context.isServedTenant(store.tenant) ? context.destinations : [],
          context.ports.clock.now(),
        ),
        verifications: await store.lastVerifications(),
        now: context.ports.clock.now(),
        isOperator: context.isServedTenant(store.tenant),
        capacity: context.runnerCapacity(),
      })
      return reply.type(context.metrics.contentType).send(text)
    },
  },
  {
    method: 'GET',
    path: '/openapi.json',
    id: 'getOpenApi',
    access: { kind: 'open' },
    response: ANY_OBJECT,
    summary: 'This API as OpenAPI 3.1; with a key, including the databases that it may read and their records.',
    async handle({ reply, context, caller }) {
      if (caller.scopes.length === 0) {
        const known =
          openApiCache.get(context.routes) ?? JSON.stringify(buildOpenApiDocument(context.routes, context.version))
        openApiCache.set(context.routes, known)
        return sendJson(reply, known)
      }
      return sendJson(
        reply,
        JSON.stringify(
          buildOpenApiDocument(context.routes, context.version, await listDatabaseSchemas(context, caller)),
        ),
      )
    },
  },
  {
    method: 'GET',
    path: '/agents/v1/capabilities',
    id: 'getCapabilities',
    access: { kind: 'key' },
    response: ANY_OBJECT,
    summary: 'The databases that this key may read, and its limits.',
    async handle({ reply, caller, context }) {
      const databases = (await caller.store.databaseNames()).filter((name) =>
        allowsScope(caller.scopes, databaseReadScope(name)),
      )
      return sendJson(
        reply,
        JSON.stringify({
          version: context.version,
          tenant: caller.store.tenant,
          scopes: caller.scopes,
          databases: await Promise.all(
            databases.map(async (name) => ({
              name,
              path: `/agents/v1/${name}`,
              certificate: await readCertificate(context, caller.store, name),
            })),
          ),
          changes: allowsScope(caller.scopes, 'changes:read')
            ? { path: '/agents/v1/changes', stream: true, longPollSecondsMax: WAIT_MAX_S }
            : null,
          limits: {
            limitDefault: LIMIT_DEFAULT,
            limitMax: LIMIT_MAX,
            requestsPerMinute: caller.rateLimit?.limit ?? null,
            cursorLifeDays: 7,
          },
        }),
      )
    },
  },
  {
    method: 'GET',
    path: '/agents/v1/schema',
    id: 'getSchema',
    access: { kind: 'key' },
    summary: 'JSON Schemas of the databases that this key may read: as declared, or derived from the stored columns.',
    response: objectSchema({
      data: {
        type: 'array',
        items: objectSchema({
          name: { type: 'string' },
          from: { type: 'string', enum: ['schema', 'columns'] },
          schema: ANY_OBJECT,
        }),
      },
    }),
    handle: async ({ reply, context, caller }) => sendData(reply, await listDatabaseSchemas(context, caller)),
  },
  {
    method: 'GET',
    path: '/agents/v1/auth/whoami',
    id: 'getWhoAmI',
    access: { kind: 'key' },
    summary: 'The tenant and the scopes of this key.',
    response: objectSchema({
      data: objectSchema({
        tenant: { type: 'string' },
        id: { type: 'string' },
        name: { type: 'string' },
        scopes: { type: 'array', items: { type: 'string' } },
        requestsPerMinute: { type: 'integer' },
        endsAt: { type: ['string', 'null'], description: 'Expiry or revocation time of the key, or null.' },
      }),
    }),
    handle: async ({ reply, caller: { id, name, scopes, store, rateLimit, endsAt } }) =>
      sendData(reply, {
        tenant: store.tenant,
        id,
        name,
        scopes,
        requestsPerMinute: rateLimit?.limit,
        endsAt: endsAt === null ? null : toIsoTime(endsAt),
      }),
  },
]
