import type { AuditEntry, BackfillRequest, CycleRecord, QuarantineEntry, SyncSignal, Store, SyncRef } from '../contract/index.ts'
import { countReplayOutcomes, replayQuarantinedRecords } from '../engine/replay-quarantine.ts'
import { computeDueTime } from '../runner/due.ts'
import { computeHealth } from '../runner/health.ts'
import { CONTINUOUS_PAUSE_MS, readKnownSyncs, buildSyncStatus, type KnownSync, type SyncStatus } from '../runner/status.ts'
import { canonicalizeInstant } from '../values/instant.ts'
import { allowsScope, databaseReadScope } from './api-key.ts'
import type { Caller } from './authenticator.ts'
import { HttpError } from './http-error.ts'
import { sendJson, type RouteRequest, type ServerContext, type Route } from './route.ts'
import { objectSchema, RECENT_QUERY, SYNC_PARAMS, type JsonSchema } from './schemas.ts'

const readAccess = { kind: 'control', scope: 'sync:read' } as const
const writeAccess = { kind: 'control', scope: 'sync:write' } as const

const TEXT = { type: 'string' }
const TEXT_OR_NULL = { type: ['string', 'null'] }
const COUNTS = { type: 'object', additionalProperties: { type: 'integer' } }
const SYNC = objectSchema({
  worker: TEXT, sync: TEXT, health: TEXT, mode: TEXT_OR_NULL, schedule: { type: ['object', 'null'], additionalProperties: true }, version: { type: 'integer' },
  tidemark: TEXT_OR_NULL, paused: { type: 'boolean' }, failures: { type: 'integer' }, lastError: { type: ['object', 'null'], additionalProperties: true },
  lastSuccessAt: TEXT_OR_NULL, triggeredAt: TEXT_OR_NULL, heldBy: TEXT_OR_NULL, due: { type: ['object', 'null'], additionalProperties: true },
  backfillNeeded: { type: ['object', 'null'], additionalProperties: true },
  unfinished: { type: ['object', 'null'], additionalProperties: true }, lastCycle: { type: ['object', 'null'], additionalProperties: true },
})
const CYCLE = objectSchema({
  worker: TEXT, sync: TEXT, cycle: { type: 'integer' }, mode: TEXT, trigger: TEXT, startedAt: TEXT, endedAt: TEXT_OR_NULL, stopReason: TEXT_OR_NULL, stopWord: TEXT_OR_NULL,
  pages: { type: 'integer' }, counts: COUNTS, retries: { type: 'integer' }, waitedMs: { type: 'integer' }, error: { type: ['object', 'null'], additionalProperties: true },
})
const AUDIT = objectSchema({ version: { type: 'integer' }, at: TEXT, actor: TEXT, action: TEXT, reason: TEXT, cycle: { type: ['integer', 'null'] } })
const QUARANTINE = objectSchema({
  id: { type: 'integer' }, worker: TEXT, sync: TEXT, database: TEXT, key: TEXT_OR_NULL, code: TEXT, message: TEXT, text: TEXT_OR_NULL, cycle: { type: 'integer' }, page: { type: 'integer' }, at: TEXT,
})
const DATABASE = objectSchema({ name: TEXT, table: TEXT, history: TEXT, rows: { type: 'integer' }, columns: { type: 'array', items: { type: 'object', additionalProperties: true } }, hasDeleted: { type: 'boolean' } }, ['name', 'table', 'history', 'rows', 'columns'])

const REPLAY_RESULT = objectSchema(Object.fromEntries(['landed', 'refused', 'superseded', 'lost'].map((fate) => [fate, { type: 'integer' }])))

const SIGNAL_SUMMARIES = {
  trigger: 'Asks for a run now.',
  pause: 'Lets no further page be read until somebody resumes it.',
  resume: 'Lets it run again.',
}

