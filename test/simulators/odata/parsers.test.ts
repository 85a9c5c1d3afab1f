import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { builtInParser } from '../../../simulators/src/odata/parse-query.ts'
import { compilePredicate, type Row } from '../../../simulators/src/odata/query.ts'
import { standardParser } from './standard-parser.ts'

const GUIDS = ['0a0a0a0a-0000-0000-0000-000000000001', 'ffffffff-0000-0000-0000-00000000000f']
const PROPERTIES = {
  4: {
    Name: 'Edm.String',
    Price: 'Edm.Decimal',
    Open: 'Edm.Boolean',
    Id: 'Edm.Guid',
    At: 'Edm.DateTimeOffset',
    Day: 'Edm.Date',
  },
  2: { Name: 'Edm.String', Price: 'Edm.Decimal', Open: 'Edm.Boolean', Id: 'Edm.Guid', At: 'Edm.DateTime' },
} as const

const VALUES: Record<string, readonly (string | boolean | null)[]> = {
  Name: ['', 'a', "O'Neil", 'a and b or not (c)', 'null', null],
  Price: ['0', '-1.5', '12', '9007199254740993.0000000001', null],
  Open: [true, false, null],
  Id: [...GUIDS, null],
  At: ['2026-01-01T00:00:00', '2026-01-01T00:00:00.0000001', null],
  Day: ['2026-01-01', '2026-02-01', null],
}

function literal(property: string, value: string | boolean | null, version: 2 | 4): string {
  if (value === null) return 'null'
  if (property === 'Name') return `'${String(value).replaceAll("'", "''")}'`
  if (property === 'Id') return version === 2 ? `guid'${value}'` : String(value)
  if (property === 'At') return version === 2 ? `datetime'${value}'` : `${value}Z`
  return property === 'Price' && version === 2 ? `${value}M` : String(value)
}

function filters(version: 2 | 4): fc.Arbitrary<string> {
  const names = Object.keys(PROPERTIES[version])
  const comparison = fc
    .constantFrom(...names)
    .chain((name) =>
      fc
        .tuple(fc.constantFrom('eq', 'ne', 'lt', 'le', 'gt', 'ge'), fc.constantFrom(...VALUES[name]!))
        .map(([operator, value]) => `${name} ${operator} ${literal(name, value, version)}`),
    )
  const call = fc
    .tuple(fc.constantFrom('contains', 'startswith', 'endswith'), fc.constantFrom('a', "O''", 'x)'))
    .map(([method, text]) => `${method}(Name,'${text}')`)
  const { filter } = fc.letrec<{ filter: string; factor: string }>((tie) => ({
    factor: fc.oneof(
      { depthSize: 'small' },
      comparison,
      call,
      tie('filter').map((inner) => `(${inner})`),
      tie('filter').map((inner) => `not (${inner})`),
    ),
    filter: fc.oneof(
      { depthSize: 'small' },
      tie('factor'),
      fc.tuple(tie('filter'), fc.constantFrom('and', 'or'), tie('factor')).map((parts) => parts.join(' ')),
    ),
  }))
  return filter
}

const row = fc.record(
  Object.fromEntries(Object.entries(VALUES).map(([name, values]) => [name, fc.constantFrom(...values)])),
) as fc.Arbitrary<Row>

describe.each([2, 4] as const)('version %s', (version) => {
  test('the simulator’s own parser agrees with a parser of the whole standard', () => {
    const properties = PROPERTIES[version]
    fc.assert(
      fc.property(filters(version), fc.array(row, { minLength: 5, maxLength: 5 }), (filter, rows) => {
        const [own, standard] = [builtInParser, standardParser].map((parser) =>
          compilePredicate(parser.filter(filter, version), properties),
        )
        expect(rows.map(own!)).toEqual(rows.map(standard!))
      }),
      { numRuns: 400 },
    )
  })

  test('neither accepts an invalid filter', () => {
    const bad = [
      '',
      'Name',
      'Name eq',
      "Name eq 'a' and",
      "(Name eq 'a'",
      "Name eq 'a')",
      "Name is 'a'",
      "not Name eq 'a'",
      "Name eq 'a' Price eq 1",
      version === 2 ? 'At gt 2026-01-01T00:00:00Z' : "At gt datetime'2026-01-01T00:00:00'",
    ]
    for (const filter of bad)
      for (const parser of [builtInParser, standardParser])
        expect(() => compilePredicate(parser.filter(filter, version), PROPERTIES[version]), filter).toThrow()
  })
})

test('orders are parsed alike', () => {
  for (const text of ['At', 'At asc', 'At desc,Name', 'At,Name desc'])
    expect(builtInParser.orderBy(text)).toEqual(standardParser.orderBy(text))
  for (const text of ['', 'At up', 'At desc Name']) expect(() => builtInParser.orderBy(text)).toThrow()
})
