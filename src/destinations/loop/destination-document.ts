import { ERROR_CODES } from '../../contract/index.ts'
import type { DestinationOverview } from './destination-overview.ts'

export type DestinationDocument = ReturnType<typeof toDestinationDocument>

/** A destination as JSON, with times as RFC 3339. */
export function toDestinationDocument({
  name,
  plan,
  status,
  health,
  lagMs,
  behind,
  due,
  databases,
}: DestinationOverview) {
  return {
    destination: name,
    declared: plan !== null,
    kind: plan?.destination.kind ?? status?.kind ?? null,
    location: plan?.destination.location ?? status?.location ?? null,
    mode: plan?.mode ?? status?.mode ?? null,
    schedule: plan?.schedule ?? null,
    health,
    lagMs,
    behind,
    paused: status?.isPaused ?? false,
    heldBy: status?.heldBy ?? null,
    next: due === null ? null : due.kind === 'at' ? { at: toIso(due.at), why: due.why } : { at: null, why: due.why },
    triggeredAt: toIso(status?.triggeredAt ?? null),
    resync: status?.resync ?? [],
    startedAt: toIso(status?.startedAt ?? null),
    endedAt: toIso(status?.endedAt ?? null),
    failures: status?.failures ?? 0,
    retryAt: toIso(status?.retryAt ?? null),
    error:
      status?.error == null
        ? null
        : { ...status.error, advice: ERROR_CODES[status.error.code].advice.replaceAll('<name>', name) },
    databases: databases.map((one) =>
      one.state === 'new'
        ? { ...EMPTY_PROGRESS, database: one.database }
        : {
            database: one.database,
            state: one.state,
            sequence: one.sequence,
            readSequence: one.readSequence,
            committedAt: one.committedAt === 0 ? null : toIso(one.committedAt),
            changes: one.changes,
            loadReason: one.loadReason,
            failure: one.failure == null ? null : { ...one.failure, at: toIso(one.failure.at) },
          },
    ),
  }
}

const EMPTY_PROGRESS = {
  state: 'new',
  sequence: 0,
  readSequence: 0,
  committedAt: null,
  changes: 0,
  loadReason: null,
  failure: null,
} as const

function toIso(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