/** Control API for the console and for scripts; mirrors `tidemark status` and related commands. Never returns state. */
export const controlRoutes: readonly Route[] = [
  {
    method: 'GET', path: '/api/syncs', id: 'listSyncs', access: readAccess, response: listSchema(SYNC), summary: 'Where every sync stands.',
    handle: async ({ caller, context: hall, reply }) => sendList(reply, await listSyncDocuments(hall, caller.store)),
  },
  {
    method: 'GET', path: '/api/syncs/:worker/:sync', id: 'getSync', access: readAccess, params: SYNC_PARAMS, response: objectSchema({ data: SYNC }), summary: 'Where one sync stands.',
    handle: async (ask) => sendJson(ask.reply, JSON.stringify({ data: await findSync(ask) })),
  },
  {
    method: 'GET', path: '/api/syncs/:worker/:sync/cycles', id: 'listSyncCycles', access: readAccess, params: SYNC_PARAMS, query: RECENT_QUERY, response: listSchema(CYCLE), summary: 'Its cycles, newest first.',
    handle: async (ask) => sendList(ask.reply, (await ask.caller.store.cycles(await findSyncRef(ask), { limit: Number(ask.query['limit']) })).map(toCycleDocument)),
  },
  {
    method: 'GET', path: '/api/syncs/:worker/:sync/audit', id: 'listSyncAudit', access: readAccess, params: SYNC_PARAMS, query: RECENT_QUERY, response: listSchema(AUDIT), summary: 'Who moved its checkpoint, when and why; newest first.',
    handle: async (ask) => sendList(ask.reply, (await ask.caller.store.audit(await findSyncRef(ask), { limit: Number(ask.query['limit']) })).map(toAuditDocument)),
  },
  ...(['trigger', 'pause', 'resume'] as const).map((kind): Route => ({
    method: 'POST', path: `/api/syncs/:worker/:sync/${kind}`, id: `${kind}Sync`, access: writeAccess, params: SYNC_PARAMS, response: objectSchema({ data: SYNC }), summary: SIGNAL_SUMMARIES[kind],
    handle: (ask) => sendSignal(ask, kind),
  })),
  {
    method: 'GET', path: '/api/cycles', id: 'listCycles', access: readAccess, query: RECENT_QUERY, response: listSchema(CYCLE), summary: 'The cycles of every sync, newest first.',
    handle: async ({ caller, query, reply }) => sendList(reply, (await caller.store.cycles(null, { limit: Number(query['limit']) })).map(toCycleDocument)),
  },
  {
    method: 'GET', path: '/api/quarantine', id: 'listQuarantine', access: readAccess, query: RECENT_QUERY, response: listSchema(QUARANTINE), summary: 'Records that could not be landed, newest first. Key, message and text only of databases that the key may read.',
    handle: async ({ caller, query, reply }) => sendList(reply, (await caller.store.quarantineEntries({ limit: Number(query['limit']) })).map((entry) => toQuarantineDocument(entry, caller))),
  },
  {
    method: 'POST', path: '/api/syncs/:worker/:sync/quarantine/replay', id: 'replayQuarantine', access: writeAccess, params: SYNC_PARAMS, response: objectSchema({ data: REPLAY_RESULT }),
    summary: 'Lands what the sync could not land before and passes now. Nothing newer is overwritten.',
    handle: replayQuarantine,
  },
  {
    method: 'GET', path: '/api/databases', id: 'listDatabases', access: readAccess, response: listSchema(DATABASE), summary: 'The landed databases, with their columns and how many rows they have.',
    handle: async ({ caller, reply }) => sendList(reply, await caller.store.databases()),
  },
]

type SyncDocument = ReturnType<typeof toDeclaredDocument> | ReturnType<typeof toUndeclaredDocument>

/** Includes syncs that only the store knows. */
async function listSyncDocuments(hall: ServerContext, store: Store): Promise<SyncDocument[]> {
  const { now, syncs } = await readKnownSyncs(store, hall.syncs, hall.ports.clock.now())
  return syncs.map(({ declared, ...standing }) => declared === null
    ? toUndeclaredDocument(standing)
    : toDeclaredDocument(buildSyncStatus(store.tenant, declared, standing, computeDueTime(declared, standing, { now, since: now, pauseMs: CONTINUOUS_PAUSE_MS }))))
}

async function findSync(ask: RouteRequest): Promise<SyncDocument> {
  const { worker, sync } = ask.params as { worker: string; sync: string }
  const found = (await listSyncDocuments(ask.context, ask.caller.store)).find((document) => document.worker === worker && document.sync === sync)
  if (found === undefined) throw new HttpError('NOT_FOUND', 'There is no such sync. GET /api/syncs lists them.')
  return found
}

async function findSyncRef(ask: RouteRequest): Promise<SyncRef> {
  const { worker, sync } = await findSync(ask)
  return { worker, sync }
}

