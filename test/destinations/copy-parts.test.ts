import { expect, test } from 'vitest'
import { encodeCopyData, encodeCopyParts } from '../../src/stores/postgres/copy.ts'

const TYPES = ['text', 'bigint'] as const
const ROWS = Array.from({ length: 1_000 }, (_, n) => [`key ${n}`, n])
/** The signature, the flags and the length of the extension; at the end, no more rows. */
const [HEADER_BYTES, TRAILER_BYTES] = [19, 2]

test('the parts of a COPY have all rows in order, each part complete in itself', () => {
  const whole = encodeCopyData(TYPES, ROWS)
  const parts = [...encodeCopyParts(TYPES, ROWS, 1_000)]
  expect(parts.length).toBeGreaterThan(20)
  expect(Math.max(...parts.map(({ length }) => length))).toBeLessThan(1_100)
  for (const part of parts) {
    expect(part.subarray(0, HEADER_BYTES)).toEqual(whole.subarray(0, HEADER_BYTES))
    expect(part.subarray(-TRAILER_BYTES)).toEqual(whole.subarray(-TRAILER_BYTES))
  }
  const rows = parts.map((part) => part.subarray(HEADER_BYTES, -TRAILER_BYTES))
  expect(Buffer.concat(rows)).toEqual(whole.subarray(HEADER_BYTES, -TRAILER_BYTES))
  expect([...encodeCopyParts(TYPES, [], 1_000)]).toEqual([])
})
