import type { ColumnType, ScalarType, ShapeColumn } from '../contract/index.ts'

type JsonSchema = Readonly<Record<string, unknown>>

/** The columns of records that match a JSON Schema. A field without a single type is omitted. */
export function deriveSchemaColumns(schema: JsonSchema): ShapeColumn[] {
  const parts = flattenSchema(schema, schema)
  const required = new Set(parts.flatMap((part) => (Array.isArray(part['required']) ? part['required'] : [])))
  const members = new Map(parts.flatMap((part) => Object.entries(asObject(part['properties']))))
  return [...members].flatMap(([name, member]) => {
    const type = inferColumnType(schema, asObject(member), true)
    return type === null ? [] : [{ name, type, ...(!required.has(name) && { isOptional: true }) }]
  })
}

/** Follows `$ref` and flattens `allOf`. A deeper schema is circular. */
function flattenSchema(root: JsonSchema, schema: JsonSchema, depth = 0): JsonSchema[] {
  if (depth > 10) return []
  const target = typeof schema['$ref'] === 'string' ? resolveReference(root, schema['$ref']) : null
  const all = Array.isArray(schema['allOf']) ? schema['allOf'] : []
  return [
    schema,
    ...[...(target === null ? [] : [target]), ...all].flatMap((part) => flattenSchema(root, asObject(part), depth + 1)),
  ]
}

/** Resolves `#/$defs/name` and similar references. */
function resolveReference(root: JsonSchema, reference: string): JsonSchema | null {
  if (!reference.startsWith('#')) return null
  let found: unknown = root
  for (const step of reference.split('/').slice(1))
    found = asObject(found)[step.replaceAll('~1', '/').replaceAll('~0', '~')]
  return typeof found === 'object' && found !== null ? (found as JsonSchema) : null
}

/** Null if the schema allows several types, or does not specify one. */
function inferColumnType(root: JsonSchema, schema: JsonSchema, mayBeList: boolean): ColumnType | null {
  const types = new Set<ColumnType>()
  for (const part of flattenSchema(root, schema)) {
    const choices = part['anyOf'] ?? part['oneOf']
    if (Array.isArray(choices)) {
      const given = choices
        .map(asObject)
        .filter((choice) => choice['type'] !== 'null')
        .map((choice) => inferColumnType(root, choice, mayBeList))
      for (const type of given) {
        if (type === null) return null
        types.add(type)
      }
    }
    for (const name of listTypeNames(part)) {
      const type = name === 'array' ? inferListType(root, part, mayBeList) : inferScalarType(name, part)
      if (type === null) return null
      types.add(type)
    }
  }
  if (types.size === 2 && types.has('bigint') && types.has('double')) return 'double'
  const [type, ...others] = types
  return type === undefined || others.length > 0 ? null : type
}

/** The JSON Schema type names, without `null`; for an enumeration, the types of its values. */
function listTypeNames(schema: JsonSchema): string[] {
  const { type, enum: listed, const: only } = schema as { type?: unknown; enum?: unknown; const?: unknown }
  if (type !== undefined) return [type].flat().filter((name) => name !== 'null') as string[]
  const values = Array.isArray(listed) ? listed : only === undefined ? [] : [only]
  return [
    ...new Set(
      values
        .filter((value) => value !== null)
        .map((value) =>
          typeof value === 'number'
            ? Number.isInteger(value)
              ? 'integer'
              : 'number'
            : Array.isArray(value)
              ? 'array'
              : typeof value,
        ),
    ),
  ]
}

const DECIMAL_FORMATS: ReadonlySet<unknown> = new Set(['decimal', 'decimal128'])

const TEXT_FORMATS: ReadonlyMap<unknown, ScalarType> = new Map([
  ['date-time', 'timestamp'],
  ['date', 'date'],
  ['uuid', 'uuid'],
  ['decimal', 'decimal'],
  ['decimal128', 'decimal'],
  ['singer.decimal', 'decimal'],
  ['byte', 'bytes'],
  // From the OpenAPI format registry. `time` has an offset, which no column preserves.
  ['date-time-local', 'datetime'],
  ['time-local', 'time'],
])

function inferScalarType(name: string, { format, contentEncoding }: JsonSchema): ScalarType | null {
  switch (name) {
    case 'string':
      return contentEncoding === 'base64' ? 'bytes' : (TEXT_FORMATS.get(format) ?? 'text')
    case 'integer':
      return DECIMAL_FORMATS.has(format) ? 'numeric' : 'bigint'
    case 'number':
      return DECIMAL_FORMATS.has(format) ? 'numeric' : 'double'
    case 'boolean':
      return 'boolean'
    case 'object':
      return 'json'
    default:
      return null
  }
}

/** A flat list of values of one type becomes an array column; other lists are JSON. */
function inferListType(root: JsonSchema, schema: JsonSchema, mayBeList: boolean): ColumnType {
  const items = schema['items']
  const type =
    mayBeList && typeof items === 'object' && !Array.isArray(items) && schema['prefixItems'] === undefined
      ? inferColumnType(root, asObject(items), false)
      : null
  return type === null || type === 'json' ? 'json' : `${type as ScalarType}[]`
}

function asObject(value: unknown): JsonSchema {
  return typeof value === 'object' && value !== null ? (value as JsonSchema) : {}
}
