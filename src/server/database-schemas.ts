import type { ColumnKind } from '../contract/index.ts'
import { allowsScope, databaseReadScope } from './api-key.ts'
import type { Caller } from './authenticator.ts'
import type { ServerContext } from './route.ts'
import { objectSchema, type JsonSchema } from './schemas.ts'

export interface DatabaseSchema {
  readonly name: string
  readonly from: 'schema' | 'columns'
  readonly schema: JsonSchema
}

/** Lists the databases that the caller may read, with the declared schema or one derived from the columns. */
export async function listDatabaseSchemas(
  context: ServerContext,
  { store, scopes }: Caller,
): Promise<DatabaseSchema[]> {
  // Declared schemas are shown only to tenants that the worker serves.
  const declared = context.isServedTenant(store.tenant) ? context.schemas : {}
  const stored = new Map((await store.databases()).map(({ name, columns }) => [name, columns]))
  const names = [...new Set([...Object.keys(declared), ...stored.keys()])].filter((name) =>
    allowsScope(scopes, databaseReadScope(name)),
  )
  return names.toSorted().map((name) => {
    const schema = declared[name]
    if (schema !== undefined) return { name, from: 'schema', schema }
    const columns = stored.get(name) ?? []
    const properties = Object.fromEntries(
      columns.map((column) => [
        column.name,
        column.kinds.includes('json')
          ? {}
          : { type: [...new Set(column.kinds.map((kind) => JSON_TYPES[kind])), 'null'] },
      ]),
    )
    return {
      name,
      from: 'columns',
      schema: {
        ...objectSchema(properties, []),
        additionalProperties: true,
        description: 'Derived from the stored columns: new fields may appear, and any field may be absent.',
      },
    }
  })
}

const JSON_TYPES: Record<Exclude<ColumnKind, 'json'>, string> & Partial<Record<ColumnKind, string>> = {
  bigint: 'integer',
  boolean: 'boolean',
  integer: 'integer',
  number: 'number',
  string: 'string',
}

/** Rewrites a schema as a component, so that its internal references resolve within the document. */
export function toComponent(schema: JsonSchema, pointer: string): JsonSchema {
  const { $schema: _, $id: __, ...rest } = schema
  return rebaseRefs(rest, pointer) as JsonSchema
}

/** Keywords whose values are data, not schemas. */
const DATA_KEYWORDS = new Set(['const', 'enum', 'default', 'examples', 'example'])

function rebaseRefs(node: unknown, pointer: string): unknown {
  if (Array.isArray(node)) return node.map((one) => rebaseRefs(one, pointer))
  if (typeof node !== 'object' || node === null) return node
  return Object.fromEntries(
    Object.entries(node).map(([name, value]) => {
      if (name === '$ref' && typeof value === 'string' && value.startsWith('#'))
        return [name, `${pointer}${value.slice(1)}`]
      return [name, DATA_KEYWORDS.has(name) ? value : rebaseRefs(value, pointer)]
    }),
  )
}
