import type { AuditEntry, BackfillNeed, CycleRecord, QuarantineEntry, Signal, Store, SyncRef } from '../contract/index.ts'
import { fatesOf, replay } from '../engine/replay.ts'
import { dueOf } from '../runner/due.ts'
import { healthOf } from '../runner/health.ts'
import { PAUSE_MS, readStandings, statusOf, type KnownSync, type SyncStatus } from '../runner/status.ts'
import { canonicalInstant } from '../values/instant.ts'
import { allows, readScope } from './api-key.ts'
import type { Caller } from './callers.ts'
import { HttpError } from './http-error.ts'
import { sendJson, type Ask, type Hall, type Route } from './route.ts'
import { object, RECENT_QUERY, SYNC_PARAMS, type JsonSchema } from './schemas.ts'

const read = { kind: 'control', scope: 'sync:read' } as const
const write = { kind: 'control', scope: 'sync:write' } as const

const TEXT = { type: 'string' }
const TEXT_OR_NULL = { type: ['string', 'null'] }
const COUNTS = { type: 'object', additionalProperties: { type: 'integer' } }
const SYNC = object({
  worker: TEXT, sync: TEXT, health: TEXT, mode: TEXT_OR_NULL, schedule: { type: ['object', 'null'], additionalProperties: true }, version: { type: 'integer' },
  tidemark: TEXT_OR_NULL, paused: { type: 'boolean' }, failures: { type: 'integer' }, lastError: { type: ['object', 'null'], additionalProperties: true },
  lastSuccessAt: TEXT_OR_NULL, triggeredAt: TEXT_OR_NULL, heldBy: TEXT_OR_NULL, due: { type: ['object', 'null'], additionalProperties: true },
  backfillNeeded: { type: ['object', 'null'], additionalProperties: true },
  unfinished: { type: ['object', 'null'], additionalProperties: true }, lastCycle: { type: ['object', 'null'], additionalProperties: true },
})
const CYCLE = object({
  worker: TEXT, sync: TEXT, cycle: { type: 'integer' }, mode: TEXT, trigger: TEXT, startedAt: TEXT, endedAt: TEXT_OR_NULL, stopReason: TEXT_OR_NULL, stopWord: TEXT_OR_NULL,
  pages: { type: 'integer' }, counts: COUNTS, retries: { type: 'integer' }, waitedMs: { type: 'integer' }, error: { type: ['object', 'null'], additionalProperties: true },
})
const AUDIT = object({ version: { type: 'integer' }, at: TEXT, actor: TEXT, action: TEXT, reason: TEXT, cycle: { type: ['integer', 'null'] } })
const QUARANTINE = object({
  id: { type: 'integer' }, worker: TEXT, sync: TEXT, database: TEXT, key: TEXT_OR_NULL, code: TEXT, message: TEXT, text: TEXT_OR_NULL, cycle: { type: 'integer' }, page: { type: 'integer' }, at: TEXT,
})
const DATABASE = object({ name: TEXT, table: TEXT, history: TEXT, rows: { type: 'integer' }, columns: { type: 'array', items: { type: 'object', additionalProperties: true } }, hasDeleted: { type: 'boolean' } }, ['name', 'table', 'history', 'rows', 'columns'])

const REPLAYED = object(Object.fromEntries(['landed', 'refused', 'superseded', 'lost'].map((fate) => [fate, { type: 'integer' }])))

const SIGNALS = {
  trigger: 'Asks for a run now.',
  pause: 'Lets no further page be read until somebody resumes it.',
  resume: 'Lets it run again.',
}

