import { gunzipSync } from 'node:zlib'
import { parse as parseCsv } from 'csv-parse/sync'
import { SyncError, type JsonObject, type JsonValue } from '../../../contract/index.ts'
import { parseJson } from '../../../values/json.ts'
import { isComponent, textOf, type Component } from '../manifest/component.ts'
import { parseXml } from '../../kit/xml.ts'

const BYTES_MAX = 64 * 1024 * 1024

/** The bodies that a decoder finds in a response: one for JSON and XML, one per line or row for the others. */
export function decodeBody(bytes: Buffer, decoder: Component | null, label: string): JsonValue[] {
  try {
    return decode(bytes, decoder)
  } catch {
    // Without the cause: it quotes the body.
    throw new SyncError(
      'SOURCE_INVALID',
      `${label} with ${bytes.length} bytes that ${decoder?.type ?? 'JsonDecoder'} cannot read.`,
    )
  }
}

function decode(bytes: Buffer, decoder: Component | null): JsonValue[] {
  switch (decoder?.type) {
    case 'GzipDecoder': {
      const isGzip = bytes[0] === 0x1f && bytes[1] === 0x8b
      const inner = isComponent(decoder.decoder) ? decoder.decoder : null
      return decode(isGzip ? gunzipSync(bytes, { maxOutputLength: BYTES_MAX }) : bytes, inner)
    }
    case 'JsonlDecoder':
    case 'JsonlParser':
      return lines(bytes).map((line) => parseJson(line))
    case 'IterableDecoder':
      return lines(bytes).map((line) => ({ record: line }))
    case 'CsvDecoder':
    case 'CsvParser':
      return decodeCsv(bytes, decoder)
    case 'XmlDecoder':
      return [parseXml(text(bytes), { empty: null })]
    default:
      return bytes.length === 0 ? [{}] : [parseJson(text(bytes))]
  }
}

function text(bytes: Buffer): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
}

function lines(bytes: Buffer): string[] {
  return text(bytes)
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
}

function decodeCsv(bytes: Buffer, { delimiter, encoding, skip_rows_before: skip }: Component): JsonValue[] {
  const separator = (textOf(delimiter) ?? ',').replace(/^\\t$/, '\t')
  const name = textOf(encoding) ?? 'utf-8'
  const content = new TextDecoder(name === 'utf-8-sig' ? 'utf-8' : name).decode(bytes)
  const rows: unknown = parseCsv(content, {
    columns: true,
    delimiter: separator,
    bom: true,
    relax_column_count: true,
    skip_empty_lines: true,
    from_line: typeof skip === 'number' ? skip + 1 : 1,
  })
  return rows as JsonObject[]
}
