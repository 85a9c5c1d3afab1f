import { hash } from 'node:crypto'
import { draftManifest, listSourceForms, SOURCE_NAMES, type SourceForm } from '../../config/manifest/source-forms.ts'
import type { AuditEntry, AuditChainEntry } from '../../contract/index.ts'
import { redactState } from '../../redaction/redact-state.ts'
import { readTenantUsage } from '../../registry/tenant-usage.ts'
import { verifyAuditChain } from '../../registry/verify-audit-chain.ts'
import { parseJson, stringifyJson } from '../../values/json.ts'
import { required } from '../../values/required.ts'
import { allowsScope, DEFAULT_RATE_LIMIT, isScope, createApiKey } from '../api-key.ts'
import { sendChanges } from '../feed-routes.ts'
import { HttpError } from '../http-error.ts'
import { createRequestLog, pathParam, sendData, sendJson, type RouteRequest, type Route } from '../route.ts'
import {
  CHANGES_RESPONSE,
  CHANGES_QUERY,
  objectSchema,
  RECENT_QUERY,
  ROW_PARAMS,
  SYNC_PARAMS,
  type JsonSchema,
} from '../schemas.ts'
import { addApiKey } from '../cursor-ciphers.ts'
import { readSyncActivity, readTenantActivity } from './activity.ts'
import { isOperator, listFleet } from './fleet.ts'
import type {
  ActivityDocument,
  ActivityRange,
  CheckpointDocument,
  KeyDocument,
  SessionDocument,
  SyncDocument,
  TenantDocument,
  TenantsDocument,
  AuditChainDocument,
  AuditChainEntryDocument,
  AuditVerificationDocument,
} from './documents.ts'
import { explorerRoutes } from './explorer-routes.ts'
import { readRecordJson } from './serialize-records.ts'
import { resetSync } from './reset-sync.ts'
import { readSyncDetails } from './sync-details.ts'
import { toIso, listSyncDocuments } from './sync-documents.ts'
import { explainMissingRow } from './why-not.ts'

const readAccess = { kind: 'control', scope: 'sync:read' } as const
const writeAccess = { kind: 'control', scope: 'sync:write' } as const
const adminAccess = { kind: 'control', scope: 'admin' } as const

const TEXT = { type: 'string' }
const TEXT_OR_NULL = { type: ['string', 'null'] }
const NUMBER = { type: 'integer' }
const ANY_OBJECT = { type: 'object', additionalProperties: true }
const FLAG = { type: 'boolean' }
const LIST = { type: 'array', items: ANY_OBJECT }
const LIMIT = (RECENT_QUERY['properties'] as Record<string, JsonSchema>)['limit'] ?? {}
const SYNC = objectSchema({
  tenant: TEXT,
  worker: TEXT,
  sync: TEXT,
  health: TEXT,
  coverage: ANY_OBJECT,
  version: NUMBER,
})
const KEY = objectSchema({
  id: TEXT,
  name: TEXT,
  scopes: { type: 'array', items: TEXT },
  rateLimit: NUMBER,
  createdAt: TEXT,
  endsAt: { type: ['string', 'null'] },
  isValid: FLAG,
})
const KEY_PARAMS = objectSchema({ apiKey: { type: 'string', pattern: '^[0-9a-f]{16}$', description: 'Key id.' } })
const NEWEST_CHANGES = 100
const TENANTS_MAX = 200

