import { describe, expect, test } from 'vitest'
import { findColumnRuleFault } from '../../src/transforms/check-column-rules.ts'
import { planColumns, type ColumnRules } from '../../src/transforms/column-rules.ts'
import { declareRuleColumns, transformShape } from '../../src/transforms/transform-shape.ts'
import { required } from '../../src/values/required.ts'
import { Worker } from '../../src/worker/worker.ts'

describe('rules with a mistake', () => {
  test.each<[string, unknown, string]>([
    ['an unknown rule', { hsah: ['a'] }, 'unknown rule "hsah". Did you mean "hash"?'],
    ['no list', { drop: 'a' }, 'it must be a list of field names'],
    ['a field twice', { drop: ['a', 'a'] }, 'it names a field twice'],
    ['no type', { cast: { a: 'int' } }, 'a: it must be a column type'],
    ['no mask', { mask: { a: -1 } }, 'a: it must be the number of characters to keep, or a text'],
    ['no name', { rename: { a: '' } }, 'a: it must be the new name of the field'],
    ['no function', { map: { version: 1 } }, '`apply` must be a function'],
    ['no version', { map: { apply: () => ({}) } }, '`version` must be a text or a number'],
    ['two replacements', { hash: ['a'], encrypt: ['a'] }, 'a is also in `hash`'],
    ['a replacement inside another', { hash: ['a'], mask: { 'a.b': 1 } }, 'a.b is also in `hash` (a)'],
    ['a rule of a dropped field', { drop: ['a'], hash: ['a.b'] }, 'a.b has no effect, because `drop` removes a'],
    ['a rule of a field that is not kept', { select: ['b'], cast: { a: 'text' } }, '`select` does not keep it'],
    ['a dropped field in another', { drop: ['a', 'a.b'] }, 'a.b is dropped with the field it is in'],
    ['its old name', { rename: { a: 'a' } }, 'the new name is the old one'],
    ['one name for two', { rename: { a: 'x', b: 'x' } }, 'two fields would be named x'],
    ['a field in a renamed one', { rename: { a: 'x', 'a.b': 'y' } }, 'or one around it, is renamed too'],
    ['the name of a kept field', { select: ['a', 'b'], rename: { a: 'b' } }, '`select` keeps another field named b'],
  ])('%s', (_, rules, message) => {
    expect(findColumnRuleFault(rules)?.message).toContain(message)
  })

  test('a declared key cannot be hidden, under its stored name', () => {
    expect(findColumnRuleFault({ hash: ['a'] }, ['a'])?.message).toContain('a is part of the key')
    expect(findColumnRuleFault({ hash: ['a'], rename: { a: 'b' } }, ['b'])?.message).toContain('a is part of the key')
    expect(findColumnRuleFault({ rename: { a: 'b' } }, ['a'])?.message).toContain(
      '`key` names fields as they are stored',
    )
    expect(findColumnRuleFault({ hash: ['c'], rename: { a: 'b', b: 'a' } }, ['a', 'b'])).toBeNull()
  })

  test('a worker reports them with the database and the rule', () => {
    const worker = new Worker()
    expect(() => worker.database('people', { columns: { drop: ['a'], hash: ['a'] } })).toThrow(
      'Database "people": columns.hash: a has no effect, because `drop` removes a.',
    )
    expect(() => worker.database('people', { columns: [] as never })).toThrow(
      'Database "people": columns: the rules must be an object.',
    )
  })
})

test('a webhook that stores messages first cannot write a database with rules', () => {
  const worker = new Worker()
  const people = worker.database('people', { columns: { hash: ['email'] } })
  const webhook = { database: people, verify: () => ({ id: '1' }), execute: () => {} }
  expect(() => worker.webhook('later', { ...webhook, later: true })).toThrow(/stores messages before the column rules/)
})

describe('the fingerprint', () => {
  const of = (rules: ColumnRules): string => planColumns(rules)?.fingerprint ?? ''

  test('is equal for rules with the same effect, and differs for others', () => {
    expect(of({ drop: ['a', 'b'], rename: { c: 'd', e: 'f' } })).toBe(
      of({ rename: { e: 'f', c: 'd' }, drop: ['b', 'a'] }),
    )
    const all: ColumnRules[] = [
      { drop: ['a'] },
      { hash: ['a'] },
      { encrypt: ['a'] },
      { select: ['a'] },
      { mask: { a: 1 } },
      { mask: { a: '1' } },
      { cast: { a: 'text' } },
      { rename: { a: 'b' } },
      { map: { version: 1, apply: (record) => record } },
      { map: { version: 2, apply: (record) => record } },
    ]
    expect(new Set(all.map(of)).size).toBe(all.length)
    expect(of({})).toBe('')
    expect(of({ drop: [] })).toBe('')
  })
})

describe('types', () => {
  const rules: ColumnRules = {
    select: ['id', 'a', 'b', 'o.x'],
    drop: ['b'],
    cast: { a: 'bigint' },
    hash: ['o.x'],
    rename: { a: 'n', 'o.x': 'x' },
  }
  const plan = required(planColumns(rules), 'plan')

  test('of the source follow the rules, and after map describe nothing', () => {
    const shape = {
      columns: (['id', 'a', 'b', 'o', 'z'] as const).map((name) => ({ name, type: 'uuid' as const })),
      key: ['id', 'a'],
    }
    expect(transformShape(plan, shape)).toEqual({
      columns: ['id', 'n', 'o'].map((name) => ({ name, type: 'uuid' })),
      key: ['id', 'n'],
    })
    expect(transformShape(plan, { ...shape, key: ['z'] })).not.toHaveProperty('key')
    const mapped = required(planColumns({ map: { version: 1, apply: (record) => record } }), 'plan')
    expect(transformShape(mapped, shape)).toEqual({ columns: [] })
  })

  test('of the schema are overridden where a rule determines them', () => {
    expect(declareRuleColumns(plan, { columns: [{ name: 'n', type: 'text', isOptional: true }] })).toEqual({
      columns: [
        { name: 'n', type: 'bigint', isOptional: true },
        { name: 'x', type: 'text' },
      ],
    })
    expect(declareRuleColumns(required(planColumns({ drop: ['a'] }), 'plan'), undefined)).toBeUndefined()
  })
})
