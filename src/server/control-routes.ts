import type {
  AuditEntry,
  BackfillRequest,
  QuarantineEntry,
  SyncSignal,
  Store,
  SyncRef,
  Verification,
} from '../contract/index.ts'
import { countReplayOutcomes, replayQuarantinedRecords } from '../engine/replay-quarantine.ts'
import { computeDueTime } from '../runner/due.ts'
import { computeHealth } from '../runner/health.ts'
import {
  CONTINUOUS_PAUSE_MS,
  readKnownSyncs,
  buildSyncStatus,
  type KnownSync,
  type SyncStatus,
} from '../runner/status.ts'
import { canonicalizeInstant } from '../values/instant.ts'
import { toOutcome } from '../verify/describe-report.ts'
import { allowsScope, databaseReadScope } from './api-key.ts'
import type { Caller } from './authenticator.ts'
import { toCycleDocument } from './cycle-document.ts'
import { HttpError } from './http-error.ts'
import { sendJson, type RouteRequest, type ServerContext, type Route } from './route.ts'
import { objectSchema, RECENT_QUERY, SYNC_PARAMS, type JsonSchema } from './schemas.ts'

const readAccess = { kind: 'control', scope: 'sync:read' } as const
const writeAccess = { kind: 'control', scope: 'sync:write' } as const

const TEXT = { type: 'string' }
const TEXT_OR_NULL = { type: ['string', 'null'] }
const COUNTS = { type: 'object', additionalProperties: { type: 'integer' } }
const SYNC = objectSchema({
  worker: TEXT,
  sync: TEXT,
  health: TEXT,
  mode: TEXT_OR_NULL,
  schedule: { type: ['object', 'null'], additionalProperties: true },
  version: { type: 'integer' },
  tidemark: TEXT_OR_NULL,
  paused: { type: 'boolean' },
  failures: { type: 'integer' },
  lastError: { type: ['object', 'null'], additionalProperties: true },
  lastSuccessAt: TEXT_OR_NULL,
  triggeredAt: TEXT_OR_NULL,
  heldBy: TEXT_OR_NULL,
  due: { type: ['object', 'null'], additionalProperties: true },
  backfillNeeded: { type: ['object', 'null'], additionalProperties: true },
  unfinished: { type: ['object', 'null'], additionalProperties: true },
  lastCycle: { type: ['object', 'null'], additionalProperties: true },
})
const VERIFICATION = objectSchema({
  id: { type: 'integer' },
  database: TEXT,
  actor: TEXT,
  startedAt: TEXT,
  endedAt: TEXT_OR_NULL,
  heldBy: TEXT_OR_NULL,
  outcome: TEXT_OR_NULL,
  report: { type: ['object', 'null'], additionalProperties: true },
})
const CYCLE = objectSchema({
  worker: TEXT,
  sync: TEXT,
  cycle: { type: 'integer' },
  mode: TEXT,
  trigger: TEXT,
  startedAt: TEXT,
  endedAt: TEXT_OR_NULL,
  stopReason: TEXT_OR_NULL,
  endReason: TEXT_OR_NULL,
  pages: { type: 'integer' },
  counts: COUNTS,
  retries: { type: 'integer' },
  waitedMs: { type: 'integer' },
  error: { type: ['object', 'null'], additionalProperties: true },
})
const AUDIT = objectSchema({
  version: { type: 'integer' },
  at: TEXT,
  actor: TEXT,
  action: TEXT,
  reason: TEXT,
  cycle: { type: ['integer', 'null'] },
})
const QUARANTINE = objectSchema({
  id: { type: 'integer' },
  worker: TEXT,
  sync: TEXT,
  database: TEXT,
  key: TEXT_OR_NULL,
  code: TEXT,
  message: TEXT,
  text: TEXT_OR_NULL,
  cycle: { type: 'integer' },
  page: { type: 'integer' },
  at: TEXT,
})
const DATABASE = objectSchema(
  {
    name: TEXT,
    table: TEXT,
    history: TEXT,
    rows: { type: 'integer' },
    columns: { type: 'array', items: { type: 'object', additionalProperties: true } },
    hasDeleted: { type: 'boolean' },
  },
  ['name', 'table', 'history', 'rows', 'columns'],
)

const REPLAY_RESULT = objectSchema(
  Object.fromEntries(['landed', 'refused', 'superseded', 'lost'].map((outcome) => [outcome, { type: 'integer' }])),
)

const SIGNAL_SUMMARIES = {
  trigger: 'Runs the sync now.',
  pause: 'Pauses the sync after the current page until it is resumed.',
  resume: 'Resumes the sync and clears the retry backoff.',
}