/** Routes for the console beyond `/api`. Not a stable API: responses may change from release to release. */
export const consoleRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/console/api/session',
    id: 'consoleSession',
    access: readAccess,
    response: objectSchema({
      data: objectSchema({
        tenant: TEXT,
        version: TEXT,
        key: { type: ['string', 'null'] },
        scopes: { type: 'array', items: TEXT },
        databases: NUMBER,
        headSequence: NUMBER,
        tenants: NUMBER,
      }),
    }),
    summary: 'The caller and its tenant.',
    handle: async (routeRequest) => sendData(routeRequest.reply, await readSession(routeRequest)),
  },
  {
    method: 'GET',
    path: '/console/api/overview',
    id: 'consoleOverview',
    access: readAccess,
    response: objectSchema({
      data: objectSchema({ tenant: TEXT, headSequence: NUMBER, syncs: { type: 'array', items: SYNC } }),
    }),
    summary: 'The status and coverage of every sync. Returns 304 while nothing has changed.',
    handle: async (routeRequest) =>
      sendWithEtag(
        routeRequest,
        JSON.stringify({
          data: {
            tenant: routeRequest.caller.store.tenant,
            headSequence: await routeRequest.caller.store.headSequence(),
            syncs: await listSyncDocuments(routeRequest.context, routeRequest.caller.store),
          },
        }),
      ),
  },
  {
    method: 'GET',
    path: '/console/api/fleet',
    id: 'consoleFleet',
    access: adminAccess,
    response: objectSchema({ data: objectSchema({ syncs: { type: 'array', items: SYNC }, isCut: FLAG }) }),
    summary:
      'The status of the declared syncs of every tenant, without messages of their sources, for an admin of the tenant whose worker runs here; others see their own tenant.',
    handle: async (routeRequest) =>
      sendWithEtag(routeRequest, JSON.stringify({ data: await listFleet(routeRequest.context, routeRequest.caller) })),
  },
  {
    method: 'GET',
    path: '/console/api/activity',
    id: 'consoleActivity',
    access: readAccess,
    response: objectSchema({
      data: objectSchema({
        from: TEXT,
        stepMs: NUMBER,
        ...Object.fromEntries(
          ['rows', 'cycles', 'failed', 'waitedMs', 'retries'].map((name) => [name, { type: 'array', items: NUMBER }]),
        ),
        lagMs: { type: ['array', 'null'], items: { type: ['number', 'null'] } },
      }),
    }),
    query: objectSchema(
      {
        range: { ...TEXT, enum: ['1h', '24h', '7d'], default: '1h', description: 'The time up to now.' },
        worker: { type: 'string', maxLength: 63, description: 'Only this worker.' },
        sync: { type: 'string', maxLength: 63, description: 'Only this sync of the worker, with its lag.' },
      },
      [],
    ),
    summary: 'Rows, cycles, failures and waits in equal steps of time, computed from the stored cycles.',
    handle: async (routeRequest) => sendData(routeRequest.reply, await readActivity(routeRequest)),
  },
  {
    method: 'GET',
    path: '/console/api/syncs/:worker/:sync',
    id: 'consoleSync',
    access: readAccess,
    params: SYNC_PARAMS,
    response: objectSchema({ data: SYNC }),
    summary: 'One sync, as in the overview.',
    handle: async (routeRequest) => sendWithEtag(routeRequest, JSON.stringify({ data: await findSync(routeRequest) })),
  },
  {
    method: 'GET',
    path: '/console/api/syncs/:worker/:sync/details',
    id: 'consoleSyncDetails',
    access: readAccess,
    params: SYNC_PARAMS,
    response: objectSchema({ data: objectSchema({ pacers: LIST, databases: LIST, isCut: FLAG }) }),
    summary: 'The rate limits of a sync, and the columns, drift and last verification of its databases.',
    handle: async (routeRequest) =>
      sendData(routeRequest.reply, await readSyncDetails(routeRequest, await findSync(routeRequest))),
  },
  {
    method: 'GET',
    path: '/console/api/syncs/:worker/:sync/checkpoints',
    id: 'consoleCheckpoints',
    access: readAccess,
    params: SYNC_PARAMS,
    response: objectSchema({ data: LIST }),
    query: objectSchema(
      {
        limit: LIMIT,
        reveal: {
          type: 'boolean',
          default: false,
          description: 'Show the full states; requires a key with the scope `admin`, even on loopback.',
        },
      },
      [],
    ),
    summary: 'Checkpoint history, newest first, with a digest of each state.',
    handle: async (routeRequest) =>
      sendJson(routeRequest.reply, stringifyJson({ data: await readCheckpoints(routeRequest) } as never)),
  },
  {
    method: 'POST',
    path: '/console/api/syncs/:worker/:sync/reset',
    id: 'consoleReset',
    access: writeAccess,
    params: SYNC_PARAMS,
    response: objectSchema({
      data: objectSchema({ isDone: FLAG, version: NUMBER, nextCycle: TEXT }, ['isDone', 'version', 'nextCycle']),
    }),
    body: objectSchema(
      {
        version: {
          type: 'integer',
          minimum: 0,
          description: 'The version the plan was made for; without it, only the plan is returned.',
        },
        reason: { type: 'string', maxLength: 1_000, description: 'Reason for the audit log.' },
      },
      [],
    ),
    summary: 'Returns the plan to reset the state of a sync; with its current version, applies it.',
    async handle(routeRequest) {
      await findSync(routeRequest)
      return sendData(routeRequest.reply, await resetSync(routeRequest))
    },
  },
  ...explorerRoutes,
  {
    method: 'GET',
    path: '/console/api/databases/:database/rows/:key',
    id: 'consoleRecord',
    access: { kind: 'control', scope: ':database:read' },
    params: ROW_PARAMS,
    response: objectSchema({
      data: objectSchema({ database: TEXT, key: TEXT, isLive: FLAG, isCut: FLAG, history: LIST }),
    }),
    summary: 'The change history of one record, newest first.',
    handle: async (routeRequest) =>
      sendJson(
        routeRequest.reply,
        await readRecordJson(
          routeRequest.caller.store,
          pathParam(routeRequest, 'database'),
          pathParam(routeRequest, 'key'),
        ),
      ),
  },
  {
    method: 'POST',
    path: '/console/api/databases/:database/rows/:key/why-not',
    id: 'consoleWhyNot',
    access: { kind: 'control', scope: ':database:read' },
    params: ROW_PARAMS,
    response: objectSchema({
      data: objectSchema({
        database: TEXT,
        key: TEXT,
        verdict: TEXT,
        why: TEXT,
        advice: TEXT,
        should: { type: ['object', 'null'] },
        source: ANY_OBJECT,
        syncs: LIST,
      }),
    }),
    summary:
      'Explains why a key is missing and what to run. Queries the source if it supports lookups of single records.',
    handle: async (routeRequest) => sendData(routeRequest.reply, await explainMissingRow(routeRequest)),
  },
  {
    method: 'GET',
    path: '/console/api/changes',
    id: 'consoleChanges',
    access: { kind: 'control', scope: 'changes:read' },
    query: CHANGES_QUERY,
    response: CHANGES_RESPONSE,
    summary: 'Like `/agents/v1/changes`, but starts with the newest changes without a cursor.',
    handle: (routeRequest) => sendNewestChanges(routeRequest),
  },
  {
    method: 'GET',
    path: '/console/api/keys',
    id: 'consoleKeys',
    access: adminAccess,
    response: objectSchema({ data: { type: 'array', items: KEY } }),
    summary: 'The keys of the tenant, without their secrets.',
    handle: async (routeRequest) => sendData(routeRequest.reply, await listKeys(routeRequest)),
  },
  {
    method: 'POST',
    path: '/console/api/keys',
    id: 'consoleCreateKey',
    access: adminAccess,
    response: objectSchema({ data: objectSchema({ id: TEXT, text: TEXT }) }),
    body: objectSchema({
      name: { type: 'string', minLength: 1, maxLength: 100, description: 'Name of the key.' },
      scopes: { type: 'array', items: TEXT, minItems: 1, maxItems: 100, description: 'Scopes of the key.' },
    }),
    summary: 'Creates a key. It is returned once; only a hash of it is stored.',
    handle: async (routeRequest) => sendData(routeRequest.reply, await createKey(routeRequest)),
  },
  {
    method: 'POST',
    path: '/console/api/keys/:apiKey/revoke',
    id: 'consoleRevokeKey',
    access: adminAccess,
    params: KEY_PARAMS,
    response: objectSchema({ data: objectSchema({ id: TEXT }) }),
    summary: 'Revokes a key.',
    handle: async (routeRequest) => sendData(routeRequest.reply, await revokeKey(routeRequest)),
  },
  {
    method: 'GET',
    path: '/console/api/sources',
    id: 'consoleSources',
    access: readAccess,
    response: objectSchema({ data: LIST }),
    summary: 'The available sources, with the schemas of their configuration.',
    handle: (routeRequest) => sendWithEtag(routeRequest, JSON.stringify({ data: listSourceForms() })),
  },
  {
    method: 'POST',
    path: '/console/api/manifest',
    id: 'consoleManifest',
    access: readAccess,
    body: objectSchema({ source: { enum: SOURCE_NAMES }, config: { type: 'object' }, stream: { type: 'object' } }),
    response: objectSchema({
      data: objectSchema({
        manifest: TEXT_OR_NULL,
        secrets: { type: 'array', items: TEXT },
        error: TEXT_OR_NULL,
      }),
    }),
    summary: 'The manifest of a source and a stream, or its first error. Nothing is stored, and no secret is read.',
    handle({ request, reply }) {
      const { source, config, stream } = request.body as { source: SourceForm['name']; config: object; stream: object }
      return sendData(reply, draftManifest(source, config, stream))
    },
  },
  {
    method: 'GET',
    path: '/console/api/tenants',
    id: 'consoleTenants',
    access: adminAccess,
    response: objectSchema({ data: objectSchema({ tenants: LIST, isCut: FLAG }) }),
    summary:
      'Tenants of the store with their row and change counts. Only for an admin of the tenant whose worker runs here; others see their own tenant.',
    handle: async (routeRequest) => sendData(routeRequest.reply, await listTenants(routeRequest)),
  },
  {
    method: 'GET',
    path: '/console/api/audit',
    id: 'consoleAudit',
    access: adminAccess,
    response: objectSchema({ data: objectSchema({ head: TEXT, count: NUMBER, entries: LIST }) }),
    query: objectSchema(
      { limit: LIMIT, before: { type: 'integer', minimum: 1, description: 'Only entries older than this id.' } },
      [],
    ),
    summary: 'The audit log of the tenant, newest first, without states.',
    handle: async (routeRequest) => sendData(routeRequest.reply, await readAuditChain(routeRequest)),
  },
  {
    method: 'GET',
    path: '/console/api/audit/verdict',
    id: 'consoleVerdict',
    access: adminAccess,
    response: objectSchema({
      data: objectSchema({
        intact: FLAG,
        entries: NUMBER,
        head: TEXT,
        brokenAt: { type: ['object', 'null'] },
        states: LIST,
      }),
    }),
    summary: 'Verifies the hash chain of the audit log and that it matches every stored state.',
    handle: async (routeRequest) => sendData(routeRequest.reply, await verifyAudit(routeRequest)),
  },
]

