import type { BackfillRequest, SyncStatusRow, Store } from '../../contract/index.ts'
import { redactTidemark } from '../../redaction/redact-state.ts'
import { computeCoverage } from '../../runner/coverage.ts'
import { computeDueTime, type DueTime } from '../../runner/due.ts'
import { computeConnectedHealth, computeHealth } from '../../runner/health.ts'
import { computeLateAt } from '../../runner/late.ts'
import { computeCompleteSince } from '../../runner/complete-since.ts'
import { CONTINUOUS_PAUSE_MS, readKnownSyncs, type KnownSync } from '../../runner/status.ts'
import { adviseOn, toCycleDocument } from '../cycle-document.ts'
import type { ServerContext } from '../route.ts'
import type { SyncDocument } from './documents.ts'
import { EMPTY_SUMMARY, type StateSummary } from './state-summaries.ts'

/**
 * Lists all syncs. Contains nothing that depends on the clock alone, so that the ETag stays the same while nothing
 * happens.
 */
export async function listSyncDocuments(
  { syncs, ports, stateSummaries }: ServerContext,
  store: Store,
  { withoutStates = false }: { withoutStates?: boolean } = {},
): Promise<SyncDocument[]> {
  const { now, syncs: known } = await readKnownSyncs(store, syncs, ports.clock.now())
  const workers = new Map<string, Map<string, SyncStatusRow>>()
  for (const status of known)
    workers.set(
      status.worker,
      (workers.get(status.worker) ?? new Map<string, SyncStatusRow>()).set(status.sync, status),
    )
  return await Promise.all(
    known.map(async (sync) =>
      toSyncDocument(
        store.tenant,
        sync,
        withoutStates ? EMPTY_SUMMARY : await stateSummaries.get(store, sync),
        workers.get(sync.worker) ?? new Map<string, SyncStatusRow>(),
        now,
      ),
    ),
  )
}

function toSyncDocument(
  tenant: string,
  known: KnownSync,
  { state, frontier }: StateSummary,
  siblings: ReadonlyMap<string, SyncStatusRow>,
  now: number,
): SyncDocument {
  const { worker, sync, declared, checkpoint, recent, backfill, connection } = known
  const { version, tidemark, triggeredAt, failures, lastError, heldBy, inflight } = checkpoint
  const pair = declared?.plan.pair
  const mode = declared?.mode ?? recent[0]?.mode ?? null
  const due =
    declared === null ? null : computeDueTime(declared, known, { now, since: now, pauseMs: CONTINUOUS_PAUSE_MS })
  const last = recent[0]
  return {
    tenant,
    worker,
    sync,
    health: computeConnectedHealth(connection?.status, computeHealth(checkpoint, backfill)),
    lateAt: toIso(declared === null ? null : computeLateAt(declared, known)),
    connection:
      connection === undefined
        ? null
        : { name: connection.name, status: connection.status, statusReason: connection.statusReason },
    isDeclared: declared !== null,
    mode,
    schedule: declared?.schedule ?? null,
    databases: declared?.plan.databases.map(({ name }) => name) ?? [],
    pair: pair === undefined ? null : { role: pair.role, with: pair.role === 'delta' ? pair.backfill : pair.delta },
    isRunning: heldBy !== null && inflight !== null,
    heldBy,
    version,
    state,
    tidemark: redactTidemark(tidemark, false),
    completeSince: toIso(computeCompleteSince(checkpoint, recent)),
    backfillNeeded: toBackfillDocument(backfill?.backfillNeeded ?? null),
    after: declared?.after?.map((parent) => parent.sync) ?? [],
    next: due === null ? null : toNextDocument(due),
    triggeredAt: toIso(triggeredAt),
    failures,
    lastError:
      lastError === null
        ? null
        : {
            code: lastError.code,
            message: lastError.message,
            advice: adviseOn(lastError.code, sync),
            at: toIso(lastError.at),
          },
    lastCycle: last === undefined ? null : toCycleDocument(last),
    coverage: computeCoverage(known, {
      mode,
      frontier,
      pair,
      hasLostChanges: (backfill?.backfillNeeded ?? null) !== null,
      siblings,
    }),
  }
}

function toNextDocument(due: DueTime): SyncDocument['next'] {
  if (due.kind === 'at') return { at: toIso(due.at), why: due.why }
  return { at: null, why: due.why, ...(due.why === 'after' && { waitingFor: due.waitingFor }) }
}

function toBackfillDocument(request: BackfillRequest | null): SyncDocument['backfillNeeded'] {
  return request === null ? null : { since: toIso(request.since), reason: request.reason }
}

export function toIso<Time extends number | null>(ms: Time): Time extends null ? string | null : string {
  return (ms === null ? null : new Date(ms).toISOString()) as Time extends null ? string | null : string
}
