import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '../../src/contract/index.ts'
import { createTemporaryCipher } from '../../src/registry/column-cipher.ts'
import { findColumnRuleFault } from '../../src/transforms/check-column-rules.ts'
import { parseFingerprint, planColumns, type ColumnPlan, type ColumnRules } from '../../src/transforms/column-rules.ts'
import { planConversion, undoRenames, type Conversion } from '../../src/transforms/plan-conversion.ts'
import { TransformError, transformRecord } from '../../src/transforms/transform-record.ts'
import { required } from '../../src/values/required.ts'
import { seededRandom } from '../../src/testing/store-cases/harness.ts'

const cipher = createTemporaryCipher('acme', randomBytes)
const apply = (plan: ColumnPlan | null, record: JsonObject): JsonObject =>
  plan === null ? record : transformRecord(plan, record, { database: 'people', key: 'k', cipher }).record

function plan(from: ColumnRules, to: ColumnRules): Conversion {
  return planConversion(required(parseFingerprint(planColumns(from)?.fingerprint ?? ''), 'the rules'), planColumns(to))
}

describe('a conversion of stored records', () => {
  test.each<[string, ColumnRules, ColumnRules, string]>([
    ['the same rules', { drop: ['a'] }, { drop: ['a'] }, 'same'],
    ['more fields go', { drop: ['a'] }, { drop: ['a', 'b'], hash: ['c'] }, 'convert'],
    ['a removed field is wanted', { drop: ['a'] }, {}, 'a was removed by `drop`'],
    ['a removed field is not selected', { drop: ['a'] }, { select: ['b'] }, 'convert'],
    ['fewer fields are selected', { select: ['a', 'b'] }, { select: ['a'] }, 'convert'],
    ['another field is selected', { select: ['a'] }, { select: ['a', 'b'] }, 'b was left out by `select`'],
    ['all fields are selected', { select: ['a'] }, {}, '`select` left other fields out'],
    ['a hash goes', { hash: ['a'] }, { drop: ['a'] }, 'convert'],
    ['a hash becomes plain', { hash: ['a'] }, {}, 'the original value of a is not stored'],
    ['a cast changes', { cast: { a: 'text' } }, { cast: { a: 'bigint' } }, 'the original value of a is not stored'],
    ['a part of a hashed object goes', { hash: ['a'] }, { hash: ['a'], drop: ['a.b'] }, 'the original value of a'],
    [
      'an encrypted field is renamed',
      { encrypt: ['a'] },
      { encrypt: ['a'], rename: { a: 'b' } },
      'the original value of a',
    ],
    [
      'a renamed field is hashed',
      { rename: { a: 'b' } },
      { rename: { a: 'b' }, hash: ['a'] },
      'it is not certain that b was a',
    ],
    [
      'a renamed field is hashed, and no other field can have its name',
      { select: ['a'], rename: { a: 'b' } },
      { select: ['a'], rename: { a: 'b' }, hash: ['a'] },
      'convert',
    ],
    ['a rename that nothing concerns', { rename: { a: 'b' } }, { rename: { a: 'b' }, hash: ['c'] }, 'convert'],
    [
      'the field whose name was taken goes',
      { rename: { a: 'b' } },
      { rename: { a: 'b' }, drop: ['b'] },
      'it is not certain that b was a',
    ],
    ['a new map', {}, { map: { version: 2, apply: (record) => ({ ...record, m: 1 }) } }, 'convert'],
    [
      'a new map of changed records',
      { drop: ['a'] },
      { drop: ['a'], map: { version: 2, apply: (r) => r } },
      '`map` needs',
    ],
    [
      'another map',
      { map: { version: 1, apply: (r) => r } },
      { map: { version: 2, apply: (r) => r } },
      'version 1 of `map`',
    ],
    [
      'more rules after the same map',
      { map: { version: 1, apply: (r) => r } },
      { map: { version: 1, apply: (r) => r }, drop: ['a'] },
      'convert',
    ],
  ])('%s', (_title, from, to, expected) => {
    const conversion = plan(from, to)
    if (['same', 'convert'].includes(expected)) expect(conversion.kind).toBe(expected)
    else expect(conversion).toMatchObject({ kind: 'lost', reasons: [expect.stringContaining(expected)] })
  })

  test('what it makes of the stored record is what the rules make of the record of the source (8,000 pairs)', () => {
    let [compared, refused] = [0, 0]
    const kinds = { same: 0, convert: 0, lost: 0 }
    for (let seed = 1; seed <= 8_000; seed++) {
      const random = seededRandom(seed)
      const from = makeRules(random, {})
      const to = makeRules(random, random() < 0.8 ? from : {})
      const conversion = plan(from, to)
      kinds[conversion.kind]++
      if (conversion.kind === 'lost') continue
      for (let i = 0; i < 4; i++) {
        const record = makeRecord(random)
        const stored = attempt(() => apply(planColumns(from), record))
        // A record that the old rules refuse has no row.
        if (stored === null) continue
        compared++
        const wanted = attempt(() => apply(planColumns(to), record))
        const made =
          conversion.kind === 'same'
            ? stored
            : attempt(() => apply(conversion.plan, undoRenames(stored, conversion.undo)))
        // Refused, though the rules accept the record of the source: the row stays, and is counted.
        if (made === null && wanted !== null) refused++
        else expect(made, JSON.stringify({ seed, from, to, record })).toEqual(wanted)
      }
    }
    expect(refused).toBeLessThan(compared / 1_000)
    expect(Math.min(...Object.values(kinds))).toBeGreaterThan(300)
  })
})

