import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonValue } from '../../src/contract/index.ts'
import { parseJson, equalsJson, stringifyJson } from '../../src/values/json.ts'

const SAFE = BigInt(Number.MAX_SAFE_INTEGER)

/** Any JSON value inside the engine: an integer that a double cannot hold is a bigint. */
const leaf = fc.oneof(
  fc.constant(null),
  fc.boolean(),
  fc.string({ unit: 'binary' }),
  fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .filter((number) => !Number.isInteger(number) || Number.isSafeInteger(number)),
  fc.constantFrom(0, -0),
  fc.integer(),
  fc.bigInt({ min: SAFE + 1n, max: 10n ** 40n }),
  fc.bigInt({ min: -(10n ** 40n), max: -SAFE - 1n }),
)
const name = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('__proto__', 'constructor', 'toString', 'hasOwnProperty', '', 'a"b', 'a\\'),
)
const { json } = fc.letrec<{ json: JsonValue; array: JsonValue[]; object: JsonValue }>((tie) => ({
  json: fc.oneof({ maxDepth: 5, withCrossShrink: true }, leaf, tie('array'), tie('object')),
  array: fc.array(tie('json'), { maxLength: 5 }),
  object: fc.array(fc.tuple(name, tie('json')), { maxLength: 5 }).map((members) => Object.fromEntries(members)),
}))

describe('JSON', () => {
  test('XD17 Z41 any value survives the round trip', () => {
    fc.assert(
      fc.property(json, (value) => {
        const back = parseJson(stringifyJson(value))
        expect(isDeepStrictEqual(back, value)).toBe(true)
        expect(stringifyJson(back)).toBe(stringifyJson(value))
      }),
    )
  })

  test('XD17 a negative zero is another value than zero', () => {
    expect(stringifyJson({ a: 0, b: [-0, { c: -0 }], d: '-0' })).toBe('{"a":0,"b":[-0,{"c":-0}],"d":"-0"}')
    expect(stringifyJson(-0)).toBe('-0')
    expect(equalsJson('{"a":-0}', '{"a":0}')).toBe(false)
  })

  test('is parsed alike by the fast and the lossless parser', () => {
    fc.assert(
      fc.property(json, fc.constantFrom(undefined, 1, '\t'), (value, space) => {
        const text = stringifyJson(value)
        const careful = parseJson(text, { onDuplicate: () => {} })
        expect(isDeepStrictEqual(careful, parseJson(text))).toBe(true)
        if (/\d{16}/.test(text)) return
        const spaced = JSON.stringify(JSON.parse(text), null, space)
        expect(isDeepStrictEqual(parseJson(spaced, { onDuplicate: () => {} }), JSON.parse(spaced))).toBe(true)
      }),
    )
  })

  test('is rejected exactly where JSON.parse rejects it, with the same message', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          json.map((value) => stringifyJson(value).slice(1)),
          fc.stringMatching(/^[[\]{}",:0-9.eE+\-truefalsn \\]{0,20}$/),
        ),
        (text) => {
          const outcome = (parse: (text: string) => unknown): string => {
            try {
              parse(text)
              return 'accepted'
            } catch (error) {
              return (error as Error).message
            }
          }
          expect(outcome((text) => parseJson(text, { onDuplicate: () => {} }))).toBe(outcome(JSON.parse))
        },
      ),
    )
  })

  test.each<[string, JsonValue]>([
    ['9007199254740991', 9007199254740991],
    ['9007199254740992', 9007199254740992n],
    ['9007199254740993', 9007199254740993n],
    ['-9007199254740993', -9007199254740993n],
    ['123456789012345678901234567890', 123456789012345678901234567890n],
    ['1e400', Number.POSITIVE_INFINITY],
    ['1e20', 1e20],
    ['0.12345678901234567890', 0.12345678901234568],
    ['"9007199254740993"', '9007199254740993'],
    ['[9007199254740993,1]', [9007199254740993n, 1]],
    ['-0', -0],
    [' { "a" : 9007199254740993 } ', { a: 9007199254740993n }],
    ['{"1234567890123456789":"\\u00e9\\"\\\\"}', { '1234567890123456789': 'é"\\' }],
  ])('XD17 %s keeps every digit', (text, value) => {
    expect(parseJson(text)).toStrictEqual(value)
  })

  test('XD22 a field named __proto__ is an ordinary field in both parsers, and sets no prototype', () => {
    for (const text of ['{"__proto__":{"a":1}}', '{"__proto__":{"a":1234567890123456789}}']) {
      const value = parseJson(text) as object
      expect(Object.keys(value)).toEqual(['__proto__'])
      expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
      expect((value as { a?: unknown }).a).toBeUndefined()
      expect(stringifyJson(value as JsonValue)).toBe(text)
    }
  })

  test('XD14 each duplicate field is reported, at every depth, and the last one wins', () => {
    const twice: string[] = []
    const value = parseJson('{"a":1,"a":2,"b":[{"c":1,"c":{"d":1,"d":2}}],"a":3,"__proto__":1,"__proto__":2}', {
      onDuplicate: (name) => twice.push(name),
    })
    expect(twice).toEqual(['a', 'c', 'd', 'a', '__proto__'])
    expect(stringifyJson(value)).toBe('{"a":3,"b":[{"c":{"d":2}}],"__proto__":2}')
  })

  test('XD14 names that are equal after unescaping are the same name, and equal names in two objects are not duplicates', () => {
    const twice: string[] = []
    parseJson('{"a":{"x":1},"b":{"x":1},"\\u0061":2}', { onDuplicate: (name) => twice.push(name) })
    expect(twice).toEqual(['a'])
  })

  test('a bigint beside values that JSON omits is written like JSON writes it', () => {
    const value = {
      big: 2n ** 64n,
      none: undefined,
      list: [undefined, 1n],
      at: new Date(0),
      fraction: 0.5,
      text: '\u2028"',
    }
    expect(stringifyJson(value as never)).toBe(
      '{"big":18446744073709551616,"list":[null,1],"at":"1970-01-01T00:00:00.000Z","fraction":0.5,"text":"\u2028\\""}',
    )
  })

  test('circular values are rejected, with a bigint inside too', () => {
    const loop: Record<string, unknown> = {}
    loop['self'] = loop
    expect(() => stringifyJson(loop as JsonValue)).toThrow()
    expect(() => stringifyJson({ big: 1n, loop } as unknown as JsonValue)).toThrow()
  })
})

