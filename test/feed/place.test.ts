import { expect, test } from 'vitest'
import { decodeCursor, encodeCursor } from '../../src/feed/feed-cursor.ts'
import { CursorCipher } from '../../src/feed/cursor-cipher.ts'

const NOW = Date.UTC(2026, 0, 1)
const PLACE = { endpoint: 'changes', databases: null, sequence: 7, committedAt: NOW, floor: 0 } as const

test('AX1 F16 a cursor of an unknown version is rejected with the way to recover', () => {
  const seal = new CursorCipher(['secret'])
  expect(() =>
    decodeCursor(seal, seal.encrypt(JSON.stringify([2, 'changes', null, 7, NOW, 0, NOW / 60_000])), NOW),
  ).toThrow(
    expect.objectContaining({
      reason: 'cursor_unsupported',
      restart: 'updatedSince',
      message: expect.stringMatching(/version 2.*version 1.*updatedSince/),
    }),
  )
})

test('Z25 a position keeps one opaque cursor for a while, and every other position has another', () => {
  const seal = new CursorCipher(['secret'])
  const cursor = encodeCursor(seal, PLACE, NOW)
  expect(encodeCursor(seal, PLACE, NOW + 59_999)).toBe(cursor)
  expect(decodeCursor(seal, cursor, NOW)).toEqual({ ...PLACE, issuedAt: NOW })
  const others = Array.from({ length: 200 }, (_, n) => encodeCursor(seal, { ...PLACE, sequence: 8 + n }, NOW))
  expect(new Set([cursor, ...others]).size).toBe(201)
  // Two adjacent cursors differ in half of their bits, as random texts do.
  const bits = others
    .slice(1)
    .map((text, n) => differing(Buffer.from(text, 'base64url'), Buffer.from(others[n]!, 'base64url')))
  for (const share of bits) expect(share).toBeGreaterThan(0.3)
})

test('Z26 Z28 a secret of another tenant decrypts nothing; an earlier one of the same tenant still does', () => {
  const cursor = encodeCursor(new CursorCipher(['old']), PLACE, NOW)
  expect(decodeCursor(new CursorCipher(['new', 'old']), cursor, NOW).sequence).toBe(7)
  for (const secrets of [['new'], ['Old'], ['old ']])
    expect(() => decodeCursor(new CursorCipher(secrets), cursor, NOW)).toThrow(
      expect.objectContaining({ reason: 'cursor_invalid' }),
    )
})

function differing(a: Buffer, b: Buffer): number {
  const length = Math.min(a.length, b.length)
  let count = 0
  for (let at = 0; at < length; at++) for (let bits = a[at]! ^ b[at]!; bits > 0; bits >>= 1) count += bits & 1
  return count / (length * 8)
}
