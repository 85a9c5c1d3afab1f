import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import type { Column, JsonObject, RowPosition, Store } from '../../contract/index.ts'
import { toExportColumns, isMixedNumeric, type ExportColumn, type ExportItem } from '../../export/columns.ts'
import { lineFormatOf, openWriter, type ExportFormat } from '../../export/formats.ts'
import { parseJson } from '../../values/json.ts'
import { required } from '../../values/required.ts'
import type { RowView } from './explorer-requests.ts'

/** Every page of an order without an index reads the table, so pages are large. Memory is bounded by their bytes. */
const PAGE_ROWS = 10_000
const PAGE_BYTES = 4_194_304
const PAGE_DEADLINE_MS = 60_000

/** Streams the rows of a view in its order, one page in memory at a time. */
export async function exportView(
  store: Store,
  database: string,
  columns: readonly Column[],
  view: RowView,
  format: ExportFormat,
): Promise<Readable> {
  // A double would round some integers of a field that also has fractions.
  const wide = new Set(columns.filter(isMixedNumeric).map(({ name }) => name))
  const exported = toExportColumns(columns, wide)
  const pages = readPages(store, database, view)
  // An error of the first page is still an answer of its own.
  const first = await pages.next()
  const items = resume(first, pages)
  return format === 'parquet' ? writeParquet(exported, items) : Readable.from(formatLines(format, exported, items))
}

async function* readPages(store: Store, database: string, view: RowView): AsyncGenerator<ExportItem[]> {
  const searchRows = required(store.searchRows, 'The search of the store')
  let after: RowPosition | undefined
  do {
    const { rows, next } = await searchRows({
      ...view,
      database,
      after,
      limit: PAGE_ROWS,
      bytesMax: PAGE_BYTES,
      scanMax: Number.MAX_SAFE_INTEGER,
      deadlineMs: PAGE_DEADLINE_MS,
    })
    yield rows.map((row) => ({ ...row, action: 'row', record: parseJson(row.text) as JsonObject }))
    after = next ?? undefined
  } while (after !== undefined)
}

async function* resume<Item>(first: IteratorResult<Item, unknown>, rest: AsyncGenerator<Item>): AsyncGenerator<Item> {
  if (first.done === true) return
  yield first.value
  yield* rest
}

async function* formatLines(
  format: 'csv' | 'ndjson',
  columns: readonly ExportColumn[],
  pages: AsyncIterable<ExportItem[]>,
): AsyncGenerator<Buffer> {
  const { head, lineOf } = lineFormatOf(format, columns)
  if (head !== '') yield Buffer.from(head)
  for await (const page of pages)
    if (page.length > 0) yield Buffer.from(page.map((item) => `${lineOf(item)}\n`).join(''))
}

/** A Parquet file ends with its index, so it is written to disk first. */
async function writeParquet(columns: readonly ExportColumn[], pages: AsyncIterable<ExportItem[]>): Promise<Readable> {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-export-'))
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true })
  try {
    const file = join(folder, 'rows.parquet')
    const writer = openWriter('parquet', file, columns)
    for await (const page of pages) writer.write(page)
    writer.finish()
    return createReadStream(file).once('close', () => void remove())
  } catch (error) {
    await remove()
    throw error
  }
}