function attempt(act: () => JsonObject): JsonObject | null {
  try {
    return act()
  } catch (error) {
    if (error instanceof TransformError) return null
    throw error
  }
}

const PATHS = ['a', 'b', 'c', 'd', 'a.x', 'a.y', 'b.x', 'c.x', 'd.y']
const NAMES = ['a', 'b', 'e', 'f', 'a.x', 'f.z']

/** Rules with some of those of `base`, so that many pairs can be converted. */
function makeRules(random: () => number, base: ColumnRules): ColumnRules {
  for (;;) {
    const pick = <Item>(items: readonly Item[]): Item => required(items[Math.floor(random() * items.length)], 'item')
    const add = (share: number, list: readonly string[] = []): string[] => [
      ...new Set([...list.filter(() => random() < 0.95), ...(random() < share ? [pick(PATHS)] : [])]),
    ]
    const fields = <Value>(
      share: number,
      known: Readonly<Record<string, Value>> = {},
      make: () => Value,
    ): Record<string, Value> =>
      Object.fromEntries(add(share, Object.keys(known)).map((path) => [path, known[path] ?? make()]))
    const lists = { drop: add(0.4, base.drop), hash: add(0.3, base.hash), encrypt: add(0.2, base.encrypt) }
    const select = base.select ?? (random() < 0.3 ? [pick(PATHS), pick(PATHS), pick(PATHS)] : undefined)
    const selected = select === undefined ? [] : [...new Set(add(0.1, select))]
    const objects = {
      cast: fields(0.3, base.cast, () => pick(['text', 'bigint', 'json'] as const)),
      mask: fields(0.2, base.mask, () => pick([2, 'hidden'])),
      rename: fields(0.4, base.rename, () => pick(NAMES)),
    }
    const rules = {
      ...Object.fromEntries(Object.entries(lists).filter(([, list]) => list.length > 0)),
      ...Object.fromEntries(Object.entries(objects).filter(([, entries]) => Object.keys(entries).length > 0)),
      ...(selected.length > 0 && { select: selected }),
    } as ColumnRules
    if (findColumnRuleFault(rules) === null) return rules
  }
}

function makeRecord(random: () => number): JsonObject {
  const leaf = (): JsonValue =>
    [1, 'text', '12', null, true, '{"x":1}', [{ x: 'in a list' }, 5]][Math.floor(random() * 7)] ?? null
  const value = (): JsonValue =>
    random() < 0.5
      ? leaf()
      : Object.fromEntries(['x', 'y', 'z'].filter(() => random() < 0.6).map((name) => [name, leaf()]))
  return Object.fromEntries(
    ['a', 'b', 'c', 'd', 'e', 'f', 'a.x'].filter(() => random() < 0.6).map((name) => [name, value()]),
  )
}
