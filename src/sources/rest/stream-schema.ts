import type {
  DeletesStream,
  EventPaging,
  KeysetPaging,
  LinkPaging,
  OffsetPaging,
  PageNumberPaging,
  PageSizeParameter,
  RestStream,
  TimestampPaging,
  TokenPaging,
  NoPaging,
  WindowPaging,
} from './stream.ts'

/** The subset of JSON Schema that validates a stream written in a manifest. */
export interface JsonSchema {
  readonly [keyword: string]: unknown
}

/** One entry per field of the type, so that a new field does not compile without a schema. */
type SchemaProperties<T> = { readonly [Name in keyof Required<T>]: JsonSchema }

function createObjectSchema<T>(
  properties: SchemaProperties<T>,
  required: readonly (keyof T & string)[] = [],
): JsonSchema {
  return { type: 'object', properties, additionalProperties: false, ...(required.length > 0 && { required }) }
}

const TEXT = { type: 'string', minLength: 1 }
const FIELD_PATH = { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] }
const QUERY = { type: 'object' }
const TIME = { enum: ['iso', 'ms', 's'] }
const MILLISECONDS = { type: 'number', minimum: 0 }
const KEY = { anyOf: [TEXT, { type: 'array', items: FIELD_PATH, minItems: 1 }] }
const SIZE = createObjectSchema<PageSizeParameter>({ parameter: TEXT, value: { type: 'integer', minimum: 1 } }, [
  'parameter',
  'value',
])
const VALUE_MATCH = createObjectSchema<{ at: string; are: string[] }>(
  { at: FIELD_PATH, are: { type: 'array', items: { type: 'string' } } },
  ['at', 'are'],
)

const PAGING_SCHEMAS = {
  none: createObjectSchema<NoPaging>({ kind: {} }),
  token: createObjectSchema<TokenPaging>(
    {
      kind: {},
      parameter: TEXT,
      next: { anyOf: [FIELD_PATH, createObjectSchema<{ last: string }>({ last: FIELD_PATH }, ['last'])] },
      more: FIELD_PATH,
      size: SIZE,
    },
    ['parameter', 'next'],
  ),
  link: createObjectSchema<LinkPaging>({ kind: {}, next: FIELD_PATH, size: SIZE }),
  pageNumber: createObjectSchema<PageNumberPaging>(
    {
      kind: {},
      parameter: TEXT,
      first: { type: 'integer' },
      size: SIZE,
      total: FIELD_PATH,
      pages: FIELD_PATH,
      more: FIELD_PATH,
    },
    ['parameter'],
  ),
  offset: createObjectSchema<OffsetPaging>(
    { kind: {}, parameter: TEXT, size: SIZE, total: FIELD_PATH, more: FIELD_PATH },
    ['parameter', 'size'],
  ),
  keyset: createObjectSchema<KeysetPaging>(
    {
      kind: {},
      after: TEXT,
      afterId: TEXT,
      until: TEXT,
      size: SIZE,
      id: TEXT,
      ids: { enum: ['binary', 'numeric'] },
      more: FIELD_PATH,
    },
    ['after', 'afterId', 'size'],
  ),
  timestamp: createObjectSchema<TimestampPaging>(
    {
      kind: {},
      since: TEXT,
      bound: { enum: ['from', 'above'] },
      until: TEXT,
      size: SIZE,
    },
    ['since', 'size'],
  ),
}

function createKindSchema<Kind extends string>(kinds: Readonly<Record<Kind, JsonSchema>>): JsonSchema {
  return {
    type: 'object',
    required: ['kind'],
    properties: { kind: { enum: Object.keys(kinds) } },
    allOf: Object.entries<JsonSchema>(kinds).map(([kind, schema]) => ({
      if: { properties: { kind: { const: kind } }, required: ['kind'] },
      // oxlint-disable-next-line unicorn/no-thenable
      then: schema,
    })),
  }
}

const { none, token, link, keyset, timestamp } = PAGING_SCHEMAS
const window = createObjectSchema<WindowPaging>(
  {
    kind: {},
    since: TEXT,
    until: TEXT,
    page: createKindSchema({ none, token, link }),
    overlapMs: MILLISECONDS,
  },
  ['since', 'page'],
)
const events = createObjectSchema<EventPaging>(
  {
    kind: {},
    path: TEXT,
    query: QUERY,
    records: FIELD_PATH,
    id: TEXT,
    at: FIELD_PATH,
    time: TIME,
    after: TEXT,
    order: { enum: ['newest-first', 'oldest-first'] },
    more: FIELD_PATH,
    newest: QUERY,
    record: FIELD_PATH,
    deletions: VALUE_MATCH,
    only: VALUE_MATCH,
    retentionMs: MILLISECONDS,
  },
  ['path', 'id', 'at', 'after', 'order', 'more', 'newest', 'record'],
)

const deleted = createObjectSchema<DeletesStream>(
  {
    path: TEXT,
    query: QUERY,
    records: FIELD_PATH,
    key: KEY,
    updatedAt: FIELD_PATH,
    time: TIME,
    follow: createKindSchema({ keyset, timestamp, window }),
    retentionMs: MILLISECONDS,
  },
  ['path', 'key', 'updatedAt', 'follow'],
)

/** The schema of a `rest` stream in a manifest. */
export const REST_STREAM_SCHEMA = createObjectSchema<RestStream>(
  {
    name: TEXT,
    key: KEY,
    updatedAt: FIELD_PATH,
    path: TEXT,
    query: QUERY,
    records: FIELD_PATH,
    time: TIME,
    deleted: FIELD_PATH,
    lagMs: MILLISECONDS,
    retentionMs: MILLISECONDS,
    page: createKindSchema(PAGING_SCHEMAS),
    follow: createKindSchema({ keyset, timestamp, window, events }),
    // oxlint-disable-next-line unicorn/no-thenable
    deletes: { if: { type: 'string' }, then: { enum: ['ignore', 'sweep'] }, else: deleted },
    lookup: createObjectSchema<NonNullable<RestStream['lookup']>>({ path: TEXT, record: FIELD_PATH }, ['path']),
  },
  ['name', 'path', 'key', 'page'],
)

/** Finds the first unknown field of a stream, with the known fields at that level; null if there is none. */
export function findUnknownField(
  value: unknown,
  schema: JsonSchema = REST_STREAM_SCHEMA,
  path = '',
): { readonly field: string; readonly known: readonly string[] } | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  const {
    properties = {},
    additionalProperties,
    allOf = [],
    else: otherwise,
  } = schema as {
    properties?: Readonly<Record<string, JsonSchema>>
    additionalProperties?: boolean
    allOf?: readonly KindCondition[]
    else?: JsonSchema
  }
  if (otherwise !== undefined) return findUnknownField(value, otherwise, path)
  for (const [name, fieldValue] of Object.entries(value)) {
    if (additionalProperties === false && !Object.hasOwn(properties, name))
      return { field: `${path}${name}`, known: Object.keys(properties) }
    const found = findUnknownField(fieldValue, properties[name] ?? {}, `${path}${name}.`)
    if (found !== null) return found
  }
  const kind = allOf.find((part) => part.if.properties.kind.const === (value as { kind?: unknown }).kind)
  return kind === undefined ? null : findUnknownField(value, kind.then, path)
}

interface KindCondition {
  readonly if: { readonly properties: { readonly kind: { readonly const: string } } }
  readonly then: JsonSchema
}
