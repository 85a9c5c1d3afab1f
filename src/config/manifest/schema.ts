import { SCALAR_TYPES } from '../../contract/index.ts'
import type { DestinationDescriptor } from '../../destinations/kit/define-destination.ts'
import { DESTINATIONS } from '../../destinations/registry.ts'
import { whenEquals } from '../../values/config-schema.ts'
import { CONNECTORS } from './connectors.ts'

const NAME_SCHEMA = { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$' } as const
const GLOBS_SCHEMA = { type: 'array', items: { type: 'string', minLength: 1 } } as const

const FIELDS_SCHEMA = {
  type: 'array',
  items: { type: 'string', minLength: 1 },
  minItems: 1,
  uniqueItems: true,
} as const

const SCHEDULE_SCHEMA = {
  anyOf: [
    { type: 'string' },
    {
      type: 'object',
      required: ['cron'],
      additionalProperties: false,
      properties: { cron: { type: 'string' }, zone: { type: 'string' } },
    },
  ],
} as const

const STREAM_SCHEMA = {
  type: 'object',
  required: ['id'],
  additionalProperties: false,
  properties: {
    id: {
      ...NAME_SCHEMA,
      description:
        'The name of the stream, <namespace>.<entity>: letters, digits, "_", "-" and ".". The state is stored under it, so it must not change when the table is renamed.',
    },
    key: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      minItems: 1,
      uniqueItems: true,
      description: 'The fields that identify a record. Default: the key that the source declares.',
    },
    cursor: {
      type: 'string',
      minLength: 1,
      description: 'The field that increases with every change. Without one, every cycle reads the whole stream.',
    },
    schema_strategy: {
      enum: ['discovery', 'declared'],
      description:
        'discovery: columns follow the records. declared: records must match `schema`, or they are quarantined.',
    },
    schema: {
      anyOf: [{ type: 'object' }, { enum: ['evolve', 'freeze', 'quarantine'] }],
      description: 'A JSON Schema of the records, or a value of `schema_changes`.',
    },
    schema_changes: {
      enum: ['evolve', 'freeze', 'quarantine'],
      description:
        'What happens to a record that does not fit the columns. evolve: a new field gets a column. freeze: no column is added, new fields are stored in `_extra`. quarantine: the record is quarantined.',
    },
    history: {
      description:
        'The minimum number of days to keep replaced and deleted versions. By default, and with false, they are kept as long as the log.',
      anyOf: [
        { const: false },
        {
          type: 'object',
          required: ['keep_days'],
          additionalProperties: false,
          properties: { keep_days: { type: 'integer', minimum: 1 } },
        },
      ],
    },
    deletes: {
      enum: ['hard', 'soft'],
      description:
        'What a delete does to the row. hard: the row is removed from the table. soft: the row keeps its last values, and `_deleted_at` is set.',
    },
    state_handling: {
      const: 'platform_registry',
      description: 'The state is always stored in the registry of the store, never in a manifest.',
    },
    safety_window: {
      type: 'string',
      pattern: '^P(?:\\d+D)?(?:T(?:\\d+H)?(?:\\d+M)?(?:\\d+(?:\\.\\d+)?S)?)?(?<![PT])$',
      description: 'The overlap that every cycle reads again, as an ISO 8601 duration such as PT5M.',
    },
    mode: { enum: ['incremental', 'full_refresh'], description: 'Default: incremental if there is a cursor.' },
    schedule: { ...SCHEDULE_SCHEMA, description: 'manual, continuous, an interval from 1m to 7d, or { cron, zone }.' },
    backfill_schedule: {
      ...SCHEDULE_SCHEMA,
      description:
        'When an incremental stream is read in full, to detect deletions that the source does not report. Default: manual.',
    },
    after: {
      type: 'array',
      items: NAME_SCHEMA,
      minItems: 1,
      uniqueItems: true,
      description:
        'The ids of streams that have to complete before each start of this one. Without a `schedule`, it runs whenever they have.',
    },
    select: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      minItems: 1,
      uniqueItems: true,
      description: 'The fields to read, or to keep of what the source returns. Default: all.',
    },
    drop: { ...FIELDS_SCHEMA, description: 'The fields to remove before a record is stored.' },
    rename: {
      type: 'object',
      minProperties: 1,
      additionalProperties: { type: 'string', minLength: 1 },
      description: 'Field → the name to store it under.',
    },
    cast: {
      type: 'object',
      minProperties: 1,
      additionalProperties: { enum: SCALAR_TYPES.flatMap((type) => [type, `${type}[]`]) },
      description: 'Field → the column type to convert its values to.',
    },
    hash: {
      ...FIELDS_SCHEMA,
      description: 'The fields to replace by a hash that is salted per tenant. Equal values have equal hashes.',
    },
    mask: {
      type: 'object',
      minProperties: 1,
      additionalProperties: { anyOf: [{ type: 'integer', minimum: 0 }, { type: 'string' }] },
      description: 'Field → the number of last characters to keep, or a text to store instead.',
    },
    encrypt: {
      ...FIELDS_SCHEMA,
      description: 'The fields to encrypt with the key of the tenant. `tidemark query --reveal` shows their values.',
    },
    options: { type: 'object', description: 'Options that are specific to the connector.' },
  },
  allOf: [
    whenEquals('schema_strategy', 'declared', { required: ['schema'], properties: { schema: { type: 'object' } } }),
  ],
} as const

