import type { JsonSchema } from '../../values/config-schema.ts'

/** Rewrites a schema of camelCase fields for a manifest, where fields and kinds are in snake_case. */
export function toManifestSchema(schema: JsonSchema): JsonSchema {
  return rewriteSchema(schema) as JsonSchema
}

function rewriteSchema(value: unknown, keyword = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => rewriteSchema(item, keyword))
  // Names: the values of a kind and the required fields. Other values, such as descriptions, are texts.
  if (typeof value === 'string') return NAME_KEYWORDS.has(keyword) ? toSnakeCase(value) : value
  if (typeof value !== 'object' || value === null) return value
  const isProperties = keyword === 'properties'
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      isProperties ? toSnakeCase(name) : name,
      rewriteSchema(member, isProperties ? '' : name),
    ]),
  )
}

const NAME_KEYWORDS = new Set(['required', 'enum', 'const'])

/**
 * Converts options of a manifest, valid by `toManifestSchema(schema)`, to the fields and kinds of the code. Names that
 * belong to the API, such as query parameters and members of a body, stay as they are.
 */
export function fromManifest(value: unknown, schema: JsonSchema): unknown {
  const schemas = selectSchemas(value, schema)
  if (Array.isArray(value)) {
    const items = schemas.find((part) => 'items' in part)?.['items'] as JsonSchema | undefined
    return items === undefined ? value : value.map((item) => fromManifest(item, items))
  }
  if (typeof value === 'string')
    return schemas.some(({ enum: names }) => isKindOf(names, value)) ? toCamelCase(value) : value
  if (typeof value !== 'object' || value === null) return value
  // The schema of one kind leaves `kind` open; the kinds are listed by the schema that selects it.
  const properties: Readonly<Record<string, JsonSchema>> = Object.assign(
    {},
    ...schemas.toReversed().map((part) => part['properties'] ?? {}),
  )
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const field = toCamelCase(name)
      const known = Object.hasOwn(properties, field) ? properties[field] : undefined
      return known === undefined ? [name, member] : [field, fromManifest(member, known)]
    }),
  )
}

/** The schema and those of its alternatives and conditions that apply to the value. */
function selectSchemas(value: unknown, schema: JsonSchema): JsonSchema[] {
  const { anyOf = [], allOf = [], else: otherwise } = schema as Conditional
  const alternatives = anyOf.filter((part) => matchesType(value, part))
  const kind = (value as { kind?: unknown } | null)?.kind
  const conditions = allOf.filter((part) => toSnakeCase(part.if.properties.kind.const) === kind).map(({ then }) => then)
  const other = otherwise !== undefined && typeof value === 'object' ? [otherwise] : []
  return [schema, ...[...alternatives, ...conditions, ...other].flatMap((part) => selectSchemas(value, part))]
}

interface Conditional {
  readonly anyOf?: readonly JsonSchema[]
  readonly allOf?: ReadonlyArray<{
    readonly if: { readonly properties: { readonly kind: { readonly const: string } } }
    readonly then: JsonSchema
  }>
  readonly else?: JsonSchema
}

function matchesType(value: unknown, { type }: JsonSchema): boolean {
  return type === undefined || type === (Array.isArray(value) ? 'array' : typeof value)
}

function isKindOf(names: unknown, value: string): boolean {
  return Array.isArray(names) && names.some((name) => typeof name === 'string' && toSnakeCase(name) === value)
}

function toSnakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function toCamelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
