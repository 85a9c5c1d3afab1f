import { hash } from 'node:crypto'
import type { AuditEntry, AuditChainEntry } from '../../contract/index.ts'
import { redactState } from '../../redaction/redact-state.ts'
import { readTenantUsage } from '../../registry/tenant-usage.ts'
import { verifyAuditChain } from '../../registry/verify-audit-chain.ts'
import { parseJson, stringifyJson } from '../../values/json.ts'
import { allowsScope, DEFAULT_RATE_LIMIT, isScope, createApiKey } from '../api-key.ts'
import { sendChanges } from '../feed-routes.ts'
import { HttpError } from '../http-error.ts'
import { createRequestLog, sendData, sendJson, type RouteRequest, type Route } from '../route.ts'
import { CHANGES_RESPONSE, CHANGES_QUERY, DATABASE_PARAMS, objectSchema, RECENT_QUERY, ROW_PARAMS, SYNC_PARAMS, type JsonSchema } from '../schemas.ts'
import { addApiKey } from '../cursor-ciphers.ts'
import { computeActivity } from './activity.ts'
import type { CheckpointDocument, KeyDocument, SessionDocument, SyncDocument, TenantDocument, TenantsDocument, AuditChainDocument, AuditChainEntryDocument, AuditVerificationDocument } from './documents.ts'
import { readRecordJson, readRowsJson } from './serialize-records.ts'
import { resetSync } from './reset-sync.ts'
import { toIso, listSyncDocuments } from './sync-documents.ts'
import { explainMissingRow } from './why-not.ts'

const readAccess = { kind: 'control', scope: 'sync:read' } as const
const writeAccess = { kind: 'control', scope: 'sync:write' } as const
const adminAccess = { kind: 'control', scope: 'admin' } as const

const TEXT = { type: 'string' }
const NUMBER = { type: 'integer' }
const ANY_OBJECT = { type: 'object', additionalProperties: true }
const FLAG = { type: 'boolean' }
const LIST = { type: 'array', items: ANY_OBJECT }
const LIMIT = (RECENT_QUERY['properties'] as Record<string, JsonSchema>)['limit']!
const SYNC = objectSchema({ worker: TEXT, sync: TEXT, health: TEXT, coverage: ANY_OBJECT, version: NUMBER })
const KEY = objectSchema({ id: TEXT, name: TEXT, scopes: { type: 'array', items: TEXT }, rateLimit: NUMBER, createdAt: TEXT, endsAt: { type: ['string', 'null'] }, isValid: FLAG })
const KEY_PARAMS = objectSchema({ apiKey: { type: 'string', pattern: '^[0-9a-f]{16}$', description: 'The id of a key.' } })
/** Newest cycles used for a chart. */
const CYCLES_MAX = 1_000
const NEWEST_CHANGES = 100
const TENANTS_MAX = 200

