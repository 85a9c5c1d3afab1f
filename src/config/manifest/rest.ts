import { given, object, SECRET, TEXT, type Connector, type OpenedStream } from './connector.ts'
import { when } from './when.ts'

/** Any HTTP API. */
export const rest: Connector = {
  config: object({
    base_url: { ...TEXT, description: 'what all paths are below; ${NAME} in it is read from the environment' },
    auth: {
      type: 'object',
      required: ['kind'],
      properties: { kind: { enum: ['bearer', 'api_key', 'basic'] }, token: SECRET, key: SECRET, user: SECRET, password: SECRET, header: TEXT, prefix: { type: 'string' } },
      additionalProperties: false,
      allOf: [when('kind', 'bearer', { required: ['token'] }), when('kind', 'api_key', { required: ['key', 'header'] }), when('kind', 'basic', { required: ['user', 'password'] })],
    },
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
    const { apiKey, basic, bearer, rest: open } = await import('../../sources/rest/source.ts')
    const { auth } = config
    const made = auth === undefined ? undefined : auth.kind === 'bearer' ? bearer(auth.token) : auth.kind === 'basic' ? basic(auth) : apiKey(auth)
    return {
      stream({ id, key, cursor, mode, options = {} }) {
        const { follow, ...listed } = options as any
        const followed = mode === 'full_refresh' ? {} : given({ follow })
        const source = open({ baseUrl: config.base_url, ...given({ auth: made }), streams: [{ name: id, key: key!.length === 1 ? key![0]! : key!, ...given({ updatedAt: cursor }), ...listed, ...followed }] })
        return source[id] as OpenedStream
      },
    }
  },
}
