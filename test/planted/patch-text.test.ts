import { expect, test } from 'vitest'
import { findCode, patchText } from './patch-text.ts'

test('a patch applies to code whose lines were wrapped', () => {
  const source = 'const a = call(\n  first,\n  { b: 1, c: 2 },\n)\n'
  expect(patchText(source, 'call(first, { b: 1, c: 2 })', 'null')).toBe('const a = null\n')
})

test('code that occurs twice, or nowhere, is refused', () => {
  expect(() => patchText('x = 1; x = 1', 'x = 1', 'x = 2')).toThrow('it occurs 2 times')
  expect(() => patchText('x = 1', 'y = 1', 'y = 2')).toThrow('it occurs 0 times')
})

test('words are not joined or split by the match', () => {
  expect(findCode('return value', 'return value')).toHaveLength(1)
  expect(findCode('returnvalue', 'return value')).toHaveLength(0)
})
