import type { Clock, Row } from '../contract/index.ts'
import { compareRecords } from './compare-records.ts'
import type { Coverage } from './coverage.ts'
import type { CopyReader } from './copy-reader.ts'
import type { SourceReader, SourceRecord } from './source-reader.ts'
import type { VerifiedSource } from './verification-plan.ts'

/** A row that differed when it was compared. Null for a record or row that was absent. */
export interface Candidate {
  readonly key: string
  readonly record: SourceRecord | null
  readonly row: Row | null
  readonly seenAt: number
}

/** A row that differed in two looks, at least the source's lag apart, while neither side changed. */
export interface SettledDifference extends Candidate {
  /** The promises of the syncs when the last look began. */
  readonly coverage: Coverage
}

export interface SettledCandidates {
  readonly differences: readonly SettledDifference[]
  /** Rows that changed in the meantime, and are equal now. */
  readonly moved: number
  readonly ignored: number
  /** Rows that changed whenever they were compared. */
  readonly unsteady: number
}

export interface SettleOptions {
  readonly source: VerifiedSource
  readonly reader: SourceReader
  readonly copy: CopyReader
  readonly readCoverage: () => Promise<Coverage>
  readonly ignore: readonly string[]
  readonly clock: Clock
  readonly signal: AbortSignal
}

const LOOKS_MAX = 5

/**
 * Compares the candidates again, after the source's lag: a page of a lagging replica, a change that a cycle has landed
 * meanwhile and a record that changed between the reads of both sides are no differences.
 */
export async function settleDifferences(
  candidates: readonly Candidate[],
  options: SettleOptions,
): Promise<SettledCandidates> {
  const { source, reader, copy, ignore, clock, signal } = options
  const differences: SettledDifference[] = []
  let [moved, ignored] = [0, 0]
  let open = candidates
  for (let look = 1; open.length > 0 && look <= LOOKS_MAX; look++) {
    const waitMs = Math.max(...open.map(({ seenAt }) => seenAt)) + source.lagMs - clock.now()
    if (waitMs > 0) await clock.sleep(waitMs, signal)
    const seenAt = clock.now()
    const coverage = await options.readCoverage()
    const headSequence = await copy.headSequence()
    // The source first: a row that a sync commits in between shows in its sequence.
    const { records } = await reader.find(open.map(({ key }) => key))
    const rows = await copy.find(open.map(({ key }) => key))
    const next: Candidate[] = []
    for (const candidate of open) {
      const { key } = candidate
      const record = records.get(key) ?? null
      const row = rows.get(key) ?? null
      const match = matchRow(record, row, ignore)
      if (match === 'equal') moved++
      else if (match === 'ignored') ignored++
      else if (isSameRecord(record, candidate.record) && isSameRow(row, candidate.row) && isBefore(row, headSequence))
        differences.push({ ...candidate, record, row, coverage })
      else next.push({ key, record, row, seenAt })
    }
    open = next
  }
  return { differences, moved, ignored, unsteady: open.length }
}

/** Whether the row and the record agree. A record that cannot be stored agrees with every row. */
export function matchRow(
  record: SourceRecord | null,
  row: Row | null,
  ignore: readonly string[],
): 'equal' | 'ignored' | 'different' {
  if (record !== null && record.landing === null) return 'equal'
  if (record?.landing == null || row === null) return record === null && row === null ? 'equal' : 'different'
  return compareRecords(record.landing.text, row.text, ignore)
}

function isSameRecord(a: SourceRecord | null, b: SourceRecord | null): boolean {
  return a?.landing?.hash === b?.landing?.hash && (a === null) === (b === null)
}

function isSameRow(a: Row | null, b: Row | null): boolean {
  return a?.sequence === b?.sequence
}

function isBefore(row: Row | null, headSequence: number): boolean {
  return row === null || row.sequence <= headSequence
}
