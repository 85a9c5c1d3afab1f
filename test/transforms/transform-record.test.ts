import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/contract/index.ts'
import { createTemporaryCipher } from '../../src/registry/column-cipher.ts'
import { planColumns, type ColumnRules } from '../../src/transforms/column-rules.ts'
import { TransformError, transformRecord } from '../../src/transforms/transform-record.ts'

const cipher = createTemporaryCipher('default', randomBytes)

function apply(rules: ColumnRules, record: unknown, key = 'k', using = cipher): JsonObject {
  const plan = planColumns(rules)
  if (plan === null) return record as JsonObject
  return transformRecord(plan, record, { database: 'people', key, cipher: using }).record
}

function refusal(rules: ColumnRules, record: unknown): TransformError {
  try {
    apply(rules, record)
  } catch (error) {
    if (error instanceof TransformError) return error
    throw error
  }
  throw new Error('the rules were applied')
}

describe('a record', () => {
  test.each<[string, ColumnRules, JsonObject, JsonObject]>([
    [
      'select keeps fields and parts of them',
      { select: ['a', 'b.c'] },
      { a: 1, b: { c: 2, d: 3 }, e: 4 },
      { a: 1, b: { c: 2 } },
    ],
    [
      'select leads through lists',
      { select: ['l.x'] },
      { l: [{ x: 1, y: 2 }, null, { y: 3 }] },
      { l: [{ x: 1 }, null, {}] },
    ],
    ['select drops a value in place of an object', { select: ['b.c'] }, { b: 'text' }, {}],
    [
      'drop removes fields',
      { drop: ['a', 'b.c', 'l.x'] },
      { a: 1, b: { c: 2, d: 3 }, l: [{ x: 1 }] },
      { b: { d: 3 }, l: [{}] },
    ],
    ['a name with a dot is a path too', { drop: ['a.b'] }, { 'a.b': 1, a: { b: 2, c: 3 } }, { a: { c: 3 } }],
    [
      'rename moves fields',
      { rename: { a: 'b', b: 'a', 'c.d': 'd' } },
      { a: 1, b: 2, c: { d: 3 } },
      { b: 1, a: 2, c: {}, d: 3 },
    ],
    ['rename moves fields into objects', { rename: { a: 'o.a' } }, { a: 1, o: { b: 2 } }, { o: { a: 1, b: 2 } }],
    ['rename leaves a record without the field', { rename: { a: 'b' } }, { b: 1 }, { b: 1 }],
    [
      'mask keeps the last characters',
      { mask: { a: 2, b: 2, c: 2, d: 0, e: 'x' } },
      { a: 'abcd', b: 'ab', c: 12345, d: 'abc', e: { f: 1 } },
      { a: '****cd', b: '****', c: '****45', d: '****', e: 'x' },
    ],
    ['mask counts characters', { mask: { a: 1 } }, { a: 'ab😀' }, { a: '****😀' }],
    [
      'null and absent stay',
      { mask: { a: 1 }, hash: ['b'], encrypt: ['c'] },
      { a: null, b: null },
      { a: null, b: null },
    ],
    [
      'map runs first',
      { map: { version: 1, apply: ({ a }) => ({ domain: String(a).split('@')[1], a }) }, drop: ['a'] },
      { a: 'x@y.z' },
      { domain: 'y.z' },
    ],
    [
      '__proto__ is an ordinary field',
      { drop: ['a'] },
      JSON.parse('{"a":1,"__proto__":{"b":2}}') as JsonObject,
      JSON.parse('{"__proto__":{"b":2}}') as JsonObject,
    ],
  ])('%s', (_, rules, record, expected) => {
    const before = structuredClone(record)
    const result = apply(rules, record)
    expect(JSON.parse(JSON.stringify(result))).toEqual(JSON.parse(JSON.stringify(expected)))
    expect(Object.keys(result).toSorted((a, b) => (a < b ? -1 : 1))).toEqual(
      Object.keys(expected).toSorted((a, b) => (a < b ? -1 : 1)),
    )
    expect(record).toEqual(before)
  })

  test('hashes are equal for equal values, whatever the field, and a number has the hash of its text', () => {
    const { a, b, c, d } = apply({ hash: ['a', 'b', 'c', 'd'] }, { a: 'x', b: 'x', c: 12, d: '12' })
    expect([a === b, c === d, a === c]).toEqual([true, true, false])
  })

  test('a ciphertext opens only as it was written: same tenant, key, database and field', () => {
    const sealed = String(apply({ encrypt: ['a'] }, { a: { n: 1n } }, 'k1')['a'])
    expect(cipher.decrypt(sealed)).toEqual({ database: 'people', field: 'a', text: '{"n":1}' })
    expect(cipher.decrypt(String(apply({ encrypt: ['a'], rename: { a: 'b' } }, { a: 1 })['b']))?.field).toBe('b')
    expect(apply({ encrypt: ['a'] }, { a: { n: 1n } }, 'k1')['a']).toBe(sealed)
    expect(apply({ encrypt: ['a'] }, { a: { n: 1n } }, 'k2')['a']).not.toBe(sealed)
    const [prefix, format, id, , body] = sealed.split('.')
    const moved = Buffer.from(JSON.stringify(['people', 'salary'])).toString('base64url')
    expect(cipher.decrypt([prefix, format, id, moved, body].join('.'))).toBeNull()
    expect(cipher.decrypt(`${sealed.slice(0, -2)}AA`)).toBeNull()
    expect(createTemporaryCipher('default', randomBytes).decrypt(sealed)).toBeNull()
    const sameKey = (tenant: string) => createTemporaryCipher(tenant, (bytes) => Buffer.alloc(bytes, 7))
    const theirs = String(apply({ encrypt: ['a'] }, { a: 1 }, 'k', sameKey('acme'))['a'])
    expect([sameKey('acme').decrypt(theirs) === null, sameKey('other').decrypt(theirs)]).toEqual([false, null])
  })

  test('rules that cannot be applied refuse the record, without the values that they hide', () => {
    expect(refusal({ hash: ['address.city'], drop: ['s'] }, { address: 'Weg 1, Kiel', s: 1, n: 2 })).toMatchObject({
      message: 'the field address is not an object, so a rule for what it contains cannot be applied',
      rest: null,
    })
    expect(refusal({ rename: { a: 'b' }, hash: ['s'] }, { a: 1, b: 2, s: 'secret' })).toMatchObject({
      message: '`rename` to b: the record has a field of that name',
      rest: { a: 1, b: 2 },
    })
    expect(refusal({ rename: { a: 'b.c' } }, { a: 1, b: 2 }).message).toBe(
      '`rename` to b.c: the field b is not an object',
    )
    expect(refusal({ hash: ['a'] }, { a: Infinity }).message).toBe('the field a is not JSON')
    expect(refusal({ drop: ['a'] }, ['secret']).message).toBe('the record is not an object')
    const map = (apply: () => unknown): ColumnRules => ({ map: { version: 'v2', apply: apply as () => JsonObject } })
    const thrown = refusal(
      map(() => {
        throw new Error('secret')
      }),
      { a: 1 },
    )
    expect(thrown.message).toMatch(/^the function of `map` \(version v2\) failed at transform-record\.test\.ts:\d+$/)
    expect(thrown.rest).toBeNull()
    for (const result of [null, [], 'x', Promise.resolve({})])
      expect(
        refusal(
          map(() => result),
          { a: 1 },
        ).message,
      ).toBe('the function of `map` (version v2) did not return an object')
  })
})

