import type { Landing } from '../../contract/index.ts'
import type { LandingFacts } from '../kit/plan-landing.ts'
import type { StoredRow } from '../kit/resolve-landing.ts'

export interface RowLookup {
  readonly keys: string[]
  readonly hashes: Array<string | null>
  readonly times: Array<string | null>
}

/**
 * How a page related to its table. The next page is usually alike, and is looked up in the way that is fastest for that
 * kind. The keys of a scattered page are not a range of the table.
 */
export type PageKind = 'new' | 'unchanged' | 'mixed' | 'scattered'

export interface FoundTableRows {
  readonly kind: PageKind
  get(key: string): StoredRow | undefined
  /** The record of a row that is not the same. */
  recordOf(key: string): StoredRecord | undefined
  /** See FoundRows. */
  readonly unchanged: number[] | null
}

/** The stored rows of a page's keys, all read before the first one is resolved. */
export interface FoundRows {
  readonly find: LandingFacts['find']
  /** The record of a row whose hash differs from the landing's. */
  recordOf(landing: Landing): StoredRecord
  /** The sequences of all rows, when every landing is the same as its row. */
  readonly unchanged: number[] | null
  readonly pageKinds: ReadonlyMap<string, PageKind>
}

/** The columns of a row; see `Table.decode`. */
export interface StoredRecord {
  readonly sequence: number
  readonly extra: string | null
  readonly values: ReadonlyArray<string | null>
}

export const NO_ROWS: FoundTableRows = {
  kind: 'new',
  get: () => undefined,
  recordOf: () => undefined,
  unchanged: null,
}

/** The writer is left out: it is needed only where contents differ. */
export function toUnchangedRow(
  sequence: number,
  hash: string | null,
  upstreamAt: string | null,
  owner: number,
): StoredRow {
  return { sequence, status: 'live', hash, upstreamAt, writer: 0, owner, contestedBy: null }
}

/** The rows of a page that are all the same. Built lazily: single rows are rarely requested. */
export function toUnchangedRows(
  keys: readonly string[],
  hashes: ReadonlyArray<string | null>,
  times: ReadonlyArray<string | null>,
  sequences: number[],
  owner: number,
): FoundTableRows {
  let rows: Map<string, StoredRow> | null = null
  const make = (): Map<string, StoredRow> =>
    new Map(
      keys.map((key, at) => [key, toUnchangedRow(sequences[at] ?? 0, hashes[at] ?? null, times[at] ?? null, owner)]),
    )
  return {
    kind: 'unchanged',
    get: (key) => (rows ??= make()).get(key),
    recordOf: () => undefined,
    unchanged: sequences,
  }
}
