import { AUTH, authOf } from './auth.ts'
import { given, object, TEXT, type Connector, type OpenedStream } from './connector.ts'

/** Any HTTP API. */
export const rest: Connector = {
  config: object({
    base_url: { ...TEXT, description: 'what all paths are below; ${NAME} in it is read from the environment' },
    auth: AUTH,
  }, ['base_url']),
  stream: {
    required: { required: ['key', 'options'] },
    properties: {
      options: object({
        path: TEXT, query: { type: 'object' }, records: { type: 'string' }, time: { enum: ['iso', 'ms', 's'] }, deleted: TEXT, lagMs: { type: 'number', minimum: 0 },
        page: { type: 'object', required: ['kind'], properties: { kind: { enum: ['none', 'token', 'link', 'pageNumber', 'offset', 'keyset', 'timestamp'] } } },
        follow: { type: 'object', required: ['kind'], properties: { kind: { enum: ['keyset', 'timestamp', 'window', 'events'] } } },
        deletes: { anyOf: [{ enum: ['ignore', 'sweep'] }, { type: 'object' }] },
      }, ['path', 'page']),
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
