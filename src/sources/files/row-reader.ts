import type { JsonObject, JsonValue, ShapeColumn } from '../../contract/index.ts'
import type { OpenFile } from './folder.ts'
import type { FileOffset } from './state.ts'

export interface FileRow {
  readonly record: JsonObject | InvalidRow
  /** Offset after the row. */
  readonly end: FileOffset
  /** Approximate size. */
  readonly bytes: number
}

/** A row that cannot be read, although the rows after it can. The reason includes the row's number, never a value. */
export class InvalidRow {
  readonly reason: string
  readonly raw: JsonValue

  constructor(reason: string, raw: JsonValue) {
    this.reason = reason
    this.raw = raw
  }
}

/**
 * Reads rows from an offset. Throws UnreadableFileError when the rest of the file cannot be trusted. A format with
 * typed columns calls `onColumns` before the first row.
 */
export type RowReader = (
  file: OpenFile,
  from: FileOffset,
  rowsMax: number,
  onColumns?: (columns: readonly ShapeColumn[]) => void,
) => AsyncIterable<FileRow>

/** The file itself is invalid, and a retry would not help. Messages include the location, never a value. */
export class UnreadableFileError extends Error {
  override readonly name = 'UnreadableFile'
}

/** One row or line is held in memory. */
export const ROW_BYTES_MAX = 16_000_000

/** Defines instead of assigning: a column may be named `__proto__`. */
export function setMember(record: JsonObject, name: string, value: JsonObject[string]): void {
  Object.defineProperty(record, name, { value, writable: true, enumerable: true, configurable: true })
}
