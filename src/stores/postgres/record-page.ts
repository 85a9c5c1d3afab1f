import type { LandingCounts, StateTransition } from '../../contract/index.ts'
import type { CommitFacts, LoggedRange } from '../kit/commits.ts'
import { toSequenceRanges } from '../kit/plan-landing.ts'
import { replaceNul } from '../kit/replace-nul.ts'
import { bigintArray, integerArray } from './binary-arrays.ts'
import type { Transaction } from './connection.ts'

/** The parts of a page to record; the others are left out. */
export interface PageRecord {
  /** For the directory of commits. */
  readonly ranges?: readonly LoggedRange[]
  /**
   * Rows that the page confirmed. Neither this cycle nor a concurrent one may sweep them: for other replace cycles they
   * are one more page, numbered by the sync that saw them.
   */
  readonly seen?: { readonly sequences: readonly number[]; readonly sweeps: boolean }
  /** The tenant's new head sequence. */
  readonly headSequence?: number | null
  readonly counts?: LandingCounts
  readonly transition?: StateTransition
  /** A power cut may undo the commit, as if the page had not been read; see decision 28. */
  readonly mayBeUndone?: boolean
}

/** Invariant 1: the checkpoint of an unfinished cycle moves with the rows of its page. */
export function recordPage(
  transaction: Transaction,
  { sync, cycle, page, committedAt }: Omit<CommitFacts, 'cycle'> & { readonly cycle: number | null },
  { ranges = [], seen, headSequence = null, counts, transition, mayBeUndone = false }: PageRecord,
): void {
  const sequences = seen === undefined || seen.sequences.length === 0 ? null : toMultirange(seen.sequences)
  const next = transition?.kind === 'continue' ? transition : null
  const isEmpty = ranges.length === 0
  transaction.send(
    `select ${mayBeUndone ? "set_config('synchronous_commit', 'off', true), " : ''}tidemark.record_page($1, $2, $3, $4, $5, $6::integer[], $7::bigint[], $8::bigint[], $9::int8multirange, $10::int8multirange,
       $11, $12::bigint[], $13, $14, $15, $16, $17)`,
    transaction.tenant,
    sync,
    cycle,
    page,
    committedAt,
    isEmpty ? null : integerArray(ranges.map(({ table }) => table.id)),
    isEmpty ? null : bigintArray(ranges.map(({ first }) => first)),
    isEmpty ? null : bigintArray(ranges.map(({ last }) => last)),
    seen?.sweeps === true ? sequences : null,
    sequences,
    headSequence,
    counts === undefined || cycle === null ? null : bigintArray(COUNTS.map((name) => counts[name])),
    next !== null,
    next?.state ?? null,
    replaceNul(next?.scope ?? null),
    replaceNul(next?.tidemark ?? null),
    next?.guardState ?? null,
  )
}

/** In the order of the function. */
const COUNTS = ['created', 'updated', 'deleted', 'swept', 'unchanged', 'stale', 'missing', 'quarantined'] as const

function toMultirange(sequences: readonly number[]): string {
  return `{${toSequenceRanges(sequences)
    .map(([first, last]) => `[${first},${last}]`)
    .join()}}`
}