/** Control API for the console and for scripts; mirrors `tidemark status` and related commands. Never returns state. */
export const controlRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/api/verifications',
    id: 'listVerifications',
    access: readAccess,
    query: RECENT_QUERY,
    response: listSchema(VERIFICATION),
    summary: 'Verifications of all databases, newest first.',
    handle: async ({ caller, reply, query }) =>
      sendList(
        reply,
        (await caller.store.verifications({ limit: Number(query['limit']) })).map(toVerificationDocument),
      ),
  },
  {
    method: 'GET',
    path: '/api/syncs',
    id: 'listSyncs',
    access: readAccess,
    response: listSchema(SYNC),
    summary: 'The status of every sync.',
    handle: async ({ caller, context, reply }) => sendList(reply, await listSyncDocuments(context, caller.store)),
  },
  {
    method: 'GET',
    path: '/api/syncs/:worker/:sync',
    id: 'getSync',
    access: readAccess,
    params: SYNC_PARAMS,
    response: objectSchema({ data: SYNC }),
    summary: 'The status of one sync.',
    handle: async (routeRequest) =>
      sendJson(routeRequest.reply, JSON.stringify({ data: await findSync(routeRequest) })),
  },
  {
    method: 'GET',
    path: '/api/syncs/:worker/:sync/cycles',
    id: 'listSyncCycles',
    access: readAccess,
    params: SYNC_PARAMS,
    query: RECENT_QUERY,
    response: listSchema(CYCLE),
    summary: 'The cycles of the sync, newest first.',
    handle: async (routeRequest) =>
      sendList(
        routeRequest.reply,
        (
          await routeRequest.caller.store.cycles(await findSyncRef(routeRequest), {
            limit: Number(routeRequest.query['limit']),
          })
        ).map(toCycleDocument),
      ),
  },
  {
    method: 'GET',
    path: '/api/syncs/:worker/:sync/audit',
    id: 'listSyncAudit',
    access: readAccess,
    params: SYNC_PARAMS,
    query: RECENT_QUERY,
    response: listSchema(AUDIT),
    summary: 'The audit log of its checkpoint, newest first.',
    handle: async (routeRequest) =>
      sendList(
        routeRequest.reply,
        (
          await routeRequest.caller.store.audit(await findSyncRef(routeRequest), {
            limit: Number(routeRequest.query['limit']),
          })
        ).map(toAuditDocument),
      ),
  },
  ...(['trigger', 'pause', 'resume'] as const).map((kind): Route => ({
    method: 'POST',
    path: `/api/syncs/:worker/:sync/${kind}`,
    id: `${kind}Sync`,
    access: writeAccess,
    params: SYNC_PARAMS,
    response: objectSchema({ data: SYNC }),
    summary: SIGNAL_SUMMARIES[kind],
    handle: (routeRequest) => sendSignal(routeRequest, kind),
  })),
  {
    method: 'GET',
    path: '/api/cycles',
    id: 'listCycles',
    access: readAccess,
    query: RECENT_QUERY,
    response: listSchema(CYCLE),
    summary: 'The cycles of every sync, newest first.',
    handle: async ({ caller, query, reply }) =>
      sendList(reply, (await caller.store.cycles(null, { limit: Number(query['limit']) })).map(toCycleDocument)),
  },
  {
    method: 'GET',
    path: '/api/quarantine',
    id: 'listQuarantine',
    access: readAccess,
    query: RECENT_QUERY,
    response: listSchema(QUARANTINE),
    summary:
      'Quarantined records, newest first. Key, message and text are shown only for databases that the key may read.',
    handle: async ({ caller, query, reply }) =>
      sendList(
        reply,
        (await caller.store.quarantineEntries({ limit: Number(query['limit']) })).map((entry) =>
          toQuarantineDocument(entry, caller),
        ),
      ),
  },
  {
    method: 'POST',
    path: '/api/syncs/:worker/:sync/quarantine/replay',
    id: 'replayQuarantine',
    access: writeAccess,
    params: SYNC_PARAMS,
    response: objectSchema({ data: REPLAY_RESULT }),
    summary:
      'Validates the quarantined records of the sync again and commits those that pass. Newer rows are not overwritten.',
    handle: replayQuarantine,
  },
  {
    method: 'GET',
    path: '/api/databases',
    id: 'listDatabases',
    access: readAccess,
    response: listSchema(DATABASE),
    summary: 'The databases with their columns and row counts.',
    handle: async ({ caller, reply }) => sendList(reply, await caller.store.databases()),
  },
]

type SyncDocument = ReturnType<typeof toDeclaredDocument> | ReturnType<typeof toUndeclaredDocument>

/** Includes syncs that only the store knows. */
async function listSyncDocuments(context: ServerContext, store: Store): Promise<SyncDocument[]> {
  const { now, syncs } = await readKnownSyncs(store, context.syncs, context.ports.clock.now())
  return syncs.map(({ declared, ...status }) =>
    declared === null
      ? toUndeclaredDocument(status)
      : toDeclaredDocument(
          buildSyncStatus(
            store.tenant,
            declared,
            status,
            computeDueTime(declared, status, { now, since: now, pauseMs: CONTINUOUS_PAUSE_MS }),
          ),
        ),
  )
}

