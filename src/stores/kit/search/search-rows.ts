import { isSyncError, SyncError, type Row, type RowSearch, type RowSearchPage } from '../../../contract/index.ts'
import { requireColumn } from './conditions.ts'
import type { FoundRows } from './find-rows.ts'
import type { SearchDialect, SearchTable } from './search-dialect.ts'

/** Records fetched per statement: the page ends with its bytes, so no more is fetched than needed. */
export const KEYS_PER_FETCH = 200

/** The keys to fetch, in parts. */
export function* keyBatches({ positions }: FoundRows): Generator<string[]> {
  for (let from = 0; from < positions.length; from += KEYS_PER_FETCH)
    yield positions.slice(from, from + KEYS_PER_FETCH).map(({ key }) => key)
}

/** Collects the records of found rows, up to the bytes of a page. */
export class PageCollector {
  readonly #found: FoundRows
  readonly #bytesMax: number
  readonly #rows: Row[] = []
  #bytes = 0

  constructor(found: FoundRows, { bytesMax }: RowSearch) {
    this.#found = found
    this.#bytesMax = bytesMax
  }

  get isFull(): boolean {
    return this.#bytes >= this.#bytesMax
  }

  /** Adds the rows of a batch in the order of the search. */
  add(keys: readonly string[], rows: readonly Row[]): void {
    const byKey = new Map(rows.map((row) => [row.key, row]))
    for (const key of keys) {
      const row = byKey.get(key)
      if (row === undefined || this.isFull) continue
      this.#rows.push(row)
      this.#bytes += Buffer.byteLength(row.text)
    }
  }

  toPage(scan: RowSearchPage['scan']): RowSearchPage {
    const { positions, next, scanned } = this.#found
    const last = positions[this.#rows.length - 1]
    const isCut = this.#rows.length < positions.length
    return { rows: this.#rows, next: isCut && last !== undefined ? last : next, scanned, scan }
  }
}

/** How the rows of a search are read; see RowSearchPage.scan. */
export function scanOf(
  dialect: SearchDialect,
  table: SearchTable,
  { filters, order }: Pick<RowSearch, 'filters' | 'order'>,
): RowSearchPage['scan'] {
  const fields = filters.flatMap(({ test, field }) =>
    test === 'equals' || test === 'from' || test === 'to' ? [field] : [],
  )
  const sorted = order.by === 'field' ? [order.field] : []
  if (filters.length === 0 && sorted.length === 0) return null
  if (table.isPast) return { index: null }
  const columns = (fields.length > 0 ? fields : sorted).map((field) => {
    const { unqualified, type } = requireColumn(table, field)
    return { name: unqualified, ordered: dialect.ordered(unqualified, type) }
  })
  const [first] = columns
  if (first === undefined) return { index: null }
  if (columns.some(({ name, ordered }) => table.isIndexed(name, ordered)))
    return filters.length > fields.length ? { index: null } : null
  return { index: dialect.createIndex(table.name, first.name, first.ordered) }
}

/** Adds the remedy to the error of a search that took too long. */
export function explainDeadline(error: unknown, scan: RowSearchPage['scan']): unknown {
  if (!isSyncError(error) || error.code !== 'QUERY_TOO_LONG') return error
  const remedy =
    scan?.index == null
      ? 'Narrow it with a filter on an indexed column.'
      : `No index serves it. \`${scan.index}\` creates one.`
  return new SyncError('QUERY_TOO_LONG', `${error.message} ${remedy}`, { cause: error })
}
