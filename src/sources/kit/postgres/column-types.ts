import type { ColumnType, ScalarType } from '../../../contract/index.ts'

/** Column types by catalog name; `decode-values.ts` defines the format of their values. Every other type is read as text. */
const SCALAR_TYPES: ReadonlyMap<string, ScalarType> = new Map(
  Object.entries<ScalarType>({
    bool: 'boolean',
    bytea: 'bytes',
    date: 'date',
    float4: 'double',
    float8: 'double',
    int2: 'bigint',
    int4: 'bigint',
    int8: 'bigint',
    json: 'json',
    jsonb: 'json',
    numeric: 'decimal',
    oid: 'bigint',
    time: 'time',
    timestamp: 'datetime',
    timestamptz: 'timestamp',
    uuid: 'uuid',
  }),
)

const TEXT_ARRAY_TYPES = new Set(['_text', '_varchar', '_bpchar'])

/** Null if the type follows from the values only. */
export function mapColumnType(type: string): ColumnType | null {
  if (!type.startsWith('_')) return SCALAR_TYPES.get(type) ?? 'text'
  if (TEXT_ARRAY_TYPES.has(type)) return 'text[]'
  const item = SCALAR_TYPES.get(type.slice(1)) ?? null
  if (item === null || item === 'json') return item
  return `${item}[]`
}