async function findSync(routeRequest: RouteRequest): Promise<SyncDocument> {
  const { worker, sync } = routeRequest.params as { worker: string; sync: string }
  const found = (await listSyncDocuments(routeRequest.context, routeRequest.caller.store)).find(
    (document) => document.worker === worker && document.sync === sync,
  )
  if (found === undefined) throw new HttpError('NOT_FOUND', 'Sync not found. GET /api/syncs lists them.')
  return found
}

async function findSyncRef(routeRequest: RouteRequest): Promise<SyncRef> {
  const { worker, sync } = await findSync(routeRequest)
  return { worker, sync }
}

async function sendSignal(routeRequest: RouteRequest, kind: SyncSignal['kind']): Promise<unknown> {
  const { caller, context, reply } = routeRequest
  await caller.store.signalSync(await findSyncRef(routeRequest), {
    kind,
    actor: `api:${caller.name}`,
    at: context.ports.clock.now(),
  })
  return sendJson(reply, JSON.stringify({ data: await findSync(routeRequest) }))
}

async function replayQuarantine(routeRequest: RouteRequest): Promise<unknown> {
  const { caller, context, reply } = routeRequest
  const ref = await findSyncRef(routeRequest)
  const declared = context.syncs.find(({ plan }) => plan.worker === ref.worker && plan.sync === ref.sync)
  // Without a declaration the schema of the records is unknown.
  const outcomes =
    declared === undefined
      ? { ...countReplayOutcomes([]), lost: (await caller.store.quarantineEntries({ ref })).length }
      : countReplayOutcomes(
          await replayQuarantinedRecords(declared.plan, {
            store: caller.store,
            ports: context.ports,
            holder: `api:${caller.name}#${context.ports.random.next()}`,
            actor: `api:${caller.name}`,
          }),
        )
  return sendJson(reply, JSON.stringify({ data: outcomes }))
}

function toDeclaredDocument(status: SyncStatus) {
  const {
    worker,
    sync,
    health,
    mode,
    schedule,
    version,
    failures,
    heldBy,
    tidemark,
    triggeredAt,
    lastSuccessAt,
    lastError,
    due,
    unfinished,
    lastCycle,
    backfillNeeded,
  } = status
  return {
    worker,
    sync,
    health,
    mode,
    schedule,
    version,
    failures,
    heldBy,
    paused: health === 'PAUSED',
    tidemark: redactTidemark(tidemark),
    triggeredAt: toIso(triggeredAt),
    lastSuccessAt: toIso(lastSuccessAt),
    lastError: lastError === null ? null : { ...lastError, at: toIso(lastError.at) },
    due: due === null ? null : due.kind === 'at' ? { ...due, at: toIso(due.at) } : due,
    unfinished: unfinished === null ? null : { ...unfinished, startedAt: toIso(unfinished.startedAt) },
    lastCycle: lastCycle === null ? null : toCycleDocument(lastCycle),
    backfillNeeded: toBackfillDocument(backfillNeeded),
  }
}

function toBackfillDocument(request: BackfillRequest | null) {
  return request === null ? null : { since: toIso(request.since), reason: request.reason }
}

function toUndeclaredDocument({ worker, sync, checkpoint, backfill, recent: [last] }: Omit<KnownSync, 'declared'>) {
  const { version, paused, failures, lastError, heldBy, inflight, tidemark, triggeredAt, lastSuccessAt } = checkpoint
  return {
    worker,
    sync,
    health: computeHealth(checkpoint, backfill),
    backfillNeeded: toBackfillDocument(backfill?.backfillNeeded ?? null),
    mode: null,
    schedule: null,
    version,
    paused,
    failures,
    heldBy,
    tidemark: redactTidemark(tidemark),
    triggeredAt: toIso(triggeredAt),
    lastSuccessAt: toIso(lastSuccessAt),
    lastError: lastError === null ? null : { ...lastError, at: toIso(lastError.at) },
    due: null,
    unfinished:
      inflight === null ? null : { cycle: inflight.cycle, page: inflight.page, startedAt: toIso(inflight.startedAt) },
    lastCycle: last === undefined ? null : toCycleDocument(last),
  }
}

/** Omits the keys of rows, which are content. */
function toVerificationDocument({ startedAt, report, ...verification }: Verification) {
  const { found: _, endedAt, ...counts } = report ?? {}
  return {
    ...verification,
    startedAt: toIso(startedAt),
    endedAt: toIso(endedAt ?? null),
    outcome: report === null ? null : toOutcome(report),
    report: report === null ? null : counts,
  }
}

/** Omits the state. */
function toAuditDocument(document: AuditEntry) {
  const { at, state: _, ...entry } = document
  return { ...entry, at: toIso(at) }
}

/** Record, key and error message are content, so they require the scope to read the database. */
function toQuarantineDocument({ at, ...entry }: QuarantineEntry, { scopes }: Caller) {
  const scope = databaseReadScope(entry.database)
  const withheld = allowsScope(scopes, scope)
    ? {}
    : { key: null, text: null, message: `Withheld: the key lacks the scope \`${scope}\`.` }
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
