import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Interpolation, type Names } from '../../../src/sources/airbyte/jinja/interpolation.ts'
import { printFloat } from '../../../src/sources/airbyte/jinja/printing.ts'
import { PyFloat, PyTuple, type PyValue } from '../../../src/sources/airbyte/jinja/values.ts'

// The values were printed by airbyte-cdk 7.39 on Python 3.11, with its clock at the time below.
const { context, cases } = JSON.parse(readFileSync(new URL('jinja-cases.json', import.meta.url), 'utf8')) as {
  context: Names
  cases: [template: string, value: unknown][]
}
const interpolation = new Interpolation({ nowMs: Date.UTC(2026, 2, 5, 14, 7, 9, 123), random: () => 0.5 })

function describeValue(value: PyValue): unknown {
  if (value instanceof PyFloat) return { $float: printFloat(value.value) }
  if (typeof value === 'number' && !Number.isInteger(value)) return { $float: printFloat(value) }
  if (typeof value === 'bigint') return { $int: String(value) }
  if (value instanceof PyTuple) return { $tuple: value.items.map(describeValue) }
  if (Array.isArray(value)) return value.map(describeValue)
  if (typeof value !== 'object' || value === null) return value
  return {
    $dict: Object.fromEntries(Object.entries(value).map(([name, member]) => [name, describeValue(member as PyValue)])),
  }
}

test.each(cases)('%s has the value that Python gives it', (template, value) => {
  const isError = typeof value === 'object' && value !== null && '$error' in value
  const evaluate = (): unknown => describeValue(interpolation.evaluate(template, structuredClone(context)))
  if (isError) expect(evaluate).toThrow(/\w/)
  else expect(evaluate()).toEqual(value)
})

test.each([
  ['a loop of loops', `{% for a in l %}{% for b in l %}{% for c in l %}x{% endfor %}{% endfor %}{% endfor %}`],
  ['a long text', `{{ 'x' * 10000000 }}`],
  ['a large power', '{{ 9 ** 9 ** 9 ** 9 ** 9 }}'],
  ['deep nesting', `{{ ${'('.repeat(5_000)}1${')'.repeat(5_000)} }}`],
  ['deep lists', `{{ ${'['.repeat(5_000)}1${']'.repeat(5_000)} }}`],
  [
    'a text that doubles',
    `{% set ns = namespace(t='xxxxxxxxxx') %}{% for a in l %}{% set ns.t = ns.t ~ ns.t %}{% endfor %}{{ ns.t }}`,
  ],
  ['a pattern that backtracks', `{{ 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!' | regex_search('^(a+)+$') }}`],
  ['a long template', 'x{{ 1 }}'.repeat(20_000)],
])('%s ends with an error', (_, template) => {
  const l = Array.from({ length: 400 }, (_item, index) => index)
  expect(() => interpolation.evaluate(template, { l })).toThrow(/\w/)
})

test('a prototype is no member of a value', () => {
  for (const name of ['constructor', '__proto__', 'toString'])
    expect(interpolation.evaluate(`{{ config['${name}'] }}{{ config.${name} }}`, { config: {} })).toBe('')
})

test('a random identifier comes from the context', () => {
  const value = interpolation.evaluate('{{ generate_uuid() }}', {})
  expect(value).toBe('88888888-8888-4888-8888-888888888888')
})
