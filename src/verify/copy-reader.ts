import type { JsonObject, KeyRange, RangeSummary, Row, RowsQuery, RowValues, Store } from '../contract/index.ts'
import { parseJson } from '../values/json.ts'
import { compareKeys } from '../values/partition-overlay.ts'
import { DigestSum, readFields, toDigestText } from './record-digest.ts'
import { required } from '../values/required.ts'

/** A block of the copy: the keys up to `upTo`, which follow the block before it. */
export interface CopyBlock extends RangeSummary {
  /** Null for the last block, which has no end. */
  readonly upTo: string | null
}

const PAGE_ROWS = 2_000
const PAGE_BYTES = 8_000_000
const FIND_CONCURRENCY = 32

/** Reads the copy of a database through the store's ordinary reads: nothing is locked, and syncs may run. */
export class CopyReader {
  readonly #store: Store
  readonly #database: string

  constructor(store: Store, database: string) {
    this.#store = store
    this.#database = database
  }

  /** The newest sequence: a row with a later one was written after this call. */
  headSequence(): Promise<number> {
    return this.#store.headSequence()
  }

  /** Rows in key order. */
  async *rows({ after, upTo }: KeyRange): AsyncGenerator<Row> {
    for (let from = after; ;) {
      const page = await this.#store.rows({
        database: this.#database,
        ...(from !== null && { after: from }),
        limit: PAGE_ROWS,
        bytesMax: PAGE_BYTES,
      })
      for (const row of page) {
        if (upTo !== null && compareKeys(row.key, upTo) > 0) return
        yield row
      }
      if (page.length === 0) return
      from = required(page.at(-1), 'last row of the page').key
    }
  }

  /** The current rows of these keys. */
  async find(keys: readonly string[]): Promise<Map<string, Row>> {
    const found = new Map<string, Row>()
    for (let start = 0; start < keys.length; start += FIND_CONCURRENCY) {
      const chunk = keys.slice(start, start + FIND_CONCURRENCY)
      for (const row of await Promise.all(chunk.map((key) => this.#store.row(this.#database, key))))
        if (row !== null) found.set(row.key, row)
    }
    return found
  }

  /** Summaries of consecutive blocks of this many rows, in one pass over the copy. */
  async summarize(fields: readonly string[], blockRows: number): Promise<CopyBlock[]> {
    const blocks: CopyBlock[] = []
    let sum = new DigestSum()
    let last: string | null = null
    for await (const { key, text } of this.#digestTexts(fields)) {
      // The block ends before the next row, so that keys after the last row belong to the last block.
      if (sum.count === blockRows) {
        blocks.push({ count: sum.count, digest: sum.digest, upTo: last })
        sum = new DigestSum()
      }
      sum.add(text)
      last = key
    }
    blocks.push({ count: sum.count, digest: sum.digest, upTo: null })
    return blocks
  }

  async *#digestTexts(fields: readonly string[]): AsyncGenerator<{ key: string; text: string }> {
    for (let after: string | null = null; ;) {
      const query: RowsQuery = {
        database: this.#database,
        ...(after !== null && { after }),
        limit: PAGE_ROWS,
        bytesMax: PAGE_BYTES,
      }
      const values: RowValues | null = (await this.#store.rowValues?.(query)) ?? null
      const count: number = values?.length ?? 0
      if (values === null) {
        const rows: Row[] = await this.#store.rows(query)
        for (const { key, text } of rows) yield { key, text: digestTextOf(fields, text) }
        if (rows.length === 0) return
        after = required(rows.at(-1), 'last row of the page').key
        continue
      }
      const indexes = fields.map((name) => values.members.indexOf(name))
      for (let at = 0; at < count; at++) {
        const text = values.text(at)
        if (text !== null) yield { key: values.key(at), text: digestTextOf(fields, text) }
        else {
          const row = values.values(at)
          yield { key: values.key(at), text: toDigestText(indexes.map((index) => row[index])) }
        }
      }
      if (count === 0) return
      after = values.key(count - 1)
    }
  }
}

function digestTextOf(fields: readonly string[], text: string): string {
  return toDigestText(readFields(fields, parseJson(text) as JsonObject))
}
