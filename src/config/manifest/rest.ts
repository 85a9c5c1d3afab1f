import { REST_STREAM } from '../../sources/rest/stream-schema.ts'
import type { JsonSchema } from '../schema.ts'
import { AUTH, authOf } from './auth.ts'
import { given, object, TEXT, type Connector, type OpenedStream } from './connector.ts'

/** The manifest itself names a stream, its key and its cursor. */
const { name: _name, key: _key, updatedAt: _updatedAt, ...OPTIONS } = REST_STREAM['properties'] as Readonly<Record<string, JsonSchema>>

/** Any HTTP API. */
export const rest: Connector = {
  config: object({
    base_url: { ...TEXT, description: 'what all paths are below; ${NAME} in it is read from the environment' },
    auth: AUTH,
  }, ['base_url']),
  stream: {
    required: { required: ['key', 'options'] },
    properties: {
      options: object(OPTIONS, ['path', 'page']),
      select: { not: {}, description: 'of this connector: name the fields in `options.query`, as the API has them' },
      safety_window: { not: {}, description: 'of this connector: give `options.lagMs`, or `overlapMs` in `options.follow`' },
    },
  },
  async open(config) {
    const { rest: open } = await import('../../sources/rest/source.ts')
    const auth = await authOf(config.auth)
    return {
      stream({ id, key, cursor, mode, options = {} }) {
        const { follow, ...listed } = options as any
        const followed = mode === 'full_refresh' ? {} : given({ follow })
        const source = open({ baseUrl: config.base_url, ...auth, streams: [{ name: id, key: key!.length === 1 ? key![0]! : key!, ...given({ updatedAt: cursor }), ...listed, ...followed }] })
        return source[id] as OpenedStream
      },
    }
  },
}
