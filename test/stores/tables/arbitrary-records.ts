import fc from 'fast-check'
import type { JsonObject, JsonValue } from '../../../src/contract/index.ts'
import type { ColumnType, TableColumn } from '../../../src/stores/kit/tables/column.ts'

const SCALAR_TYPES = [
  'bigint',
  'boolean',
  'bytes',
  'date',
  'datetime',
  'decimal',
  'double',
  'json',
  'numeric',
  'text',
  'time',
  'timestamp',
  'uuid',
] as const

/** A column of any type. */
export function columnArbitrary(): fc.Arbitrary<TableColumn> {
  return fc
    .record({
      member: nameArbitrary(),
      type: fc.constantFrom<ColumnType>(...SCALAR_TYPES, ...SCALAR_TYPES.map((type) => `${type}[]` as const)),
      none: fc.constantFrom('null' as const, 'empty' as const, 'absent' as const),
      decimals: fc.constantFrom('*', '0', '3', '6'),
      zone: fc.constantFrom('Z', '+00:00', '+0000'),
      separator: fc.constantFrom('', '_'),
      since: fc.constantFrom(0, 2),
    })
    .map(({ member, type, none, decimals, zone, separator, since }) => ({
      member,
      name: member,
      type,
      none,
      since,
      ...(type.startsWith('timestamp') && { format: decimals + zone }),
      ...(type.startsWith('datetime') && { format: decimals + separator }),
    }))
}

/** Records whose fields often have the names of columns, and values of any kind. */
export function recordArbitrary(): fc.Arbitrary<JsonObject> {
  const scalar = fc.oneof(
    fc.constantFrom<JsonValue>(
      null,
      true,
      false,
      0,
      -1,
      0.1,
      1e21,
      1e-7,
      5e-324,
      2 ** 53,
      -(2n ** 63n),
      2n ** 63n,
      10n ** 30n,
      '',
      0,
      -0,
    ),
    fc.constantFrom(
      '2026-01-02T03:04:05Z',
      '2026-01-02T03:04:05.678Z',
      '2026-01-02T05:04:05+02:00',
      '2016-12-31T23:59:60Z',
    ),
    fc.constantFrom('2026-02-30', '0000-01-01', '2026-01-02', '9999-12-31T23:59:59.9999999Z', 'null', '{"a":1}'),
    fc.constantFrom(
      '1.50',
      '-0.00',
      '0.10',
      '007',
      '1e5',
      '12:00:00',
      '12:00:00.50',
      '2026-01-02T03:04:05',
      '2026-01-02T03:04:05.600',
      '2026-01-02T03:04:05.6',
    ),
    fc.constantFrom(
      '6f9619ff-8b86-d011-b42d-00c04fc964ff',
      '6F9619FF-8B86-D011-B42D-00C04FC964FF',
      'aGVsbG8=',
      'aGVsbG8',
      'aGVsbG9=',
      'AA==',
      '_-8=',
    ),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.bigInt(),
    fc.string(),
  ) as fc.Arbitrary<JsonValue>
  const value = fc.oneof(
    scalar,
    fc.array(scalar, { maxLength: 3 }),
    fc.dictionary(nameArbitrary(), scalar, { maxKeys: 3 }),
  ) as fc.Arbitrary<JsonValue>
  return fc.dictionary(nameArbitrary(), value, { maxKeys: 8, noNullPrototype: true }) as fc.Arbitrary<JsonObject>
}

function nameArbitrary(): fc.Arbitrary<string> {
  return fc.constantFrom(
    'a',
    'A',
    'b',
    'c',
    'd',
    'e',
    'f',
    'g',
    '__proto__',
    'toString',
    'constructor',
    '',
    '_key',
    'x y',
  )
}
