import { required } from '../../values/required.ts'
import { AUTH_SCHEMA, createAuth } from '../kit/config-auth.ts'
import {
  CONNECTION_SCHEMA,
  type JsonSchema,
  objectSchema,
  SELECTED_AFTER_READING,
  TEXT_SCHEMA,
} from '../../values/config-schema.ts'
import { defineSource, type SourceStream, type StreamDeclaration } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { fromManifest, toManifestSchema } from './manifest-schema.ts'
import { REST_STREAM_SCHEMA } from './stream-schema.ts'
import type { RestStream } from './stream.ts'

/** Options that the stream itself sets: name, key and cursor. */
const {
  name: _name,
  key: _key,
  updatedAt: _updatedAt,
  ...FIELDS
} = REST_STREAM_SCHEMA['properties'] as Readonly<Record<string, JsonSchema>>
const OPTIONS_SCHEMA = objectSchema(FIELDS, ['path', 'page'])

/** Any HTTP API. */
export default defineSource({
  name: 'rest',
  title: 'REST',
  times: { since: true, range: true },
  packages: ['csv-parse/sync'],
  config: objectSchema(
    {
      base_url: { ...TEXT_SCHEMA, description: 'the base URL of all paths; ${NAME} is read from the environment' },
      auth: AUTH_SCHEMA,
      connection: CONNECTION_SCHEMA,
    },
    ['base_url'],
  ),
  streams: {
    required: ['key', 'options'],
    options: toManifestSchema(OPTIONS_SCHEMA) as typeof OPTIONS_SCHEMA,
    fields: {
      select: SELECTED_AFTER_READING,
      safety_window: {
        not: {},
        description: 'not supported by this connector: set `options.lag_ms`, or `overlap_ms` in `options.follow`',
      },
    },
  },
  async open({ base_url: baseUrl, auth, connection }, { tokens }) {
    const { rest } = await import('./source.ts')
    return { rest, options: { baseUrl, ...(await createAuth(auth, tokens)), ...omitUndefined({ connection }) } }
  },
  stream({ rest, options: shared }, declaration, declared) {
    const stream = toStream(declaration)
    const parentId = stream.partitions !== undefined && 'parent' in stream.partitions ? stream.partitions.parent : null
    // Only the list of the parent is read.
    const parents = declared.filter(({ id }) => id === parentId && id !== stream.name)
    const streams = [stream, ...parents.map((parent) => toStream({ ...parent, mode: 'full_refresh' }))]
    return rest({ ...shared, streams })[stream.name] as SourceStream
  },
  template: {
    rank: 10,
    label: 'Any HTTP API, described declaratively',
    settings: { API_TOKEN: 'the token of the API' },
    database: 'customers',
  },
})

/** The stream of a manifest in the form of the code. */
export function toStream({ id, key, cursor, mode, options }: StreamDeclaration): RestStream {
  // REST_STREAM_SCHEMA has one entry per field of RestStream, and the options were validated against it.
  const { follow, ...listed } = fromManifest(options, OPTIONS_SCHEMA) as Omit<RestStream, 'name' | 'key' | 'updatedAt'>
  const [first, ...others] = required(key, '`key`')
  return {
    name: id,
    key: others.length === 0 ? required(first, 'the field of `key`') : required(key, '`key`'),
    ...omitUndefined({ updatedAt: cursor }),
    ...listed,
    ...(mode === 'full_refresh' ? {} : omitUndefined({ follow })),
  }
}
