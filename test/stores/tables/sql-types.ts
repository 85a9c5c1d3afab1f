import type { ColumnType, ScalarType } from '../../../src/contract/index.ts'

/** Name of each type in SQL. */
const SQL_TYPES: Record<string, Record<ScalarType, string>> = {
  sqlite: {
    bigint: 'INTEGER',
    boolean: 'boolean',
    bytes: 'BLOB',
    date: 'date',
    datetime: 'datetime',
    decimal: 'TEXT',
    double: 'REAL',
    json: 'json',
    numeric: 'TEXT',
    text: 'TEXT',
    time: 'time',
    timestamp: 'datetime',
    uuid: 'uuid',
  },
  postgres: {
    bigint: 'bigint',
    boolean: 'boolean',
    bytes: 'bytea',
    date: 'date',
    datetime: 'timestamp without time zone',
    decimal: 'numeric',
    double: 'double precision',
    json: 'jsonb',
    numeric: 'numeric',
    text: 'text',
    time: 'time without time zone',
    timestamp: 'timestamp with time zone',
    uuid: 'uuid',
  },
}

/** Names of array types in the catalog. */
const ARRAY_TYPES: Record<ScalarType, string> = {
  bigint: 'int8[]',
  boolean: 'bool[]',
  bytes: 'bytea[]',
  date: 'date[]',
  datetime: 'timestamp[]',
  decimal: 'numeric[]',
  double: 'float8[]',
  json: 'jsonb[]',
  numeric: 'numeric[]',
  text: 'text[]',
  time: 'time[]',
  timestamp: 'timestamptz[]',
  uuid: 'uuid[]',
}

/** The type of a column as the catalog of a store shows it. */
export function sqlTypeOf(store: string, type: ColumnType): string {
  if (!type.endsWith('[]')) return SQL_TYPES[store]![type as ScalarType]
  return store === 'sqlite' ? 'json' : ARRAY_TYPES[type.slice(0, -2) as ScalarType]
}
