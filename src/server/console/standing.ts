import { ERROR_CODES, type BackfillNeed, type CycleRecord, type Standing, type Store } from '../../contract/index.ts'
import { showTidemark } from '../../redaction/redact-state.ts'
import { coverageOf } from '../../runner/coverage.ts'
import { dueOf } from '../../runner/due.ts'
import { healthOf } from '../../runner/health.ts'
import { completeSince } from '../../runner/lag.ts'
import { PAUSE_MS, readStandings, type KnownSync } from '../../runner/status.ts'
import type { Hall } from '../route.ts'
import type { CycleDocument, SyncDocument } from './documents.ts'
import type { StateNote } from './state-notes.ts'

/** Where every sync stands. Without anything that moves with the clock alone, so that an answer stays the same while nothing happens. */
export async function syncDocuments({ syncs, ports, notes }: Hall, store: Store): Promise<SyncDocument[]> {
  const { now, syncs: known } = await readStandings(store, syncs, ports.clock.now())
  const workers = new Map<string, Map<string, Standing>>()
  for (const standing of known) workers.set(standing.worker, (workers.get(standing.worker) ?? new Map<string, Standing>()).set(standing.sync, standing))
  return await Promise.all(known.map(async (sync) => syncDocument(sync, await notes.of(store, sync), workers.get(sync.worker)!, now)))
}

function syncDocument(known: KnownSync, { state, frontier }: StateNote, others: ReadonlyMap<string, Standing>, now: number): SyncDocument {
  const { worker, sync, declared, checkpoint, recent, backfill } = known
  const { version, tidemark, triggeredAt, failures, lastError, heldBy, inflight } = checkpoint
  const pair = declared?.plan.pair
  const mode = declared?.mode ?? recent[0]?.mode ?? null
  const due = declared === null ? null : dueOf(declared, known, { now, since: now, pauseMs: PAUSE_MS })
  const last = recent[0]
  return {
    worker, sync, health: healthOf(checkpoint, backfill), isDeclared: declared !== null, mode,
    schedule: declared?.schedule ?? null, databases: declared?.plan.databases.map(({ name }) => name) ?? [],
    pair: pair === undefined ? null : { role: pair.role, with: pair.role === 'delta' ? pair.backfill : pair.delta },
    isRunning: heldBy !== null && inflight !== null, heldBy, version, state, tidemark: showTidemark(tidemark, false),
    completeSince: iso(completeSince(checkpoint, recent)), backfillNeeded: needDocument(backfill?.backfillNeeded ?? null),
    next: due === null ? null : { at: due.kind === 'at' ? iso(due.at) : null, why: due.why },
    triggeredAt: iso(triggeredAt), failures,
    lastError: lastError === null ? null : { code: lastError.code, message: lastError.message, advice: ERROR_CODES[lastError.code].advice.replaceAll('<sync>', sync), at: iso(lastError.at) },
    lastCycle: last === undefined ? null : cycleDocument(last), coverage: coverageOf(known, { mode, frontier, pair, isLacking: (backfill?.backfillNeeded ?? null) !== null, others }),
  }
}

function needDocument(need: BackfillNeed | null): SyncDocument['backfillNeeded'] {
  return need === null ? null : { since: iso(need.since), reason: need.reason }
}

function cycleDocument(record: CycleRecord): CycleDocument {
  const { startedAt, endedAt, startSequence: _, ...cycle } = record
  return { ...cycle, startedAt: iso(startedAt), endedAt: iso(endedAt) }
}

export function iso<Time extends number | null>(ms: Time): Time extends null ? string | null : string {
  return (ms === null ? null : new Date(ms).toISOString()) as Time extends null ? string | null : string
}
