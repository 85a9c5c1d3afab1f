import { REST_STREAM_SCHEMA } from '../../sources/rest/stream-schema.ts'
import type { JsonSchema } from '../../worker/schema.ts'
import { AUTH_SCHEMA, createAuth } from './auth.ts'
import { omitUndefined, objectSchema, TEXT_SCHEMA, type Connector, type ConnectorStream } from './connector.ts'

/** Options that the stream itself sets: name, key and cursor. */
const {
  name: _name,
  key: _key,
  updatedAt: _updatedAt,
  ...OPTIONS
} = REST_STREAM_SCHEMA['properties'] as Readonly<Record<string, JsonSchema>>

/** Any HTTP API. */
export const rest: Connector = {
  config: objectSchema(
    {
      base_url: { ...TEXT_SCHEMA, description: 'the base URL of all paths; ${NAME} is read from the environment' },
      auth: AUTH_SCHEMA,
    },
    ['base_url'],
  ),
  stream: {
    required: { required: ['key', 'options'] },
    properties: {
      options: objectSchema(OPTIONS, ['path', 'page']),
      select: { not: {}, description: 'not supported by this connector: select fields in `options.query`' },
      safety_window: {
        not: {},
        description: 'not supported by this connector: set `options.lagMs`, or `overlapMs` in `options.follow`',
      },
    },
  },
  async open(config) {
    const { rest: open } = await import('../../sources/rest/source.ts')
    const auth = await createAuth(config.auth)
    return {
      stream({ id, key, cursor, mode, options = {} }) {
        const { follow, ...listed } = options as any
        const followed = mode === 'full_refresh' ? {} : omitUndefined({ follow })
        const source = open({
          baseUrl: config.base_url,
          ...auth,
          streams: [
            {
              name: id,
              key: key!.length === 1 ? key![0]! : key!,
              ...omitUndefined({ updatedAt: cursor }),
              ...listed,
              ...followed,
            },
          ],
        })
        return source[id] as ConnectorStream
      },
    }
  },
}
