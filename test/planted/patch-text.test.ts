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

test('code may begin or end within a text', () => {
  expect(patchText("run(\n  'select ? limit ?',\n  a,\n)", "limit ?', a", "limit 2', b")).toBe(
    "run(\n  'select ? limit 2', b,\n)",
  )
})

test('comments between the tokens do not count', () => {
  expect(patchText('if (a) {\n  // why\n  b()\n}', 'if (a) { b() }', 'b()')).toBe('b()')
})

test('a patch still applies after a rename, and uses the new names', () => {
  const source = 'if (lease.epoch !== current.epoch) return null\nif (lease.isOver) return null'
  expect(patchText(source, 'if (claim.epoch !== current.epoch) return null', 'if (claim.isFree) return current')).toBe(
    'if (lease.isFree) return current\nif (lease.isOver) return null',
  )
  expect(patchText('a.store(row)', 'a.save(record)', 'a.save(null)')).toBe('a.store(null)')
})

test('code with other names throughout, with one name for two, or with more renames is not the same', () => {
  expect(findCode('c + d', 'a + b')).toEqual([])
  expect(findCode('f(a, a)', 'f(a, b)')).toEqual([])
  expect(findCode('f(b, b)', 'f(a, b)')).toEqual([])
  expect(findCode('f(x, y, z)', 'f(a, b, c)')).toEqual([])
  expect(findCode('if (a) return', 'for (a) return')).toEqual([])
})

test('a text or a number that differs is not a rename', () => {
  expect(findCode("f('b', 1)", "f('a', 1)")).toEqual([])
  expect(findCode("f('a', 2)", "f('a', 1)")).toEqual([])
})