async function readSession({ caller, context }: RouteRequest): Promise<SessionDocument> {
  const { store, id, name, scopes } = caller
  return {
    tenant: store.tenant,
    version: context.version,
    key: id === null ? null : name,
    scopes,
    databases: (await store.databaseNames()).length,
    headSequence: await store.headSequence(),
    tenants: isOperator(context, caller) ? (await store.tenants()).length : 1,
  }
}

/** A sync of another tenant is reported as not found. */
async function findSync({ caller, context, params }: RouteRequest): Promise<SyncDocument> {
  const found = (await listSyncDocuments(context, caller.store)).find(
    ({ worker, sync }) => worker === params['worker'] && sync === params['sync'],
  )
  if (found === undefined) throw new HttpError('NOT_FOUND', 'Sync not found.')
  return found
}

function readActivity({ caller, context, query }: RouteRequest): Promise<ActivityDocument> {
  const { worker, sync, range = '1h' } = query as { worker?: string; sync?: string; range?: ActivityRange }
  const now = context.ports.clock.now()
  return worker === undefined || sync === undefined
    ? readTenantActivity(context, caller.store, range, now)
    : readSyncActivity(caller.store, { worker, sync }, range, now)
}

async function readCheckpoints(routeRequest: RouteRequest): Promise<CheckpointDocument[]> {
  const { caller, query } = routeRequest
  const reveal = String(query['reveal']) === 'true'
  if (reveal && caller.id === null)
    throw new HttpError('FORBIDDEN', 'Send a key with the scope `admin` to see full states.')
  if (reveal && !allowsScope(caller.scopes, 'admin'))
    throw new HttpError('FORBIDDEN', 'The key lacks the scope `admin`, which is required to see full states.')
  const { worker, sync } = await findSync(routeRequest)
  if (reveal) createRequestLog(routeRequest).info('states revealed', { worker, sync, by: caller.name })
  return (await caller.store.audit({ worker, sync }, { limit: Number(query['limit']) })).map((entry) =>
    toCheckpointDocument(entry, reveal),
  )
}

