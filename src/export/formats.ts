import { closeSync, openSync, writeSync } from 'node:fs'
import { ParquetWriter, fileWriter } from 'hyparquet-writer'
import { toCell, type CellType, type ExportColumn, type ExportItem } from './columns.ts'

export const EXPORT_FORMATS = ['parquet', 'csv', 'ndjson'] as const
export type ExportFormat = (typeof EXPORT_FORMATS)[number]

/** Writes items page by page. All items are in the file after `finish`. */
export interface ItemWriter {
  write(items: readonly ExportItem[]): void
  finish(): void
}

export function openWriter(format: ExportFormat, file: string, columns: readonly ExportColumn[]): ItemWriter {
  switch (format) {
    case 'parquet':
      return openParquetWriter(file, columns)
    case 'csv':
    case 'ndjson':
      return openLineWriter(file, lineFormatOf(format, columns))
    default:
      return format satisfies never
  }
}

/** A file with a line per item. */
export interface LineFormat {
  readonly head: string
  lineOf(item: ExportItem): string
}

export function lineFormatOf(format: 'csv' | 'ndjson', columns: readonly ExportColumn[]): LineFormat {
  return format === 'ndjson'
    ? { head: '', lineOf: formatJsonLine }
    : {
        head: `${columns.map(({ name }) => quoteCsv(name)).join(',')}\n`,
        lineOf: (item) => columns.map((column) => formatCsvCell(column, item)).join(','),
      }
}

function openLineWriter(file: string, { head, lineOf }: LineFormat): ItemWriter {
  const descriptor = openSync(file, 'w')
  writeSync(descriptor, head)
  return {
    write: (items) => writeAll(descriptor, Buffer.from(items.map((item) => `${lineOf(item)}\n`).join(''))),
    finish: () => closeSync(descriptor),
  }
}

function writeAll(descriptor: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length;) at += writeSync(descriptor, bytes, at)
}

/** Copies the JSON text of the record, so that its numbers are not parsed. */
function formatJsonLine({ database, key, action, sequence, committedAt, upstreamAt, text }: ExportItem): string {
  const envelope = JSON.stringify({
    _key: key,
    _action: action,
    _sequence: sequence,
    _committed_at: formatInstant(committedAt),
    _upstream_at: upstreamAt,
    _database: database,
  })
  return `${envelope.slice(0, -1)},"record":${text ?? 'null'}}`
}

// ── CSV ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** An empty cell is null; an empty string is a pair of quotes. */
function formatCsvCell(column: ExportColumn, item: ExportItem): string {
  const cell = toCell(column, item)
  if (cell === null) return ''
  if (column.type === 'instant') return formatInstant(cell as number)
  return typeof cell === 'string' ? quoteCsv(cell) : String(cell)
}

function quoteCsv(text: string): string {
  return `"${text.replaceAll('"', '""')}"`
}

function formatInstant(ms: number): string {
  return new Date(ms).toISOString()
}

// ── Parquet ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The rows of one row group, which are held in memory. */
const ROW_GROUP_SIZE = 20_000

const PARQUET_TYPES = {
  boolean: { type: 'BOOLEAN' },
  double: { type: 'DOUBLE' },
  instant: { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' },
  integer: { type: 'INT64' },
  json: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
} as const satisfies Record<CellType, object>

function openParquetWriter(file: string, columns: readonly ExportColumn[]): ItemWriter {
  const schema = [
    { name: 'root', num_children: columns.length },
    ...columns.map(({ name, type }) => ({ name, repetition_type: 'OPTIONAL' as const, ...PARQUET_TYPES[type] })),
  ]
  const parquet = new ParquetWriter({ writer: fileWriter(file), schema, statistics: true })
  let pending: ExportItem[] = []
  const flush = (): void => {
    if (pending.length === 0) return
    const group = pending
    pending = []
    void parquet.write({
      rowGroupSize: group.length,
      columnData: columns.map((column) => ({
        name: column.name,
        data: group.map((item) => toParquetCell(column, item)),
      })),
    })
  }
  return {
    write: (items) => {
      pending.push(...items)
      if (pending.length >= ROW_GROUP_SIZE) flush()
    },
    finish: () => {
      flush()
      void parquet.finish()
    },
  }
}

function toParquetCell(column: ExportColumn, item: ExportItem): unknown {
  const cell = toCell(column, item)
  return column.type === 'instant' && cell !== null ? new Date(cell as number) : cell
}
