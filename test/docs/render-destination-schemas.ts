import { DESTINATION } from '../../src/server/destination-routes.ts'

type Schema = Readonly<Record<string, unknown>>

const TEXT = { type: 'string' }
const TEXT_OR_NULL = { type: ['string', 'null'] }
const TEXTS = { type: 'array', items: TEXT }
const COUNT = { type: 'integer' }
const FLAG = { type: 'boolean' }
const TARGET = { worker: TEXT, file: TEXT, store: TEXT, tenant: TEXT }

/** Field names in snake_case, as in every document of the command line. */
const DESTINATION_DOCUMENT = toSnakeCase(DESTINATION)
const PROGRESS = (DESTINATION_DOCUMENT['properties'] as Record<string, Schema>)['databases']

/** The documents of `tidemark destinations … --json`, by verb. `status` has the same list. */
const DOCUMENTS: Readonly<Record<string, Schema>> = {
  list: document({ destinations: { type: 'array', items: DESTINATION_DOCUMENT } }),
  add: document({
    destination: TEXT,
    kind: TEXT,
    location: TEXT,
    mode: { enum: ['mirror', 'append', 'history'] },
    databases: TEXTS,
    dry_run: FLAG,
    written: { ...TEXTS, description: 'The files that were changed.' },
    variables: { ...TEXTS, description: 'The variables that hold its secrets.' },
    code: { ...TEXT_OR_NULL, description: 'The lines to add to a worker file; null for a manifest.' },
  }),
  run: document({
    ok: FLAG,
    destinations: {
      type: 'array',
      items: object({
        destination: TEXT,
        has_run: { ...FLAG, description: 'False if it is paused, or if another process runs it.' },
        changes: { ...COUNT, description: 'Changes applied in this run.' },
        databases: PROGRESS,
        error: { ...object({ code: TEXT, message: TEXT }), type: ['object', 'null'] },
        retry_at: TEXT_OR_NULL,
      }),
    },
  }),
  pause: document({ destination: TEXT, signal: { const: 'pause' } }),
  resume: document({ destination: TEXT, signal: { const: 'resume' } }),
  resync: document({ destination: TEXT, resync: TEXTS }),
  remove: document({ destination: TEXT, removed: FLAG, drops: TEXTS }),
}

/** docs/reference/destinations.schema.json: a definition for each verb. */
export function renderDestinationSchemas(): string {
  return `${JSON.stringify(
    {
      $schema: 'http://json-schema.org/draft-07/schema#',
      title: 'Documents of tidemark destinations --json',
      definitions: DOCUMENTS,
    },
    null,
    2,
  )}\n`
}

function document(fields: Readonly<Record<string, unknown>>): Schema {
  return object({ ...TARGET, ...fields })
}

function object(properties: Readonly<Record<string, unknown>>): Schema {
  return { type: 'object', properties, required: Object.keys(properties) }
}

function toSnakeCase(schema: Schema): Schema {
  const rename = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  const convert = (value: unknown, name: string): unknown => {
    if (name === 'required') return (value as string[]).map(rename)
    if (name === 'properties')
      return Object.fromEntries(
        Object.entries(value as Schema).map(([field, inner]) => [rename(field), toSnakeCase(inner as Schema)]),
      )
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? toSnakeCase(value as Schema) : value
  }
  return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, convert(value, name)]))
}