function toCheckpointDocument({ state, at, ...entry }: AuditEntry, reveal: boolean): CheckpointDocument {
  const redacted = redactState(state)
  return {
    ...entry,
    at: toIso(at),
    state: redacted === null || !reveal ? redacted : { ...redacted, value: parseJson(required(state, 'the state')) },
  }
}

async function sendNewestChanges(routeRequest: RouteRequest): Promise<unknown> {
  // With a filter, the newest entries may all belong to other databases.
  const lookback = routeRequest.query['types'] === undefined ? NEWEST_CHANGES : NEWEST_CHANGES * 50
  return await sendChanges(routeRequest, Math.max(0, (await routeRequest.caller.store.headSequence()) - lookback))
}

async function listKeys({ caller, context }: RouteRequest): Promise<KeyDocument[]> {
  const now = context.ports.clock.now()
  return (await caller.store.apiKeys()).map(({ id, name, scopes, rateLimit, createdAt, endsAt }) => ({
    id,
    name,
    scopes,
    rateLimit,
    createdAt: toIso(createdAt),
    endsAt: toIso(endsAt),
    isValid: endsAt === null || endsAt > now,
  }))
}

async function createKey({ caller, context, request }: RouteRequest): Promise<{ id: string; text: string }> {
  const { name, scopes } = request.body as { name: string; scopes: string[] }
  const wrong = scopes.find((scope) => !isScope(scope))
  if (wrong !== undefined)
    throw new HttpError(
      'INVALID_REQUEST',
      `Unknown scope ${JSON.stringify(wrong.slice(0, 80))}. Valid scopes are changes:read, <database>:read, *:read, sync:read, sync:write, connections:write and admin.`,
      { details: { reason: 'parameter_invalid' } },
    )
  const { text, key } = createApiKey({
    name,
    scopes,
    rateLimit: DEFAULT_RATE_LIMIT,
    createdAt: context.ports.clock.now(),
  })
  await addApiKey(caller.store, key, `console:${caller.name}`)
  return { id: key.id, text }
}

