import type { CycleRecord, LogEntry, Mode, QuarantineEntry } from '../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../values/instant.ts'
import { required } from '../values/required.ts'

export interface SyncProgress {
  readonly sync: string
  readonly mode: Mode
  readonly role: 'backfill' | 'delta' | null
  readonly tidemark: string | null
  readonly paused: boolean
  /** The newest complete cycle, or null. */
  readonly lastComplete: Pick<CycleRecord, 'cycle' | 'startedAt'> | null
  readonly unfinished: number | null
}

export type SourceLookupResult =
  | { readonly kind: 'has'; readonly sync: string; readonly updatedAt: string | null }
  | { readonly kind: 'has_not'; readonly sync: string }
  /** The source does not support lookups, or the lookup failed. */
  | { readonly kind: 'unasked'; readonly reason: string }

export interface AbsenceFacts {
  readonly database: string
  readonly key: string
  readonly exists: boolean
  /** The newest log entry of the key, or null. */
  readonly lastEntry: LogEntry | null
  /** The mode of the cycle that wrote `lastEntry`; null if its record was compacted. */
  readonly lastEntryMode: Mode | null
  readonly quarantined: QuarantineEntry | null
  readonly progress: readonly SyncProgress[]
  readonly source: SourceLookupResult
}

export type AbsenceCause =
  | 'present'
  | 'quarantined'
  | 'deleted'
  | 'swept'
  | 'never_read'
  | 'not_yet'
  | 'left_out'
  | 'not_in_source'
  | 'unknown'

export interface Absence {
  readonly verdict: AbsenceCause
  readonly why: string
  readonly advice: string
  /** The cycle that should have returned the row. */
  readonly should: { readonly sync: string; readonly cycle: number } | null
}

/**
 * Explains why a row is missing, from the log, the quarantine, the progress of each sync and a lookup at the source.
 */
export function explainAbsence(facts: AbsenceFacts): Absence {
  const { database, key, exists, lastEntry, quarantined, progress, source } = facts
  const full = runArgumentFor(progress, 'replace')
  const isQuarantineNewer = quarantined !== null && (lastEntry === null || quarantined.at > lastEntry.committedAt)
  const answer = (verdict: AbsenceCause, why: string, advice: string, should: Absence['should'] = null): Absence => ({
    verdict,
    why,
    advice,
    should,
  })

  if (exists)
    return answer(
      'present',
      `The row is in ${database}.`,
      `Run \`tidemark why ${database} ${key}\` to see its change history.`,
    )
  if (isQuarantineNewer) {
    return answer(
      'quarantined',
      `The record was quarantined on page ${quarantined.page} of cycle ${quarantined.cycle} of ${quarantined.sync}: ${quarantined.code}, ${quarantined.message}`,
      `Fix the record in the source or the schema in the worker, then run \`tidemark run ${full}\`.`,
    )
  }
  if (lastEntry?.action === 'deleted') {
    const swept = facts.lastEntryMode === 'replace'
    const by = `page ${lastEntry.page} of cycle ${lastEntry.cycle} of ${lastEntry.sync}`
    const why = swept
      ? `The row was swept by ${by}: the full listing did not contain it.`
      : `The row was deleted by ${by}: the source reported the deletion.`
    return answer(
      swept ? 'swept' : 'deleted',
      `${why}${SOURCE_RESULT_TEXT[source.kind]}`,
      source.kind === 'has'
        ? `Run \`tidemark run ${full}\`.`
        : source.kind === 'has_not'
          ? 'Nothing to do: the copy is correct.'
          : `Check the source. If the record exists there, run \`tidemark run ${full}\`.`,
    )
  }
  if (progress.every(({ lastComplete }) => lastComplete === null)) {
    return answer(
      'never_read',
      `No sync of ${database} has completed a cycle yet.${SOURCE_RESULT_TEXT[source.kind]}`,
      `Run \`tidemark run ${full}\`.`,
    )
  }
  if (source.kind === 'unasked')
    return answer(
      'unknown',
      `The log has no entry for this key, and the source was not queried: ${source.reason}`,
      `Check the source. If the record exists there, run \`tidemark run ${full}\` and try again.`,
    )
  if (source.kind === 'has_not')
    return answer(
      'not_in_source',
      `The log has no entry for this key, and the source has no record with it.`,
      'Check the spelling of the key against an existing row.',
    )
  const should = findExpectedCycle(progress, source.updatedAt)
  if (should === null)
    return answer(
      'not_yet',
      `The source has the record${source.updatedAt === null ? '' : `, changed ${source.updatedAt}`}; no cycle has read that far yet.`,
      `Run \`tidemark run ${runArgumentFor(progress, 'incremental')}\`.`,
    )
  return answer(
    'left_out',
    `The source has the record, and cycle ${should.cycle} of ${should.sync} should have returned it.`,
    `Run \`tidemark run ${full}\`. If the row is still missing, the source omits it from the list: check the sync's filter and the permissions of its credentials.`,
    should,
  )
}

const SOURCE_RESULT_TEXT: Record<SourceLookupResult['kind'], string> = {
  has: ' The source has the record now.',
  has_not: ' The source has no record with this key.',
  unasked: '',
}

/** Prefers a sync of the given mode. */
function runArgumentFor(progress: readonly SyncProgress[], mode: Mode): string {
  const found = required(progress.find((sync) => sync.mode === mode) ?? progress[0], 'a sync of the database')
  return found.role === 'backfill' ? `${found.sync.replace(/-backfill$/, '')} --backfill` : found.sync
}

/**
 * Finds a full listing that began after the change, or a delta whose tidemark has passed it. Without a change time,
 * the newest full listing counts.
 */
function findExpectedCycle(progress: readonly SyncProgress[], updatedAt: string | null): Absence['should'] {
  const changed = updatedAt === null ? null : canonicalizeInstant(updatedAt)
  for (const { sync, mode, tidemark, lastComplete } of progress) {
    if (lastComplete === null) continue
    const completeUpTo = tidemark === null ? null : canonicalizeInstant(tidemark)
    const isCovered =
      mode === 'replace'
        ? changed === null || lastComplete.startedAt > instantToMs(changed)
        : changed !== null && completeUpTo !== null && completeUpTo >= changed
    if (isCovered) return { sync, cycle: lastComplete.cycle }
  }
  return null
}
