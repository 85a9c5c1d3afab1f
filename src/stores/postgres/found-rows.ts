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
  /** See FoundRows. */
  readonly unchanged: number[] | null
}

export const NO_ROWS: FoundTableRows = { kind: 'new', get: () => undefined, unchanged: null }

/** The writer is left out: it is needed only where contents differ. */
export function toUnchangedRow(
  sequence: number,
  hash: string | null,
  upstreamAt: string | null,
  owner: number,
): StoredRow {
  return { sequence, status: 'live', hash, upstreamAt, writer: 0, owner, contestedBy: null }
}

/** Builds its rows lazily: single rows are rarely requested. */
export class UnchangedRows implements FoundTableRows {
  readonly kind = 'unchanged'
  readonly unchanged: number[]
  readonly #make: () => Map<string, StoredRow>
  #rows: Map<string, StoredRow> | null = null

  constructor(
    keys: readonly string[],
    hashes: ReadonlyArray<string | null>,
    times: ReadonlyArray<string | null>,
    sequences: number[],
    owner: number,
  ) {
    this.unchanged = sequences
    this.#make = () =>
      new Map(
        keys.map((key, at) => [key, toUnchangedRow(sequences[at] ?? 0, hashes[at] ?? null, times[at] ?? null, owner)]),
      )
  }

  get(key: string): StoredRow | undefined {
    return (this.#rows ??= this.#make()).get(key)
  }
}
