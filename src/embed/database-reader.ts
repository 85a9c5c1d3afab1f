import type { ChangeAction, JsonObject, Store } from '../contract/index.ts'
import { parseJson } from '../values/json.ts'

/** A current row. */
export interface DatabaseRow<Row> {
  readonly key: string
  readonly record: Row
  /** The sequence of its last change. */
  readonly sequence: number
  readonly committedAt: Date
  /** The source's own time of this version. */
  readonly upstreamAt: string | null
}

/** A change of a row. `record` is null for a delete. */
export interface DatabaseChange<Row> {
  readonly sequence: number
  readonly key: string
  readonly action: ChangeAction
  readonly record: Row | null
  readonly committedAt: Date
}

/** A page of changes, and where to continue. */
export interface ChangesPage<Row> {
  readonly changes: readonly DatabaseChange<Row>[]
  /** Pass it as `after` to read the changes that follow. */
  readonly nextAfter: number
  readonly hasMore: boolean
  /**
   * Changes up to this sequence may be deleted, if they were superseded. A reader that stopped before it reads the rows
   * again.
   */
  readonly floor: number
}

const PAGE_ROWS = 1_000
const PAGE_BYTES = 8_388_608
const SCAN_MAX = 10_000

/** Reads one database of one tenant. `Row` is the type of its records; nothing is checked at run time. */
export class DatabaseReader<Row = JsonObject> {
  readonly #open: () => Promise<Store>
  readonly name: string

  constructor(name: string, open: () => Promise<Store>) {
    this.name = name
    this.#open = open
  }

  /** The current rows in key order, page by page, so that memory is bounded. */
  async *rows(options: { readonly after?: string } = {}): AsyncGenerator<DatabaseRow<Row>> {
    const store = await this.#open()
    let { after } = options
    for (;;) {
      const rows = await store.rows({
        database: this.name,
        limit: PAGE_ROWS,
        bytesMax: PAGE_BYTES,
        ...(after !== undefined && { after }),
      })
      for (const { key, text, sequence, committedAt, upstreamAt } of rows)
        yield { key, record: parseRecord<Row>(text), sequence, committedAt: new Date(committedAt), upstreamAt }
      const last = rows.at(-1)
      if (last === undefined) return
      after = last.key
    }
  }

  /** The current row of a key; null if there is none. */
  async row(key: string): Promise<DatabaseRow<Row> | null> {
    const row = await (await this.#open()).row(this.name, key)
    if (row === null) return null
    const { text, sequence, committedAt, upstreamAt } = row
    return { key, record: parseRecord<Row>(text), sequence, committedAt: new Date(committedAt), upstreamAt }
  }

  /** The changes after a sequence, in commit order. Store `nextAfter` together with their effect. */
  async changes({ after = 0, limit = 500 }: { readonly after?: number; readonly limit?: number } = {}): Promise<
    ChangesPage<Row>
  > {
    const store = await this.#open()
    const query = { databases: [this.name], after, limit, scanMax: SCAN_MAX, bytesMax: PAGE_BYTES }
    const { entries, scannedSequence, headSequence, floor } = await store.feed(query)
    return {
      changes: entries.map(({ sequence, key, action, text, committedAt }) => ({
        sequence,
        key,
        action,
        record: text === null ? null : parseRecord<Row>(text),
        committedAt: new Date(committedAt),
      })),
      nextAfter: Math.max(after, scannedSequence),
      hasMore: scannedSequence < headSequence,
      floor,
    }
  }
}

/** The declared type of a record: its schema was checked before it was stored. */
function parseRecord<Row>(text: string): Row {
  return parseJson(text) as Row
}
