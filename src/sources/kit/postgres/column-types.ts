import type { ColumnType, ScalarType } from '../../../contract/index.ts'

/** Types by their names in the catalog; see `values.ts` for how their values are written. Every other type is read as text. */
const SCALAR_TYPES: Readonly<Record<string, ScalarType>> = {
  bool: 'boolean', bytea: 'bytes', date: 'date', float4: 'double', float8: 'double', int2: 'bigint', int4: 'bigint', int8: 'bigint', json: 'json', jsonb: 'json',
  numeric: 'decimal', oid: 'bigint', time: 'time', timestamp: 'datetime', timestamptz: 'timestamp', uuid: 'uuid',
}

const TEXT_ARRAY_TYPES = new Set(['_text', '_varchar', '_bpchar'])

/** Null where only the values tell. */
export function mapColumnType(type: string): ColumnType | null {
  if (!type.startsWith('_')) return Object.hasOwn(SCALAR_TYPES, type) ? SCALAR_TYPES[type]! : 'text'
  if (TEXT_ARRAY_TYPES.has(type)) return 'text[]'
  const item = Object.hasOwn(SCALAR_TYPES, type.slice(1)) ? SCALAR_TYPES[type.slice(1)]! : null
  if (item === null || item === 'json') return item
  return `${item}[]`
}