describe('sameJson', () => {
  const shuffled = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return value.map(shuffled)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        .toReversed()
        .map(([name, member]) => [name, shuffled(member!)]),
    )
  }

  test('ignores the order of fields, at any depth', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(equalsJson(stringifyJson(value), stringifyJson(shuffled(value)))).toBe(true)
      }),
    )
  })

  test('holds for two values exactly when they are equal', () => {
    fc.assert(
      fc.property(json, json, (a, b) => {
        const equal = stringifyJson(inOrder(a)) === stringifyJson(inOrder(b))
        expect(equalsJson(stringifyJson(a), stringifyJson(b))).toBe(equal)
      }),
    )
  })

  test.each([
    ['1', '1.0', true],
    ['{"a":1,"b":2}', '{"b":2,"a":1}', true],
    ['[1,2]', '[2,1]', false],
    ['{"a":1}', '{"a":1,"b":null}', false],
    ['{"a":null}', '{"b":null}', false],
    ['{}', '[]', false],
    ['null', '{}', false],
    ['"1"', '1', false],
    ['{"a":{"length":0}}', '{"a":[]}', false],
    ['9007199254740992', '9007199254740993', false],
    ['9007199254740993', '9007199254740993 ', true],
    ['{"__proto__":1}', '{}', false],
    ['{"__proto__":{}}', '{"x":1}', false],
    ['{"toString":1}', '{"valueOf":1}', false],
    ['[1]', '[1,null]', false],
  ])('of %s and %s is %s', (a, b, same) => {
    expect(equalsJson(a, b)).toBe(same)
    expect(equalsJson(b, a)).toBe(same)
  })

  /** With fields in a canonical order, as an unambiguous list. */
  function inOrder(value: JsonValue): JsonValue {
    if (Array.isArray(value)) return ['array', ...value.map(inOrder)]
    if (typeof value !== 'object' || value === null) return value
    const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
    return ['object', ...members.map(([name, member]): JsonValue => [name, inOrder(member!)])]
  }
})