async function sendSignal(ask: RouteRequest, kind: SyncSignal['kind']): Promise<unknown> {
  const { caller, context: hall, reply } = ask
  await caller.store.signalSync(await findSyncRef(ask), { kind, actor: `api:${caller.name}`, at: hall.ports.clock.now() })
  return sendJson(reply, JSON.stringify({ data: await findSync(ask) }))
}

async function replayQuarantine(ask: RouteRequest): Promise<unknown> {
  const { caller, context: hall, reply } = ask
  const ref = await findSyncRef(ask)
  const declared = hall.syncs.find(({ plan }) => plan.worker === ref.worker && plan.sync === ref.sync)
  // Without a declaration the schema of the records is unknown.
  const fates = declared === undefined ? { ...countReplayOutcomes([]), lost: (await caller.store.quarantineEntries({ ref })).length }
    : countReplayOutcomes(await replayQuarantinedRecords(declared.plan, { store: caller.store, ports: hall.ports, holder: `api:${caller.name}#${hall.ports.random.next()}`, actor: `api:${caller.name}` }))
  return sendJson(reply, JSON.stringify({ data: fates }))
}

function toDeclaredDocument(status: SyncStatus) {
  const { worker, sync, health, mode, schedule, version, failures, heldBy, tidemark, triggeredAt, lastSuccessAt, lastError, due, unfinished, lastCycle, backfillNeeded } = status
  return {
    worker, sync, health, mode, schedule, version, failures, heldBy, paused: health === 'PAUSED', tidemark: redactTidemark(tidemark), triggeredAt: toIso(triggeredAt), lastSuccessAt: toIso(lastSuccessAt),
    lastError: lastError === null ? null : { ...lastError, at: toIso(lastError.at) },
    due: due === null ? null : due.kind === 'at' ? { ...due, at: toIso(due.at) } : due,
    unfinished: unfinished === null ? null : { ...unfinished, startedAt: toIso(unfinished.startedAt) },
    lastCycle: lastCycle === null ? null : toCycleDocument(lastCycle),
    backfillNeeded: toBackfillDocument(backfillNeeded),
  }
}

function toBackfillDocument(need: BackfillRequest | null) {
  return need === null ? null : { since: toIso(need.since), reason: need.reason }
}

function toUndeclaredDocument({ worker, sync, checkpoint, backfill, recent: [last] }: Omit<KnownSync, 'declared'>) {
  const { version, paused, failures, lastError, heldBy, inflight, tidemark, triggeredAt, lastSuccessAt } = checkpoint
  return {
    worker, sync, health: computeHealth(checkpoint, backfill), backfillNeeded: toBackfillDocument(backfill?.backfillNeeded ?? null), mode: null, schedule: null, version, paused, failures, heldBy, tidemark: redactTidemark(tidemark),
    triggeredAt: toIso(triggeredAt), lastSuccessAt: toIso(lastSuccessAt), lastError: lastError === null ? null : { ...lastError, at: toIso(lastError.at) }, due: null,
    unfinished: inflight === null ? null : { cycle: inflight.cycle, page: inflight.page, startedAt: toIso(inflight.startedAt) },
    lastCycle: last === undefined ? null : toCycleDocument(last),
  }
}

function toCycleDocument(record: CycleRecord) {
  const { startedAt, endedAt, startSequence: _, ...cycle } = record
  return { ...cycle, startedAt: toIso(startedAt), endedAt: toIso(endedAt) }
}

/** Omits the state. */
function toAuditDocument(audited: AuditEntry) {
  const { at, state: _, ...entry } = audited
  return { ...entry, at: toIso(at) }
}

/** Record, key and error message are content, so they require the scope to read the database. */
function toQuarantineDocument({ at, ...entry }: QuarantineEntry, { scopes }: Caller) {
  const scope = databaseReadScope(entry.database)
  const withheld = allowsScope(scopes, scope) ? {} : { key: null, text: null, message: `Withheld: the key lacks the scope \`${scope}\`.` }
  return { ...entry, ...withheld, at: toIso(at) }
}

/** A timestamp may be shown; the last cursor of a source without timestamps is part of the state. */
function redactTidemark(tidemark: string | null): string | null {
  return tidemark !== null && canonicalizeInstant(tidemark) !== null ? tidemark : null
}

function toIso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

function sendList(reply: RouteRequest['reply'], data: readonly unknown[]): unknown {
  return sendJson(reply, JSON.stringify({ data }))
}

function listSchema(items: JsonSchema): JsonSchema {
  return objectSchema({ data: { type: 'array', items } })
}