/** Routes for the console beyond `/api`. Not a stable API: responses may change from release to release. */
export const consoleRoutes: readonly Route[] = [
  {
    method: 'GET', path: '/console/api/session', id: 'consoleSession', access: readAccess, response: objectSchema({ data: objectSchema({ tenant: TEXT, version: TEXT, key: { type: ['string', 'null'] }, scopes: { type: 'array', items: TEXT }, databases: NUMBER, position: NUMBER }) }),
    summary: 'Who asks, and for which tenant.',
    handle: async (ask) => sendData(ask.reply, await readSession(ask)),
  },
  {
    method: 'GET', path: '/console/api/overview', id: 'consoleOverview', access: readAccess, response: objectSchema({ data: objectSchema({ tenant: TEXT, position: NUMBER, syncs: { type: 'array', items: SYNC } }) }),
    summary: 'Every sync: where it stands, and what of the history is in the copy. Answers 304 while nothing has moved.',
    handle: async (ask) => sendWithEtag(ask, JSON.stringify({ data: { tenant: ask.caller.store.tenant, position: await ask.caller.store.headSequence(), syncs: await listSyncDocuments(ask.context, ask.caller.store) } })),
  },
  {
    method: 'GET', path: '/console/api/activity', id: 'consoleActivity', access: readAccess, response: objectSchema({ data: objectSchema({ from: TEXT, stepMs: NUMBER, rows: { type: 'array', items: NUMBER }, errors: { type: 'array', items: NUMBER }, lagMs: { type: 'array', items: { type: ['number', 'null'] } } }) }),
    query: objectSchema({ worker: { type: 'string', maxLength: 63, description: 'Of this worker only.' }, sync: { type: 'string', maxLength: 63, description: 'Of this sync of it only.' } }, []), summary: 'Rows, failures and lag over time, from the newest cycles.',
    handle: async (ask) => sendData(ask.reply, await readActivity(ask)),
  },
  {
    method: 'GET', path: '/console/api/syncs/:worker/:sync', id: 'consoleSync', access: readAccess, params: SYNC_PARAMS, response: objectSchema({ data: SYNC }), summary: 'One sync, as the overview tells it.',
    handle: async (ask) => sendWithEtag(ask, JSON.stringify({ data: await findSync(ask) })),
  },
  {
    method: 'GET', path: '/console/api/syncs/:worker/:sync/checkpoints', id: 'consoleCheckpoints', access: readAccess, params: SYNC_PARAMS, response: objectSchema({ data: LIST }),
    query: objectSchema({ limit: LIMIT, reveal: { type: 'boolean', default: false, description: 'Show the states as they are; needs a key with the scope `admin`, also on this machine.' } }, []), summary: 'Every move of the checkpoint, newest first, with a digest of the state it left.',
    handle: async (ask) => sendJson(ask.reply, stringifyJson({ data: await readCheckpoints(ask) } as never)),
  },
  {
    method: 'POST', path: '/console/api/syncs/:worker/:sync/reset', id: 'consoleReset', access: writeAccess, params: SYNC_PARAMS, response: objectSchema({ data: objectSchema({ isDone: FLAG, version: NUMBER, nextCycle: TEXT }, ['isDone', 'version', 'nextCycle']) }),
    body: objectSchema({ version: { type: 'integer', minimum: 0, description: 'The version that was looked at; without, nothing is done.' }, reason: { type: 'string', maxLength: 1_000, description: 'Why, for the audit.' } }, []),
    summary: 'What it would do to forget the state of a sync; with the version it has, does it.',
    async handle(ask) {
      await findSync(ask)
      return sendData(ask.reply, await resetSync(ask))
    },
  },
  {
    method: 'GET', path: '/console/api/databases/:database/rows', id: 'consoleRows', access: { kind: 'control', scope: ':database:read' }, params: DATABASE_PARAMS, response: objectSchema({ data: LIST, next: { type: ['string', 'null'] }, scanned: NUMBER }),
    query: objectSchema({ after: { type: 'string', maxLength: 1_024, description: 'From `next`.' }, search: { type: 'string', minLength: 1, maxLength: 200, description: 'Only rows whose key or record contains this.' }, limit: { ...LIMIT, maximum: 200, default: 50 } }, []), summary: 'Rows by key.',
    handle: async (ask) => sendJson(ask.reply, await readRowsJson(ask.caller.store, ask.params['database']!, { after: queryText(ask, 'after'), search: queryText(ask, 'search'), limit: Number(ask.query['limit']) })),
  },
  {
    method: 'GET', path: '/console/api/databases/:database/rows/:key', id: 'consoleRecord', access: { kind: 'control', scope: ':database:read' }, params: ROW_PARAMS, response: objectSchema({ data: objectSchema({ database: TEXT, key: TEXT, isLive: FLAG, isCut: FLAG, history: LIST }) }), summary: 'Everything that ever happened to one record, newest first.',
    handle: async (ask) => sendJson(ask.reply, await readRecordJson(ask.caller.store, ask.params['database']!, ask.params['key']!)),
  },
  {
    method: 'POST', path: '/console/api/databases/:database/rows/:key/why-not', id: 'consoleWhyNot', access: { kind: 'control', scope: ':database:read' }, params: ROW_PARAMS, response: objectSchema({ data: objectSchema({ database: TEXT, key: TEXT, verdict: TEXT, why: TEXT, advice: TEXT, should: { type: ['object', 'null'] }, source: ANY_OBJECT, syncs: LIST }) }),
    summary: 'Why a key is not there, and what to run. Asks the source for it, where the source can be asked for one record.',
    handle: async (ask) => sendData(ask.reply, await explainMissingRow(ask)),
  },
  {
    method: 'GET', path: '/console/api/changes', id: 'consoleChanges', access: { kind: 'control', scope: 'changes:read' }, query: CHANGES_QUERY, response: CHANGES_RESPONSE,
    summary: 'As `/agents/v1/changes`, but without a cursor it begins with the newest.',
    handle: (ask) => sendNewestChanges(ask),
  },
  {
    method: 'GET', path: '/console/api/keys', id: 'consoleKeys', access: adminAccess, response: objectSchema({ data: { type: 'array', items: KEY } }), summary: 'The keys of the tenant, without their secrets.',
    handle: async (ask) => sendData(ask.reply, await listKeys(ask)),
  },
  {
    method: 'POST', path: '/console/api/keys', id: 'consoleCreateKey', access: adminAccess, response: objectSchema({ data: objectSchema({ id: TEXT, text: TEXT }) }),
    body: objectSchema({ name: { type: 'string', minLength: 1, maxLength: 100, description: 'What it is for.' }, scopes: { type: 'array', items: TEXT, minItems: 1, maxItems: 100, description: 'What it may do.' } }), summary: 'Makes a key. It is told once; only a hash of it is kept.',
    handle: async (ask) => sendData(ask.reply, await createKey(ask)),
  },
  {
    method: 'POST', path: '/console/api/keys/:apiKey/revoke', id: 'consoleRevokeKey', access: adminAccess, params: KEY_PARAMS, response: objectSchema({ data: objectSchema({ id: TEXT }) }), summary: 'Ends a key at once.',
    handle: async (ask) => sendData(ask.reply, await revokeKey(ask)),
  },
  {
    method: 'GET', path: '/console/api/tenants', id: 'consoleTenants', access: adminAccess, response: objectSchema({ data: objectSchema({ tenants: LIST, isCut: FLAG }) }), summary: 'The tenants of the store, and how much of each there is. For whoever may administer the tenant whose worker runs here; others are told of their own alone.',
    handle: async (ask) => sendData(ask.reply, await listTenants(ask)),
  },
  {
    method: 'GET', path: '/console/api/audit', id: 'consoleAudit', access: adminAccess, response: objectSchema({ data: objectSchema({ head: TEXT, count: NUMBER, entries: LIST }) }),
    query: objectSchema({ limit: LIMIT, before: { type: 'integer', minimum: 1, description: 'Older than the entry of this id.' } }, []), summary: 'Who did what to the checkpoints and keys of the tenant, newest first, without states.',
    handle: async (ask) => sendData(ask.reply, await readAuditChain(ask)),
  },
  {
    method: 'GET', path: '/console/api/audit/verdict', id: 'consoleVerdict', access: adminAccess, response: objectSchema({ data: objectSchema({ intact: FLAG, entries: NUMBER, head: TEXT, brokenAt: { type: ['object', 'null'] }, states: LIST }) }), summary: 'Whether the chain of the audit is whole, and agrees with every stored state.',
    handle: async (ask) => sendData(ask.reply, await verifyAudit(ask)),
  },
]