async function revokeKey(routeRequest: RouteRequest): Promise<{ id: string }> {
  const { caller, context } = routeRequest
  const id = pathParam(routeRequest, 'apiKey')
  const at = context.ports.clock.now()
  if (!(await caller.store.revokeApiKey(id, at, { actor: `console:${caller.name}`, at })))
    throw new HttpError('NOT_FOUND', 'Key not found, or already expired or revoked.')
  return { id }
}

async function listTenants({ caller: { store }, context }: RouteRequest): Promise<TenantsDocument> {
  const names = store.tenant === context.tenant ? await store.tenants() : [store.tenant]
  const tenants: TenantDocument[] = []
  for (const name of names.slice(0, TENANTS_MAX)) {
    const { wrappedBy: _, ...usage } = await readTenantUsage(store.forTenant(name))
    tenants.push(usage)
  }
  return { tenants, isCut: names.length > tenants.length }
}

async function readAuditChain({ caller, query }: RouteRequest): Promise<AuditChainDocument> {
  const { entries, head, count } = await caller.store.auditChain({
    before: Number(query['before'] ?? Number.MAX_SAFE_INTEGER),
    limit: Number(query['limit']),
  })
  return { head, count, entries: entries.map(toAuditChainEntryDocument) }
}

/** Omits the state. */
function toAuditChainEntryDocument({
  id,
  at,
  actor,
  action,
  reason,
  worker,
  sync,
  version,
  cycle,
  hash: entryHash,
}: AuditChainEntry): AuditChainEntryDocument {
  return { id, at: toIso(at), actor, action, reason, worker, sync, version, cycle, hash: entryHash }
}

async function verifyAudit({ caller }: RouteRequest): Promise<AuditVerificationDocument> {
  const { intact, entries, head, brokenAt, states } = await verifyAuditChain(caller.store)
  return { intact, entries, head, brokenAt, states }
}

/** Answers 304 to a poller that already has the current version. */
function sendWithEtag({ request, reply }: RouteRequest, body: string): unknown {
  const tag = `"${hash('sha1', body, 'base64url')}"`
  void reply.header('etag', tag)
  return request.headers['if-none-match']?.replace(/^W\//, '') === tag ? reply.code(304).send() : sendJson(reply, body)
}
