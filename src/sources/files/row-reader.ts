import type { JsonObject, ShapeColumn } from '../../contract/index.ts'
import type { OpenFile } from './folder.ts'
import type { FileOffset } from './state.ts'

export interface FileRow {
  /** An error in place of a row that cannot be read, when those behind it can. */
  readonly record: JsonObject | Error
  /** Behind it. */
  readonly end: FileOffset
  /** About. */
  readonly bytes: number
}

/**
 * Reads rows from a place on. Throws UnreadableFileError when what follows cannot be trusted. A format that tells the types of its
 * columns calls `onColumns` before the first row.
 */
export type RowReader = (file: OpenFile, from: FileOffset, rowsMax: number, onColumns?: (columns: readonly ShapeColumn[]) => void) => AsyncIterable<FileRow>

/** The file itself is at fault, and reading it again would not help. Messages name the place, never a value. */
export class UnreadableFileError extends Error {
  override readonly name = 'UnreadableFile'
}

/** One row, or one line, is held in memory. */
export const ROW_BYTES_MAX = 16_000_000

/** Not an assignment: a column may be called `__proto__`. */
export function setMember(record: JsonObject, name: string, value: JsonObject[string]): void {
  Object.defineProperty(record, name, { value, writable: true, enumerable: true, configurable: true })
}
