import type { CycleRecord, LogEntry, Mode, QuarantineEntry } from '../contract/index.ts'
import { canonicalizeInstant, instantToMs } from '../values/instant.ts'

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

export type AbsenceCause = 'present' | 'quarantined' | 'deleted' | 'swept' | 'never_read' | 'not_yet' | 'left_out' | 'not_in_source' | 'unknown'

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
  const { database, key, exists: isThere, lastEntry: last, quarantined, progress: coverage, source } = facts
  const full = runArgumentFor(coverage, 'replace')
  const newer = quarantined !== null && (last === null || quarantined.at > last.committedAt)
  const answer = (verdict: AbsenceCause, why: string, advice: string, should: Absence['should'] = null): Absence => ({ verdict, why, advice, should })

  if (isThere) return answer('present', `${database} has it.`, `Run \`tidemark why ${database} ${key}\` to see how it came.`)
  if (newer) {
    return answer('quarantined', `It came with page ${quarantined.page} of cycle ${quarantined.cycle} of ${quarantined.sync} and was refused: ${quarantined.code}, ${quarantined.message}`,
      `Repair the record in the source, or the schema in the worker; then run \`tidemark run ${full}\`.`)
  }
  if (last?.action === 'deleted') {
    const swept = facts.lastEntryMode === 'replace'
    const by = `page ${last.page} of cycle ${last.cycle} of ${last.sync}`
    const why = swept ? `It was swept with ${by}: that cycle read everything, and this was not in it.` : `It was deleted by ${by}: the source said so.`
    return answer(swept ? 'swept' : 'deleted', `${why}${SOURCE_RESULT_TEXT[source.kind]}`,
      source.kind === 'has' ? `Run \`tidemark run ${full}\`.` : source.kind === 'has_not' ? 'Nothing: the copy is right.' : `Look in the source. If it is there, run \`tidemark run ${full}\`.`)
  }
  if (coverage.every(({ lastComplete }) => lastComplete === null)) {
    return answer('never_read', `No sync of ${database} has been through yet.${SOURCE_RESULT_TEXT[source.kind]}`, `Run \`tidemark run ${full}\`.`)
  }
  if (source.kind === 'unasked') return answer('unknown', `It has never been here, and the source was not asked: ${source.reason}`, `Look in the source. If it is there, run \`tidemark run ${full}\` and ask again.`)
  if (source.kind === 'has_not') return answer('not_in_source', `It has never been here, and the source has nothing under this key.`, 'Compare the key with one that is there, letter by letter.')
  const should = findExpectedCycle(coverage, source.updatedAt)
  if (should === null) return answer('not_yet', `The source has it${source.updatedAt === null ? '' : `, changed ${source.updatedAt}`}; no cycle has come that far.`, `Run \`tidemark run ${runArgumentFor(coverage, 'incremental')}\`.`)
  return answer('left_out', `The source has it, and cycle ${should.cycle} of ${should.sync} should have brought it.`,
    `Run \`tidemark run ${full}\`. If it is still missing then, the list that sync reads leaves it out: look at its filter, and at what its credentials may see.`, should)
}

const SOURCE_RESULT_TEXT: Record<SourceLookupResult['kind'], string> = {
  has: ' The source has it now.', has_not: ' The source has nothing under this key.', unasked: '',
}

/** Prefers a sync of the given mode. */
function runArgumentFor(coverage: readonly SyncProgress[], mode: Mode): string {
  const found = coverage.find((sync) => sync.mode === mode) ?? coverage[0]!
  return found.role === 'backfill' ? `${found.sync.replace(/-backfill$/, '')} --backfill` : found.sync
}

/**
 * Finds a full listing that began after the change, or a delta whose tidemark has passed it. Without a change time,
 * the newest full listing counts.
 */
function findExpectedCycle(coverage: readonly SyncProgress[], updatedAt: string | null): Absence['should'] {
  const changed = updatedAt === null ? null : canonicalizeInstant(updatedAt)
  for (const { sync, mode, tidemark, lastComplete } of coverage) {
    if (lastComplete === null) continue
    const passed = mode === 'replace' ? changed === null || lastComplete.startedAt > instantToMs(changed) : changed !== null && tidemark !== null && canonicalizeInstant(tidemark) !== null && canonicalizeInstant(tidemark)! >= changed
    if (passed) return { sync, cycle: lastComplete.cycle }
  }
  return null
}
