import { REST_STREAM_SCHEMA } from '../../sources/rest/stream-schema.ts'
import type { JsonSchema } from '../../worker/schema.ts'
import { AUTH_SCHEMA, createAuth } from './auth.ts'
import { omitUndefined, objectSchema, TEXT_SCHEMA, type Connector, type ConnectorStream } from './connector.ts'

/** The manifest itself names a stream, its key and its cursor. */
const { name: _name, key: _key, updatedAt: _updatedAt, ...OPTIONS } = REST_STREAM_SCHEMA['properties'] as Readonly<Record<string, JsonSchema>>

/** Any HTTP API. */
export const rest: Connector = {
  config: objectSchema({
    base_url: { ...TEXT_SCHEMA, description: 'what all paths are below; ${NAME} in it is read from the environment' },
    auth: AUTH_SCHEMA,
  }, ['base_url']),
  stream: {
    required: { required: ['key', 'options'] },
    properties: {
      options: objectSchema(OPTIONS, ['path', 'page']),
      select: { not: {}, description: 'of this connector: name the fields in `options.query`, as the API has them' },
      safety_window: { not: {}, description: 'of this connector: give `options.lagMs`, or `overlapMs` in `options.follow`' },
    },
  },
  async open(config) {
    const { rest: open } = await import('../../sources/rest/source.ts')
    const auth = await createAuth(config.auth)
    return {
      stream({ id, key, cursor, mode, options = {} }) {
        const { follow, ...listed } = options as any
        const followed = mode === 'full_refresh' ? {} : omitUndefined({ follow })
        const source = open({ baseUrl: config.base_url, ...auth, streams: [{ name: id, key: key!.length === 1 ? key![0]! : key!, ...omitUndefined({ updatedAt: cursor }), ...listed, ...followed }] })
        return source[id] as ConnectorStream
      },
    }
  },
}
