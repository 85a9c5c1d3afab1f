import { SINCE_SCHEMA } from '../kit/since.ts'
import type { ErrorRule, WaitRule } from './error-rules.ts'
import type { RecordFilter } from './record-filter.ts'
import type { FormBody, GraphqlQuery, JsonBody, RequestTemplate, TextTemplate } from './request-template.ts'
import type { CsvRule } from './response-format.ts'
import type {
  DeletesStream,
  EventPaging,
  ExportDownload,
  ExportPaging,
  ExportPoll,
  KeysetPaging,
  LinkPaging,
  ListPartitions,
  OffsetPaging,
  PageNumberPaging,
  PageSizeParameter,
  ParentPartitions,
  RelayPaging,
  RestStream,
  TimestampPaging,
  TokenPaging,
  NoPaging,
  WindowPaging,
  WindowPartitions,
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
const SCALAR_TYPES = ['string', 'number', 'boolean']
const QUERY = {
  type: 'object',
  additionalProperties: {
    anyOf: [{ type: [...SCALAR_TYPES, 'null'] }, { type: 'array', items: { type: [...SCALAR_TYPES, 'null'] } }],
  },
}
const TIME = { enum: ['iso', 'ms', 's', 'date'] }
const TEXTS = { type: 'array', items: { type: 'string' } }
const VALUES = { type: 'array', items: { type: [...SCALAR_TYPES, 'null'] }, minItems: 1 }
const STATUSES = { type: 'array', items: { type: 'integer', minimum: 100, maximum: 599 }, minItems: 1 }
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

const BODY = {
  type: 'object',
  // One schema with all fields, so that an unknown one is found by name; exactly one of the three forms is needed.
  ...createObjectSchema<JsonBody & FormBody & TextTemplate>({
    json: {},
    form: { type: 'object', additionalProperties: { type: SCALAR_TYPES } },
    text: TEXT,
    type: TEXT,
  }),
  oneOf: [{ required: ['json'] }, { required: ['form'] }, { required: ['text'] }],
}
const REQUEST: SchemaProperties<RequestTemplate> = {
  path: { type: 'string' },
  method: { enum: ['GET', 'POST'] },
  query: QUERY,
  headers: { type: 'object', additionalProperties: { type: 'string' } },
  body: BODY,
  graphql: createObjectSchema<GraphqlQuery>({ query: TEXT, variables: { type: 'object' } }, ['query']),
  defaults: { type: 'object', additionalProperties: { type: SCALAR_TYPES } },
}

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
  relay: createObjectSchema<RelayPaging>({ kind: {}, parameter: TEXT, size: SIZE }),
  export: createObjectSchema<ExportPaging>(
    {
      kind: {},
      job: FIELD_PATH,
      poll: createObjectSchema<ExportPoll>(
        {
          path: TEXT,
          status: FIELD_PATH,
          done: TEXTS,
          failed: TEXTS,
          total: FIELD_PATH,
          everyMs: MILLISECONDS,
          maxMs: MILLISECONDS,
        },
        ['path', 'status', 'done'],
      ),
      download: createObjectSchema<ExportDownload>({
        path: TEXT,
        urls: FIELD_PATH,
        baseUrl: TEXT,
        next: createObjectSchema<{ header: string; parameter: string }>({ header: TEXT, parameter: TEXT }, [
          'header',
          'parameter',
        ]),
      }),
    },
    ['job', 'poll', 'download'],
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

const { none, token, link, keyset, timestamp, relay } = PAGING_SCHEMAS
const window = createObjectSchema<WindowPaging>(
  {
    kind: {},
    since: TEXT,
    until: TEXT,
    page: createKindSchema({ none, token, link, relay }),
    overlapMs: MILLISECONDS,
    step: TEXT,
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

const ERROR_RULE = createObjectSchema<ErrorRule>(
  {
    status: STATUSES,
    at: FIELD_PATH,
    are: VALUES,
    text: TEXT,
    action: { enum: ['ignore', 'retry', 'rate-limited', 'unauthorized', 'fail'] },
    wait: createObjectSchema<WaitRule>({ header: TEXT, at: FIELD_PATH, unit: { enum: ['s', 'ms', 'time'] } }),
  },
  ['action'],
)

const deleted = createObjectSchema<DeletesStream>(
  {
    ...REQUEST,
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
    ...REQUEST,
    records: FIELD_PATH,
    decode: {
      anyOf: [
        { type: 'string', enum: ['json', 'ndjson', 'csv', 'xml'] },
        createObjectSchema<CsvRule>({ kind: { const: 'csv' }, delimiter: TEXT, columns: TEXTS }, ['kind']),
      ],
    },
    filter: {
      type: 'array',
      items: createObjectSchema<RecordFilter>({ at: FIELD_PATH, are: VALUES, not: VALUES }, ['at']),
    },
    errors: { type: 'array', items: ERROR_RULE },
    since: SINCE_SCHEMA,
    partitions: createObjectSchema<ParentPartitions & ListPartitions & WindowPartitions>({
      parent: TEXT,
      values: { type: 'array', items: TEXT, minItems: 1, uniqueItems: true },
      include: { type: 'object', additionalProperties: TEXT },
      concurrency: { type: 'integer', minimum: 1, maximum: 32 },
      since: TEXT,
      until: TEXT,
      from: TEXT,
      step: TEXT,
      time: TIME,
    }),
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
): UnknownField | null {
  if (typeof value !== 'object' || value === null) return null
  const {
    properties = {},
    additionalProperties,
    allOf = [],
    anyOf = [],
    items = {},
    else: otherwise,
  } = schema as NestedSchema
  if (Array.isArray(value)) return findFirst(value, (item, index) => findUnknownField(item, items, `${path}${index}.`))
  if (otherwise !== undefined) return findUnknownField(value, otherwise, path)
  for (const [name, fieldValue] of Object.entries(value)) {
    if (additionalProperties === false && !Object.hasOwn(properties, name))
      return { field: `${path}${name}`, known: Object.keys(properties) }
    const found = findUnknownField(fieldValue, properties[name] ?? {}, `${path}${name}.`)
    if (found !== null) return found
  }
  const kind = allOf.find((part) => part.if.properties.kind.const === (value as { kind?: unknown }).kind)
  const schemas = [...(kind === undefined ? [] : [kind.then]), ...anyOf.filter(({ type }) => type === 'object')]
  return findFirst(schemas, (part) => findUnknownField(value, part, path))
}

export interface UnknownField {
  readonly field: string
  readonly known: readonly string[]
}

function findFirst<T>(items: readonly T[], find: (item: T, index: number) => UnknownField | null): UnknownField | null {
  for (const [index, item] of items.entries()) {
    const found = find(item, index)
    if (found !== null) return found
  }
  return null
}

interface NestedSchema {
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: boolean
  readonly allOf?: readonly KindCondition[]
  readonly anyOf?: readonly JsonSchema[]
  readonly items?: JsonSchema
  readonly else?: JsonSchema
}

interface KindCondition {
  readonly if: { readonly properties: { readonly kind: { readonly const: string } } }
  readonly then: JsonSchema
}
