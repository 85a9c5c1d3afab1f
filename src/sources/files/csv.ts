import { Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import type { JsonObject } from '../../contract/index.ts'
import type { OpenFile } from './folder.ts'
import { ROW_BYTES_MAX, setMember, UnreadableFileError, type FileRow, type RowReader } from './row-reader.ts'
import { readTextChunks } from './text-stream.ts'

export interface CsvOptions {
  /** A comma unless given; a tab in files named `.tsv`. */
  readonly delimiter?: string
  /** What the columns are called, in files without a line that says so. */
  readonly columns?: readonly string[]
}

/** Values stay the texts that they are. */
export function csvReader(isPacked: boolean, { delimiter = ',', columns }: CsvOptions): RowReader {
  return async function* rows(file, from) {
    const header = columns === undefined ? await readHeader(file, isPacked, delimiter) : { names: columns, offset: 0 }
    if (header === null) return
    const { names } = header
    let { row } = from
    const start = row === 0 ? header.offset : from.offset
    for await (const { fields, bytes } of readRecords(file, isPacked, delimiter, start)) {
      row++
      const place = { row, offset: start + bytes }
      yield { record: toRecord(fields, names, row), end: place, bytes: fields.reduce((sum, field) => sum + field.length, 0) } satisfies FileRow
    }
  }
}

async function readHeader(file: OpenFile, isPacked: boolean, delimiter: string): Promise<{ names: string[]; offset: number } | null> {
  for await (const { fields, bytes } of readRecords(file, isPacked, delimiter, 0)) {
    const names = fields.map((field) => decode(field))
    if (names.some((name) => name === null || name === '')) throw new UnreadableFileError('the first line does not name every column')
    if (new Set(names).size !== names.length) throw new UnreadableFileError('the first line names a column twice')
    return { names: names as string[], offset: bytes }
  }
  return null
}

/** `bytes` counts from the start to behind the record. */
async function* readRecords(file: OpenFile, isPacked: boolean, delimiter: string, start: number): AsyncGenerator<{ fields: Buffer[]; bytes: number }> {
  const text = Readable.from(readTextChunks(file, isPacked, start))
  // Fields as bytes: whatever is no UTF-8 would silently become something else.
  const parser = parse({ bom: start === 0, delimiter, encoding: null, info: true, max_record_size: ROW_BYTES_MAX, relax_column_count: true, skip_empty_lines: true })
  text.once('error', (error) => parser.destroy(error))
  text.pipe(parser)
  try {
    for await (const { record, info } of parser as AsyncIterable<{ record: Buffer[]; info: { bytes: number } }>) yield { fields: record, bytes: info.bytes }
  } catch (error) {
    if (error instanceof CsvError) throw new UnreadableFileError(`the text is no CSV (${error.code})`)
    throw error
  } finally {
    text.destroy()
    parser.destroy()
  }
}

function toRecord(fields: readonly Buffer[], names: readonly string[], row: number): JsonObject | Error {
  if (fields.length !== names.length) return new Error(`row ${row} has ${fields.length} fields, and there are ${names.length} columns`)
  const record: JsonObject = {}
  for (let index = 0; index < names.length; index++) {
    const value = decode(fields[index]!)
    if (value === null) return new Error(`row ${row} is not UTF-8`)
    setMember(record, names[index]!, value)
  }
  return record
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decode(field: Buffer): string | null {
  try {
    return decoder.decode(field)
  } catch {
    return null
  }
}
