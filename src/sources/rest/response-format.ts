import { parse } from 'csv-parse/sync'
import { SyncError, type JsonObject, type JsonValue } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import type { ResponseFormat } from '../kit/http-client.ts'
import { parseXml } from '../kit/xml.ts'

/** The format of a response. A gzip file is decompressed in every format. */
export type DecodeRule = 'json' | 'ndjson' | 'csv' | 'xml' | CsvRule

/** A response in CSV, one record per line. */
export interface CsvRule {
  readonly kind: 'csv'
  /** A comma by default. */
  readonly delimiter?: string
  /** Column names, for a table without a header line. */
  readonly columns?: readonly string[]
}

/** The reader of a format; undefined for JSON with its content type, which needs none. */
export function createFormat(rule: DecodeRule | undefined): ResponseFormat | undefined {
  if (rule === undefined) return undefined
  if (typeof rule === 'object') return csvFormat(rule)
  switch (rule) {
    case 'json':
      return { accept: 'application/json', parse: (bytes) => parseJson(decodeText(bytes)) }
    case 'ndjson':
      return { accept: 'application/x-ndjson', parse: (bytes) => parseLines(decodeText(bytes)) }
    case 'csv':
      return csvFormat({ kind: 'csv' })
    case 'xml':
      return { accept: 'application/xml', parse: (bytes) => parseXml(decodeText(bytes)) }
    default:
      throw rule satisfies never
  }
}

function decodeText(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
}

/** An invalid line fails the page: a record that is left out would be deleted by the sweep. */
function parseLines(text: string): JsonValue {
  return text.split('\n').flatMap((line, index) => {
    if (line.trim() === '') return []
    try {
      return [parseJson(line)]
    } catch {
      throw new SyncError('SOURCE_INVALID', `line ${index + 1} is not valid JSON.`)
    }
  })
}

function csvFormat({ delimiter = ',', columns }: CsvRule): ResponseFormat {
  return {
    accept: 'text/csv',
    parse(bytes) {
      decodeText(bytes)
      let rows: string[][]
      try {
        rows = parse(Buffer.from(bytes), { bom: true, delimiter, relax_column_count: true, skip_empty_lines: true })
      } catch {
        throw new SyncError('SOURCE_INVALID', 'it is not valid CSV.')
      }
      return toRecords(rows, columns)
    },
  }
}

/** A table without a header line is an error, not an empty table: a sweep would delete every row. */
function toRecords(rows: readonly string[][], columns: readonly string[] | undefined): JsonValue {
  const names = columns ?? rows[0]
  if (names === undefined) throw new SyncError('SOURCE_INVALID', 'the CSV has no header line.')
  if (new Set(names).size !== names.length || names.includes(''))
    throw new SyncError('SOURCE_INVALID', 'the CSV names a column twice or not at all.')
  return rows.slice(columns === undefined ? 1 : 0).map((row, index) => {
    if (row.length !== names.length)
      throw new SyncError(
        'SOURCE_INVALID',
        `row ${index + 1} of the CSV has ${row.length} fields instead of ${names.length}.`,
      )
    return Object.fromEntries(names.map((name, column) => [name, row[column]])) as JsonObject
  })
}
