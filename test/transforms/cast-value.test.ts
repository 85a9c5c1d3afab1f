import { describe, expect, test } from 'vitest'
import type { ColumnType, JsonValue } from '../../src/contract/index.ts'
import { castValue } from '../../src/transforms/cast-value.ts'

describe('cast', () => {
  test.each<[ColumnType, JsonValue, JsonValue]>([
    ['text', 12, '12'],
    ['text', true, 'true'],
    ['text', { a: 1n }, '{"a":1}'],
    ['text', 'x', 'x'],
    ['bigint', '007', 7],
    ['bigint', '-0', 0],
    ['bigint', '9007199254740993', 9007199254740993n],
    ['bigint', '1.0', '1.0'],
    ['bigint', 'x', 'x'],
    ['bigint', 7, 7],
    ['double', '1.50', 1.5],
    ['double', '0.1234567890123456789', '0.1234567890123456789'],
    ['double', '1e5', '1e5'],
    ['numeric', '12.30', 12.3],
    ['numeric', '123456789012345678901234567890', 123456789012345678901234567890n],
    ['numeric', '', ''],
    ['decimal', 1e-7, '0.0000001'],
    ['decimal', 5n, '5'],
    ['decimal', '1.50', '1.50'],
    ['boolean', 'TRUE', true],
    ['boolean', 0, false],
    ['boolean', 'maybe', 'maybe'],
    ['timestamp', 1_700_000_000, '2023-11-14T22:13:20.000000Z'],
    ['timestamp', 1_700_000_000_123, '2023-11-14T22:13:20.123000Z'],
    ['timestamp', 1.5, 1.5],
    ['timestamp', '2026-01-31 12:00:00Z', '2026-01-31T12:00:00Z'],
    ['timestamp', '2026-01-31', '2026-01-31'],
    ['uuid', 'ABCDEF00-0000-4000-8000-000000000000', 'abcdef00-0000-4000-8000-000000000000'],
    ['json', '{"a":1}', { a: 1 }],
    ['json', 'no json', 'no json'],
    ['date', '2026-01-31', '2026-01-31'],
    ['bigint[]', ['1', null, 'x'], [1, null, 'x']],
    ['text[]', 'x', 'x'],
    ['bigint', null, null],
  ])('to %s: %o becomes %o', (type, value, expected) => {
    expect(castValue(value, type)).toEqual(expected)
  })
})