/** For the console and for scripts: what `tidemark status` and its neighbours show and do. State itself is never shown. */
export const controlRoutes: readonly Route[] = [
  {
    method: 'GET', path: '/api/syncs', id: 'listSyncs', access: read, answer: listOf(SYNC), summary: 'Where every sync stands.',
    handle: async ({ caller, hall, reply }) => sendList(reply, await syncsOf(hall, caller.store)),
  },
  {
    method: 'GET', path: '/api/syncs/:worker/:sync', id: 'getSync', access: read, params: SYNC_PARAMS, answer: object({ data: SYNC }), summary: 'Where one sync stands.',
    handle: async (ask) => sendJson(ask.reply, JSON.stringify({ data: await findSync(ask) })),
  },
  {
    method: 'GET', path: '/api/syncs/:worker/:sync/cycles', id: 'listSyncCycles', access: read, params: SYNC_PARAMS, query: RECENT_QUERY, answer: listOf(CYCLE), summary: 'Its cycles, newest first.',
    handle: async (ask) => sendList(ask.reply, (await ask.caller.store.cycles(await refOf(ask), { limit: Number(ask.query['limit']) })).map(cycleDocument)),
  },
  {
    method: 'GET', path: '/api/syncs/:worker/:sync/audit', id: 'listSyncAudit', access: read, params: SYNC_PARAMS, query: RECENT_QUERY, answer: listOf(AUDIT), summary: 'Who moved its checkpoint, when and why; newest first.',
    handle: async (ask) => sendList(ask.reply, (await ask.caller.store.audit(await refOf(ask), { limit: Number(ask.query['limit']) })).map(auditDocument)),
  },
  ...(['trigger', 'pause', 'resume'] as const).map((kind): Route => ({
    method: 'POST', path: `/api/syncs/:worker/:sync/${kind}`, id: `${kind}Sync`, access: write, params: SYNC_PARAMS, answer: object({ data: SYNC }), summary: SIGNALS[kind],
    handle: (ask) => signal(ask, kind),
  })),
  {
    method: 'GET', path: '/api/cycles', id: 'listCycles', access: read, query: RECENT_QUERY, answer: listOf(CYCLE), summary: 'The cycles of every sync, newest first.',
    handle: async ({ caller, query, reply }) => sendList(reply, (await caller.store.cycles(null, { limit: Number(query['limit']) })).map(cycleDocument)),
  },
  {
    method: 'GET', path: '/api/quarantine', id: 'listQuarantine', access: read, query: RECENT_QUERY, answer: listOf(QUARANTINE), summary: 'Records that could not be landed, newest first. Key, message and text only of databases that the key may read.',
    handle: async ({ caller, query, reply }) => sendList(reply, (await caller.store.quarantined({ limit: Number(query['limit']) })).map((entry) => quarantineDocument(entry, caller))),
  },
  {
    method: 'POST', path: '/api/syncs/:worker/:sync/quarantine/replay', id: 'replayQuarantine', access: write, params: SYNC_PARAMS, answer: object({ data: REPLAYED }),
    summary: 'Lands what the sync could not land before and passes now. Nothing newer is overwritten.',
    handle: replayQuarantine,
  },
  {
    method: 'GET', path: '/api/databases', id: 'listDatabases', access: read, answer: listOf(DATABASE), summary: 'The landed databases, with their columns and how many rows they have.',
    handle: async ({ caller, reply }) => sendList(reply, await caller.store.databases()),
  },
]

type SyncDocument = ReturnType<typeof declaredDocument> | ReturnType<typeof undeclaredDocument>

/** Those the worker declares, and those that only the store still knows. */
async function syncsOf(hall: Hall, store: Store): Promise<SyncDocument[]> {
  const { now, syncs } = await readStandings(store, hall.syncs, hall.ports.clock.now())
  return syncs.map(({ declared, ...standing }) => declared === null
    ? undeclaredDocument(standing)
    : declaredDocument(statusOf(store.tenant, declared, standing, dueOf(declared, standing, { now, since: now, pauseMs: PAUSE_MS }))))
}

async function findSync(ask: Ask): Promise<SyncDocument> {
  const { worker, sync } = ask.params as { worker: string; sync: string }
  const found = (await syncsOf(ask.hall, ask.caller.store)).find((document) => document.worker === worker && document.sync === sync)
  if (found === undefined) throw new HttpError('NOT_FOUND', 'There is no such sync. GET /api/syncs lists them.')
  return found
}

async function refOf(ask: Ask): Promise<SyncRef> {
  const { worker, sync } = await findSync(ask)
  return { worker, sync }
}

async function signal(ask: Ask, kind: Signal['kind']): Promise<unknown> {
  const { caller, hall, reply } = ask
  await caller.store.signal(await refOf(ask), { kind, actor: `api:${caller.name}`, at: hall.ports.clock.now() })
  return sendJson(reply, JSON.stringify({ data: await findSync(ask) }))
}

