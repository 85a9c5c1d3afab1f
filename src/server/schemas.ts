/** Every parameter and response schema is defined once: they validate requests and form the OpenAPI document. */

export type JsonSchema = Readonly<Record<string, unknown>>

export const LIMIT_MAX = 200
export const LIMIT_DEFAULT = 50
export const WAIT_MAX_S = 60

const TIME = {
  type: 'string',
  format: 'date-time',
  description: 'RFC 3339, UTC, milliseconds.',
  examples: ['2026-01-31T12:00:00.123Z'],
}
const CURSOR = {
  type: ['string', 'null'],
  description: 'Send it as `cursor` to continue. Opaque: its format may change.',
}

const limit = {
  type: 'integer',
  minimum: 1,
  maximum: LIMIT_MAX,
  default: LIMIT_DEFAULT,
  description: 'Maximum number of items.',
}
const cursor = {
  type: 'string',
  minLength: 1,
  maxLength: 4_096,
  description:
    'The value of `page.nextCursor`. Takes precedence over `updatedSince`. Valid for 7 days, for the endpoint and the types it was issued for.',
}
const updatedSince = {
  type: 'string',
  maxLength: 64,
  description: 'RFC 3339 timestamp with a time zone, inclusive: the start of a first incremental read.',
  examples: ['2026-01-31T12:00:00Z'],
}
const fields = {
  type: 'string',
  minLength: 1,
  maxLength: 4_096,
  description: 'Comma-separated top-level fields of the record to return; all if absent.',
  examples: ['name,email'],
}

/** Body fields that are also query parameters. */
export const BODY_FIELDS = { cursor, updatedSince }

export const LIST_QUERY = objectSchema({ cursor, updatedSince, limit, fields }, [])
export const ROW_QUERY = objectSchema({ fields }, [])
export const CHANGES_QUERY = objectSchema(
  {
    types: {
      type: 'string',
      minLength: 1,
      maxLength: 4_096,
      description:
        'Comma-separated names of databases or resource types; all if absent. With a cursor: the same as when it was issued, or absent.',
      examples: ['people,orders'],
    },
    cursor,
    updatedSince,
    limit,
    fields,
    wait: {
      type: 'integer',
      minimum: 0,
      maximum: WAIT_MAX_S,
      default: 0,
      description: 'If there are no changes, wait up to this many seconds for the next one (long polling).',
    },
  },
  [],
)

export const DATABASE_PARAMS = objectSchema({
  database: { type: 'string', minLength: 1, maxLength: 63, description: 'Name of a database.' },
})
export const ROW_PARAMS = objectSchema({
  ...(DATABASE_PARAMS['properties'] as object),
  key: { type: 'string', minLength: 1, maxLength: 1_024, description: 'Key of a row.' },
})
export const SYNC_PARAMS = objectSchema({
  worker: { type: 'string', minLength: 1, maxLength: 63 },
  sync: { type: 'string', minLength: 1, maxLength: 63 },
})
export const RECENT_QUERY = objectSchema({ limit: { ...limit, maximum: 1_000, default: 100 } }, [])

const record: JsonSchema = { type: 'object', additionalProperties: true, description: 'The record as stored.' }

const PAGE = {
  nextCursor: CURSOR,
  hasMore: {
    type: 'boolean',
    description: 'Whether to request the next page at once. A page may be short or empty and still have more.',
  },
  count: { type: 'integer' },
  limit: { type: 'integer' },
}

export const COMPONENTS: Readonly<Record<string, JsonSchema>> = {
  Error: objectSchema(
    {
      error: { type: 'string', description: 'A stable error code.' },
      message: { type: 'string', description: 'What happened and what to do next.' },
      status: { type: 'integer' },
      requestId: { type: 'string', description: 'Also in `X-Request-Id`.' },
      details: objectSchema(
        { reason: { type: 'string' }, restart: { type: 'string', enum: ['updatedSince', 'backfill'] } },
        [],
      ),
    },
    ['error', 'message', 'status', 'requestId'],
  ),
  Row: objectSchema({ id: { type: 'string' }, updatedAt: TIME, record }),
  Change: objectSchema({
    eventId: { type: 'string', description: 'Unique and stable: use it to detect duplicates.' },
    resourceType: { type: 'string', description: 'The declared resource type, or the singular of the database name.' },
    database: { type: 'string', description: 'Name of the database.' },
    resourceId: { type: 'string', description: 'Key of the row.' },
    action: { type: 'string', enum: ['created', 'updated', 'deleted'] },
    updatedAt: TIME,
    snapshot: {
      ...record,
      type: ['object', 'null'],
      description: 'The record after the change; null for a tombstone.',
    },
  }),
  ListPage: objectSchema(
    {
      ...PAGE,
      syncMode: { type: 'string', enum: ['full', 'incremental'] },
      certificate: {
        type: 'object',
        additionalProperties: true,
        description: 'The last comparison of the database with its source; absent if there was none.',
      },
    },
    [...Object.keys(PAGE), 'syncMode'],
  ),
  ChangesPage: objectSchema({
    ...PAGE,
    types: {
      type: ['array', 'null'],
      items: { type: 'string' },
      description: 'The types that the cursor is bound to; null for all.',
    },
  }),
}

export function schemaRef(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` }
}

export const LIST_RESPONSE = objectSchema({
  data: { type: 'array', items: schemaRef('Row') },
  page: schemaRef('ListPage'),
})
export const ROW_RESPONSE = objectSchema({ data: schemaRef('Row') })
export const CHANGES_RESPONSE = objectSchema({
  data: { type: 'array', items: schemaRef('Change') },
  page: schemaRef('ChangesPage'),
})

/** All properties are required by default. */
export function objectSchema(
  properties: Readonly<Record<string, unknown>>,
  required: readonly string[] = Object.keys(properties),
): JsonSchema {
  return { type: 'object', properties, ...(required.length > 0 && { required }) }
}
