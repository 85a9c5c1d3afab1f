import { CONNECTORS } from './connectors.ts'
import { whenEquals } from './when-equals.ts'

const NAME_SCHEMA = { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$' } as const
const GLOBS_SCHEMA = { type: 'array', items: { type: 'string', minLength: 1 } } as const

const SCHEDULE_SCHEMA = {
  anyOf: [{ type: 'string' }, { type: 'object', required: ['cron'], additionalProperties: false, properties: { cron: { type: 'string' }, zone: { type: 'string' } } }],
} as const

const STREAM_SCHEMA = {
  type: 'object',
  required: ['id'],
  additionalProperties: false,
  properties: {
    id: { ...NAME_SCHEMA, description: 'The name of the stream, <namespace>.<entity>: letters, digits, "_", "-" and ".". It stays when the table behind it is renamed, for its state is kept under it.' },
    key: { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1, uniqueItems: true, description: 'The fields that tell records apart. What the source declares unless given.' },
    cursor: { type: 'string', minLength: 1, description: 'The field that every change raises. Without one, all of the stream is read each time.' },
    schema_strategy: { enum: ['discovery', 'declared'], description: 'discovery: columns follow what lands. declared: records have to fit `schema`, and are put aside when they do not.' },
    schema: {
      anyOf: [{ type: 'object' }, { enum: ['evolve', 'freeze', 'quarantine'] }],
      description: 'A JSON Schema of the records; or, without one, what `schema_changes` takes.',
    },
    schema_changes: {
      enum: ['evolve', 'freeze', 'quarantine'],
      description: 'What a record does that the columns do not fit. evolve: a new member gets a column. freeze: no column is added, new members are kept in `_extra`. quarantine: the record is set apart.',
    },
    history: {
      description: 'How many days replaced and deleted versions are kept at least, however short the log is. As long as the log unless given, and with false.',
      anyOf: [{ const: false }, { type: 'object', required: ['keep_days'], additionalProperties: false, properties: { keep_days: { type: 'integer', minimum: 1 } } }],
    },
    deletes: {
      enum: ['hard', 'soft'],
      description: 'What a delete does to its row. hard: the row is removed from the table. soft: it stays with the values of its last version, and `_deleted_at` says when it was deleted.',
    },
    state_handling: { const: 'platform_registry', description: 'Where the position is kept: in the registry of the store, and nowhere else. A manifest never holds one.' },
    safety_window: { type: 'string', pattern: '^P(?:\\d+D)?(?:T(?:\\d+H)?(?:\\d+M)?(?:\\d+(?:\\.\\d+)?S)?)?(?<![PT])$', description: 'How much every cycle reads again, as an ISO 8601 duration such as PT5M.' },
    mode: { enum: ['incremental', 'full_refresh'], description: 'incremental where there is a cursor, unless given.' },
    schedule: { ...SCHEDULE_SCHEMA, description: 'manual, continuous, an interval from 1m to 7d, or { cron, zone }.' },
    backfill_schedule: { ...SCHEDULE_SCHEMA, description: 'Of a stream that is followed: when all of it is read, to find what is gone where the source does not tell. By hand unless given.' },
    select: { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1, uniqueItems: true, description: 'The fields to read; all unless given.' },
    options: { type: 'object', description: 'What only streams of this connector have.' },
  },
  allOf: [whenEquals('schema_strategy', 'declared', { required: ['schema'], properties: { schema: { type: 'object' } } })],
} as const

/** Validates manifests, and is published as docs/reference/manifest.schema.json for editors. */
export const MANIFEST_SCHEMA = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'tidemark.yaml',
  type: 'object',
  required: ['connector', 'config'],
  additionalProperties: false,
  properties: {
    manifest_version: { const: 1 },
    name: { ...NAME_SCHEMA, description: 'What the registry calls the connector; the name of the file unless given.' },
    connector: { enum: Object.keys(CONNECTORS) },
    config: { type: 'object' },
    select: {
      type: 'object',
      additionalProperties: false,
      properties: {
        include: { ...GLOBS_SCHEMA, description: 'Streams to run: *, ? and {a,b} stand for what they usually do. All unless given.' },
        exclude: { ...GLOBS_SCHEMA, description: 'Streams to leave out, whatever `include` says.' },
        limit: { type: 'integer', minimum: 1, description: 'At most so many streams.' },
      },
    },
    streams: { type: 'array', items: STREAM_SCHEMA, description: 'Needed to run; `tidemark discover` lists what there is.' },
  },
  allOf: Object.entries(CONNECTORS).map(([name, { config, stream }]) => (
    whenEquals('connector', name, { properties: { config, streams: { items: { ...stream.required, properties: stream.properties } } } })
  )),
} as const