async function readSession({ caller, context: hall }: RouteRequest): Promise<SessionDocument> {
  const { store, id, name, scopes } = caller
  return { tenant: store.tenant, version: hall.version, key: id === null ? null : name, scopes, databases: (await store.databaseNames()).length, position: await store.headSequence() }
}

/** A sync of another tenant is reported as not found. */
async function findSync({ caller, context: hall, params }: RouteRequest): Promise<SyncDocument> {
  const found = (await listSyncDocuments(hall, caller.store)).find(({ worker, sync }) => worker === params['worker'] && sync === params['sync'])
  if (found === undefined) throw new HttpError('NOT_FOUND', 'There is no such sync.')
  return found
}

async function readActivity({ caller, context: hall, query }: RouteRequest) {
  const { worker, sync } = query as { worker?: string; sync?: string }
  const cycles = await caller.store.cycles(worker === undefined || sync === undefined ? null : { worker, sync }, { limit: CYCLES_MAX })
  // Manual syncs have no lag.
  const manual = new Set(hall.syncs.filter(({ schedule }) => schedule.kind === 'manual').map(({ plan }) => `${plan.worker}/${plan.sync}`))
  return computeActivity(cycles, hall.ports.clock.now(), (cycle) => sync !== undefined || !manual.has(`${cycle.worker}/${cycle.sync}`))
}

async function readCheckpoints(ask: RouteRequest): Promise<CheckpointDocument[]> {
  const { caller, query } = ask
  const reveal = String(query['reveal']) === 'true'
  if (reveal && caller.id === null) throw new HttpError('FORBIDDEN', 'Send a key with the scope `admin` to see states as they are.')
  if (reveal && !allowsScope(caller.scopes, 'admin')) throw new HttpError('FORBIDDEN', 'The key lacks the scope `admin`, which it takes to see states as they are.')
  const { worker, sync } = await findSync(ask)
  if (reveal) createRequestLog(ask).info('states were revealed', { worker, sync, by: caller.name })
  return (await caller.store.audit({ worker, sync }, { limit: Number(query['limit']) })).map((entry) => toCheckpointDocument(entry, reveal))
}