/** An entry of `destinations`. */
export const DESTINATION_SCHEMA = {
  type: 'object',
  required: ['name', 'connector', 'config'],
  additionalProperties: false,
  properties: {
    name: {
      ...NAME_SCHEMA,
      description: 'The name of the destination in `tidemark destinations`. Its status is stored under it.',
    },
    connector: { enum: Object.keys(DESTINATIONS) },
    config: { type: 'object' },
    databases: {
      type: 'array',
      items: { type: 'string', minLength: 1 },
      minItems: 1,
      uniqueItems: true,
      description: 'The ids of the streams to copy. Default: all.',
    },
    mode: {
      enum: ['mirror', 'append', 'history'],
      description:
        'mirror: the current rows. append: every change is a row. history: every version is a row with its validity. Default: mirror.',
    },
    schedule: {
      ...SCHEDULE_SCHEMA,
      description: 'manual, continuous, an interval from 1m to 7d, or { cron, zone }. Default: continuous.',
    },
    children: {
      type: 'object',
      additionalProperties: { type: 'array', items: { type: 'string', minLength: 1 }, uniqueItems: true },
      description: 'Fields with an array of objects that become child tables, by database. For SQL destinations.',
    },
  },
  allOf: Object.entries<DestinationDescriptor>(DESTINATIONS).map(([name, { config }]) =>
    whenEquals('connector', name, { properties: { config } }),
  ),
} as const

/** Validates manifests. Published as docs/reference/manifest.schema.json for editors. */
export const MANIFEST_SCHEMA = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'tidemark.yaml',
  type: 'object',
  required: ['connector', 'config'],
  additionalProperties: false,
  properties: {
    manifest_version: { const: 1 },
    name: { ...NAME_SCHEMA, description: 'The name of the worker in the registry. Default: the name of the file.' },
    connector: { enum: Object.keys(CONNECTORS) },
    config: { type: 'object' },
    select: {
      type: 'object',
      additionalProperties: false,
      properties: {
        include: {
          ...GLOBS_SCHEMA,
          description: 'Glob patterns of streams to run, with *, ? and {a,b}. Default: all.',
        },
        exclude: { ...GLOBS_SCHEMA, description: 'Glob patterns of streams to exclude; they override `include`.' },
        limit: { type: 'integer', minimum: 1, description: 'The maximum number of streams.' },
      },
    },
    streams: {
      type: 'array',
      items: STREAM_SCHEMA,
      description: 'Required to run. `tidemark discover` lists the available streams.',
    },
    destinations: {
      type: 'array',
      items: DESTINATION_SCHEMA,
      description: 'Other systems that receive the copy. `tidemark destinations add` writes an entry.',
    },
  },
  allOf: Object.entries(CONNECTORS).map(([name, { config, stream }]) =>
    whenEquals('connector', name, {
      properties: { config, streams: { items: stream } },
    }),
  ),
} as const
