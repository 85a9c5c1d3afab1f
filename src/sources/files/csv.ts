import { Readable } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import type { JsonObject } from '../../contract/index.ts'
import type { OpenFile } from './folder.ts'
import {
  InvalidRow,
  ROW_BYTES_MAX,
  setMember,
  UnreadableFileError,
  type FileRow,
  type RowReader,
} from './row-reader.ts'
import { readTextChunks } from './text-stream.ts'

/** The format of CSV files. */
export interface CsvOptions {
  /** A comma by default; a tab for `.tsv` files. */
  readonly delimiter?: string
  /** Column names, for files without a header line. */
  readonly columns?: readonly string[]
}

/** Values stay strings. */
export function csvReader(isCompressed: boolean, { delimiter = ',', columns }: CsvOptions): RowReader {
  return async function* rows(file, from) {
    const header =
      columns === undefined ? await readHeader(file, isCompressed, delimiter) : { names: columns, offset: 0 }
    if (header === null) return
    const { names } = header
    let { row } = from
    const start = row === 0 ? header.offset : from.offset
    for await (const { fields, bytes } of readRecords(file, isCompressed, delimiter, start)) {
      row++
      const end = { row, offset: start + bytes }
      yield {
        record: toRecord(fields, names, row),
        end,
        bytes: fields.reduce((sum, field) => sum + field.length, 0),
      } satisfies FileRow
    }
  }
}

async function readHeader(
  file: OpenFile,
  isCompressed: boolean,
  delimiter: string,
): Promise<{ names: string[]; offset: number } | null> {
  for await (const { fields, bytes } of readRecords(file, isCompressed, delimiter, 0)) {
    const names = fields.map((field) => decode(field))
    if (names.some((name) => name === null || name === ''))
      throw new UnreadableFileError('the first line does not name every column')
    if (new Set(names).size !== names.length) throw new UnreadableFileError('the first line names a column twice')
    return { names: names as string[], offset: bytes }
  }
  return null
}

/** `bytes` counts from the start to the end of the record. */
async function* readRecords(
  file: OpenFile,
  isCompressed: boolean,
  delimiter: string,
  start: number,
): AsyncGenerator<{ fields: Buffer[]; bytes: number }> {
  const text = Readable.from(readTextChunks(file, isCompressed, start))
  // Fields are read as bytes: invalid UTF-8 would otherwise be replaced silently.
  const parser = parse({
    bom: start === 0,
    delimiter,
    encoding: null,
    info: true,
    max_record_size: ROW_BYTES_MAX,
    relax_column_count: true,
    skip_empty_lines: true,
  })
  text.once('error', (error) => parser.destroy(error))
  text.pipe(parser)
  try {
    for await (const { record, info } of parser as AsyncIterable<{ record: Buffer[]; info: { bytes: number } }>)
      yield { fields: record, bytes: info.bytes }
  } catch (error) {
    if (error instanceof CsvError) throw new UnreadableFileError(`the file is not valid CSV (${error.code})`)
    throw error
  } finally {
    text.destroy()
    parser.destroy()
  }
}

function toRecord(fields: readonly Buffer[], names: readonly string[], row: number): JsonObject | InvalidRow {
  const invalid = (reason: string): InvalidRow =>
    new InvalidRow(
      `row ${row} ${reason}`,
      fields.map((field) => decode(field) ?? field.toString('latin1')),
    )
  if (fields.length !== names.length)
    return invalid(`has ${fields.length} fields, but there are ${names.length} columns`)
  const record: JsonObject = {}
  for (const [index, name] of names.entries()) {
    const field = fields[index]
    const value = field === undefined ? null : decode(field)
    if (value === null) return invalid('is not UTF-8')
    setMember(record, name, value)
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
