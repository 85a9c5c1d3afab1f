import { required } from '../../values/required.ts'
import { AUTH_SCHEMA, createAuth } from '../kit/config-auth.ts'
import { objectSchema, SELECTED_AFTER_READING, TEXT_SCHEMA, type JsonSchema } from '../../values/config-schema.ts'
import { defineSource, type SourceStream } from '../kit/define-source.ts'
import { omitUndefined } from '../kit/omit-undefined.ts'
import { REST_STREAM_SCHEMA } from './stream-schema.ts'
import type { RestStream } from './stream.ts'

/** Options that the stream itself sets: name, key and cursor. */
const {
  name: _name,
  key: _key,
  updatedAt: _updatedAt,
  ...OPTIONS
} = REST_STREAM_SCHEMA['properties'] as Readonly<Record<string, JsonSchema>>

/** Any HTTP API. */
export default defineSource({
  name: 'rest',
  title: 'REST',
  config: objectSchema(
    {
      base_url: { ...TEXT_SCHEMA, description: 'the base URL of all paths; ${NAME} is read from the environment' },
      auth: AUTH_SCHEMA,
    },
    ['base_url'],
  ),
  streams: {
    required: ['key', 'options'],
    options: objectSchema(OPTIONS, ['path', 'page']),
    fields: {
      select: SELECTED_AFTER_READING,
      safety_window: {
        not: {},
        description: 'not supported by this connector: set `options.lagMs`, or `overlapMs` in `options.follow`',
      },
    },
  },
  async open({ base_url: baseUrl, auth }) {
    const { rest } = await import('./source.ts')
    return { rest, options: { baseUrl, ...(await createAuth(auth)) } }
  },
  stream({ rest, options: shared }, { id, key, cursor, mode, options }) {
    // REST_STREAM_SCHEMA has one entry per field of RestStream, and the options were validated against it.
    const { follow, ...listed } = options as unknown as Omit<RestStream, 'name' | 'key' | 'updatedAt'>
    const [first, ...others] = required(key, '`key`')
    const stream = {
      name: id,
      key: others.length === 0 ? required(first, 'the field of `key`') : required(key, '`key`'),
      ...omitUndefined({ updatedAt: cursor }),
      ...listed,
      ...(mode === 'full_refresh' ? {} : omitUndefined({ follow })),
    }
    return rest({ ...shared, streams: [stream as RestStream] })[id] as SourceStream
  },
  template: {
    rank: 10,
    label: 'Any HTTP API, described declaratively',
    settings: { API_TOKEN: 'the token of the API' },
    database: 'customers',
  },
})