describe('select, drop and rename', () => {
  const name: fc.Arbitrary<string> = fc.constantFrom('a', 'b', 'c', 'd')
  const leaf = fc.oneof(fc.integer(), fc.string(), fc.constant(null))
  const record = fc.dictionary(name, fc.oneof(leaf, fc.dictionary(name, leaf))) as fc.Arbitrary<JsonObject>

  test('compose as documented: select, then drop, then rename', () => {
    fc.assert(
      fc.property(record, fc.uniqueArray(name, { minLength: 1 }), fc.uniqueArray(name), (given, select, order) => {
        const drop = select.slice(1, 2)
        const kept = select.filter((field) => !drop.includes(field))
        const rename = Object.fromEntries(
          kept.filter((field) => order.includes(field)).map((field) => [field, `${field}2`]),
        )
        const together = apply({ select, ...(drop.length > 0 && { drop }), rename }, given)
        const steps = apply({ rename }, apply(drop.length > 0 ? { drop } : {}, apply({ select }, given)))
        expect(together).toEqual(steps)
        expect(together).toEqual(
          Object.fromEntries(
            Object.entries(given)
              .filter(([field]) => kept.includes(field))
              .map(([field, value]) => [rename[field] ?? field, value]),
          ),
        )
      }),
    )
  })

  test('a nested field is dropped or kept like a field, and select with every field changes nothing', () => {
    fc.assert(
      fc.property(record, name, name, (given, outer, inner) => {
        expect(apply({ select: ['a', 'b', 'c', 'd'] }, given)).toEqual(given)
        const nested = given[outer]
        if (typeof nested !== 'object' || nested === null || Array.isArray(nested)) return
        const { [inner]: value, ...rest } = nested
        expect(apply({ drop: [`${outer}.${inner}`] }, given)).toEqual({ ...given, [outer]: rest })
        expect(apply({ select: [`${outer}.${inner}`] }, given)).toEqual({
          [outer]: value === undefined ? {} : { [inner]: value },
        })
      }),
    )
  })
})