function toCheckpointDocument({ state, at, ...entry }: AuditEntry, reveal: boolean): CheckpointDocument {
  const redacted = redactState(state)
  return { ...entry, at: toIso(at), state: redacted === null || !reveal ? redacted : { ...redacted, value: parseJson(state!) } }
}

async function sendNewestChanges(ask: RouteRequest): Promise<unknown> {
  // With a filter, the newest entries may all belong to other databases.
  const looked = ask.query['types'] === undefined ? NEWEST_CHANGES : NEWEST_CHANGES * 50
  return await sendChanges(ask, Math.max(0, (await ask.caller.store.headSequence()) - looked))
}

async function listKeys({ caller, context: hall }: RouteRequest): Promise<KeyDocument[]> {
  const now = hall.ports.clock.now()
  return (await caller.store.apiKeys()).map(({ id, name, scopes, rateLimit, createdAt, endsAt }) => ({ id, name, scopes, rateLimit, createdAt: toIso(createdAt), endsAt: toIso(endsAt), isValid: endsAt === null || endsAt > now }))
}

async function createKey({ caller, context: hall, request }: RouteRequest): Promise<{ id: string; text: string }> {
  const { name, scopes } = request.body as { name: string; scopes: string[] }
  const wrong = scopes.find((scope) => !isScope(scope))
  if (wrong !== undefined) throw new HttpError('INVALID_REQUEST', `There is no scope ${JSON.stringify(wrong.slice(0, 80))}. There are changes:read, <database>:read, *:read, sync:read, sync:write and admin.`, { details: { reason: 'parameter_invalid' } })
  const { text: shown, key } = createApiKey({ name, scopes, rateLimit: DEFAULT_RATE_LIMIT, createdAt: hall.ports.clock.now() })
  await addApiKey(caller.store, key, `console:${caller.name}`)
  return { id: key.id, text: shown }
}

async function revokeKey({ caller, context: hall, params }: RouteRequest): Promise<{ id: string }> {
  const id = params['apiKey']!
  const at = hall.ports.clock.now()
  if (!(await caller.store.revokeApiKey(id, at, { actor: `console:${caller.name}`, at }))) throw new HttpError('NOT_FOUND', 'There is no such key, or it has ended.')
  return { id }
}

async function listTenants({ caller: { store }, context: hall }: RouteRequest): Promise<TenantsDocument> {
  const names = store.tenant === hall.tenant ? await store.tenants() : [store.tenant]
  const told: TenantDocument[] = []
  for (const name of names.slice(0, TENANTS_MAX)) {
    const { wrappedBy: _, ...holding } = await readTenantUsage(store.forTenant(name))
    told.push(holding)
  }
  return { tenants: told, isCut: names.length > told.length }
}

async function readAuditChain({ caller, query }: RouteRequest): Promise<AuditChainDocument> {
  const { entries, head, count } = await caller.store.auditChain({ before: Number(query['before'] ?? Number.MAX_SAFE_INTEGER), limit: Number(query['limit']) })
  return { head, count, entries: entries.map(toAuditChainEntryDocument) }
}

/** Omits the state. */
function toAuditChainEntryDocument({ id, at, actor, action, reason, worker, sync, version, cycle, hash: link }: AuditChainEntry): AuditChainEntryDocument {
  return { id, at: toIso(at), actor, action, reason, worker, sync, version, cycle, hash: link }
}

async function verifyAudit({ caller }: RouteRequest): Promise<AuditVerificationDocument> {
  const { intact, entries, head, brokenAt, states } = await verifyAuditChain(caller.store)
  return { intact, entries, head, brokenAt, states }
}

function queryText({ query }: RouteRequest, name: string): string | undefined {
  return query[name] === undefined ? undefined : String(query[name])
}

/** Answers 304 to a poller that already has the current version. */
function sendWithEtag({ request, reply }: RouteRequest, body: string): unknown {
  const tag = `"${hash('sha1', body, 'base64url')}"`
  void reply.header('etag', tag)
  return request.headers['if-none-match']?.replace(/^W\//, '') === tag ? reply.code(304).send() : sendJson(reply, body)
}