async function replayQuarantine(ask: Ask): Promise<unknown> {
  const { caller, hall, reply } = ask
  const ref = await refOf(ask)
  const declared = hall.syncs.find(({ plan }) => plan.worker === ref.worker && plan.sync === ref.sync)
  // Of a sync that nobody declares any more, nobody knows what its records must be like.
  const fates = declared === undefined ? { ...fatesOf([]), lost: (await caller.store.quarantined({ ref })).length }
    : fatesOf(await replay(declared.plan, { store: caller.store, ports: hall.ports, holder: `api:${caller.name}#${hall.ports.random.next()}`, actor: `api:${caller.name}` }))
  return sendJson(reply, JSON.stringify({ data: fates }))
}

function declaredDocument(status: SyncStatus) {
  const { worker, sync, health, mode, schedule, version, failures, heldBy, tidemark, triggeredAt, lastSuccessAt, lastError, due, unfinished, lastCycle, backfillNeeded } = status
  return {
    worker, sync, health, mode, schedule, version, failures, heldBy, paused: health === 'PAUSED', tidemark: shownTidemark(tidemark), triggeredAt: iso(triggeredAt), lastSuccessAt: iso(lastSuccessAt),
    lastError: lastError === null ? null : { ...lastError, at: iso(lastError.at) },
    due: due === null ? null : due.kind === 'at' ? { ...due, at: iso(due.at) } : due,
    unfinished: unfinished === null ? null : { ...unfinished, startedAt: iso(unfinished.startedAt) },
    lastCycle: lastCycle === null ? null : cycleDocument(lastCycle),
    backfillNeeded: needDocument(backfillNeeded),
  }
}

function needDocument(need: BackfillNeed | null) {
  return need === null ? null : { since: iso(need.since), reason: need.reason }
}

function undeclaredDocument({ worker, sync, checkpoint, backfill, recent: [last] }: Omit<KnownSync, 'declared'>) {
  const { version, paused, failures, lastError, heldBy, inflight, tidemark, triggeredAt, lastSuccessAt } = checkpoint
  return {
    worker, sync, health: healthOf(checkpoint, backfill), backfillNeeded: needDocument(backfill?.backfillNeeded ?? null), mode: null, schedule: null, version, paused, failures, heldBy, tidemark: shownTidemark(tidemark),
    triggeredAt: iso(triggeredAt), lastSuccessAt: iso(lastSuccessAt), lastError: lastError === null ? null : { ...lastError, at: iso(lastError.at) }, due: null,
    unfinished: inflight === null ? null : { cycle: inflight.cycle, page: inflight.page, startedAt: iso(inflight.startedAt) },
    lastCycle: last === undefined ? null : cycleDocument(last),
  }
}

function cycleDocument(record: CycleRecord) {
  const { startedAt, endedAt, startSequence: _, ...cycle } = record
  return { ...cycle, startedAt: iso(startedAt), endedAt: iso(endedAt) }
}

/** Without the state. */
function auditDocument(audited: AuditEntry) {
  const { at, state: _, ...entry } = audited
  return { ...entry, at: iso(at) }
}

/** The record, its key and the reason why it was refused are content: they take the right to read its database. */
function quarantineDocument({ at, ...entry }: QuarantineEntry, { scopes }: Caller) {
  const scope = readScope(entry.database)
  const withheld = allows(scopes, scope) ? {} : { key: null, text: null, message: `Withheld: the key lacks the scope \`${scope}\`.` }
  return { ...entry, ...withheld, at: iso(at) }
}

/** A time is for everybody; the last cursor of a source without times is a piece of state. */
function shownTidemark(tidemark: string | null): string | null {
  return tidemark !== null && canonicalInstant(tidemark) !== null ? tidemark : null
}

function iso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

function sendList(reply: Ask['reply'], data: readonly unknown[]): unknown {
  return sendJson(reply, JSON.stringify({ data }))
}

function listOf(items: JsonSchema): JsonSchema {
  return object({ data: { type: 'array', items } })
}
