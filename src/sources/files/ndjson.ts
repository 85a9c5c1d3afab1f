import type { JsonObject } from '../../contract/index.ts'
import { parseJson } from '../../values/json.ts'
import { InvalidRow, ROW_BYTES_MAX, UnreadableFileError, type FileRow, type RowReader } from './row-reader.ts'
import { readTextChunks } from './text-stream.ts'

/** One JSON object per line. An invalid line is quarantined by itself. */
export function ndjsonReader(isCompressed: boolean): RowReader {
  return async function* rows(file, from) {
    let { row, offset } = from
    for await (const line of splitLines(readTextChunks(file, isCompressed, offset))) {
      offset += line.length
      const text = decode(offset === line.length ? stripBom(line) : line)
      if (text === '') continue
      row++
      yield {
        record:
          text === null ? new InvalidRow(`row ${row} is not UTF-8`, line.toString('latin1')) : parseRecord(text, row),
        end: { row, offset },
        bytes: line.length,
      } satisfies FileRow
    }
  }
}

/** Yields lines including their line feed. */
async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let parts: Buffer[] = []
  let length = 0
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      const last = chunk.subarray(start, end + 1)
      yield parts.length === 0 ? last : Buffer.concat([...parts, last])
      parts = []
      length = 0
      start = end + 1
    }
    if (start < chunk.length) parts.push(chunk.subarray(start))
    length += chunk.length - start
    if (length > ROW_BYTES_MAX) throw new UnreadableFileError(`a line has more than ${ROW_BYTES_MAX} bytes`)
  }
  if (parts.length > 0) yield Buffer.concat(parts)
}

function parseRecord(text: string, row: number): JsonObject | InvalidRow {
  try {
    const value = parseJson(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? value
      : new InvalidRow(`row ${row} is not a JSON object`, text)
  } catch {
    return new InvalidRow(`row ${row} is not valid JSON`, text)
  }
}

const LINE_FEED = 0x0a
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decode(line: Buffer): string | null {
  try {
    return decoder.decode(line).trim()
  } catch {
    return null
  }
}

function stripBom(line: Buffer): Buffer {
  return line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? line.subarray(3) : line
}
