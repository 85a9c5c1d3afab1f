import { isoTime } from '../feed/read-page.ts'
import { allows, readScope } from './api-key.ts'
import { databaseSchemas } from './database-schemas.ts'
import { HttpError } from './http-error.ts'
import { openApiDocument } from './openapi.ts'
import { sendData, sendJson, type Route } from './route.ts'
import { LIMIT_DEFAULT, LIMIT_MAX, object, WAIT_MAX_S } from './schemas.ts'
import { readSyncFigures } from './sync-figures.ts'

const OPEN = { kind: 'public' } as const
const ANYTHING = { type: 'object', additionalProperties: true }
const STATUS = object({ status: { type: 'string' } })

/** For anybody, by what is served: made once, since anybody may ask for it as often as they like. */
const documents = new WeakMap<readonly Route[], string>()

/** About the server itself. */
export const metaRoutes: readonly Route[] = [
  {
    method: 'GET', path: '/health', id: 'getHealth', access: OPEN, answer: STATUS, summary: 'The process lives.',
    handle: async ({ reply }) => sendJson(reply, '{"status":"ok"}'),
  },
  {
    method: 'GET', path: '/readiness', id: 'getReadiness', access: OPEN, answer: STATUS, summary: 'The store answers; 503 when it does not.',
    async handle({ reply, caller }) {
      await caller.store.position().catch(() => {
        throw new HttpError('SERVICE_UNAVAILABLE', 'The store does not answer.', { headers: { 'retry-after': '5' } })
      })
      return sendJson(reply, '{"status":"ready"}')
    },
  },
  {
    method: 'GET', path: '/metrics', id: 'getMetrics', access: { kind: 'control', scope: 'sync:read' }, answer: { type: 'string' }, media: 'text/plain', summary: 'Figures for Prometheus.',
    async handle({ reply, caller, hall }) {
      const { store } = caller
      const text = await hall.metrics.text({ store, figures: await readSyncFigures(hall, store), now: hall.ports.clock.now(), isOwn: hall.isOwn(store.tenant), places: hall.places() })
      return reply.type(hall.metrics.contentType).send(text)
    },
  },
  {
    method: 'GET', path: '/openapi.json', id: 'getOpenApi', access: { kind: 'open' }, answer: ANYTHING, summary: 'This interface, described by OpenAPI 3.1; for a key, with the databases that it may read and their records.',
    async handle({ reply, hall, caller }) {
      if (caller.scopes.length === 0) {
        const known = documents.get(hall.routes) ?? JSON.stringify(openApiDocument(hall.routes, hall.version))
        documents.set(hall.routes, known)
        return sendJson(reply, known)
      }
      return sendJson(reply, JSON.stringify(openApiDocument(hall.routes, hall.version, await databaseSchemas(hall, caller))))
    },
  },
  {
    method: 'GET', path: '/agents/v1/capabilities', id: 'getCapabilities', access: { kind: 'key' }, answer: ANYTHING, summary: 'What this key may read, and within which limits.',
    async handle({ reply, caller, hall }) {
      const databases = (await caller.store.databaseNames()).filter((name) => allows(caller.scopes, readScope(name)))
      return sendJson(reply, JSON.stringify({
        version: hall.version, tenant: caller.store.tenant, scopes: caller.scopes, databases: databases.map((name) => ({ name, path: `/agents/v1/${name}` })),
        changes: allows(caller.scopes, 'changes:read') ? { path: '/agents/v1/changes', stream: true, longPollSecondsMax: WAIT_MAX_S } : null,
        limits: { limitDefault: LIMIT_DEFAULT, limitMax: LIMIT_MAX, requestsPerMinute: caller.allowance?.limit ?? null, cursorLifeDays: 7 },
      }))
    },
  },
  {
    method: 'GET', path: '/agents/v1/schema', id: 'getSchema', access: { kind: 'key' }, summary: 'The records of the databases that this key may read, as JSON Schemas: as declared, else by what has landed.',
    answer: object({ data: { type: 'array', items: object({ name: { type: 'string' }, from: { type: 'string', enum: ['schema', 'columns'] }, schema: ANYTHING }) } }),
    handle: async ({ reply, hall, caller }) => sendData(reply, await databaseSchemas(hall, caller)),
  },
  {
    method: 'GET', path: '/agents/v1/auth/whoami', id: 'getWhoAmI', access: { kind: 'key' }, summary: 'Whose key this is, and what it may do.',
    answer: object({
      data: object({
        tenant: { type: 'string' }, id: { type: 'string' }, name: { type: 'string' }, scopes: { type: 'array', items: { type: 'string' } }, requestsPerMinute: { type: 'integer' },
        endsAt: { type: ['string', 'null'], description: 'When the key ends; null when nobody has ended it.' },
      }),
    }),
    handle: async ({ reply, caller: { id, name, scopes, store, allowance, endsAt } }) =>
      sendData(reply, { tenant: store.tenant, id, name, scopes, requestsPerMinute: allowance?.limit, endsAt: endsAt === null ? null : isoTime(endsAt) }),
  },
]
