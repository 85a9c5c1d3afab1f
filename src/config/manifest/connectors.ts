import { isAbsolute, join } from 'node:path'
import { SyncError, type Execute, type SyncContext } from '../../contract/index.ts'
import type { DiscoveredStream } from '../../sources/sql/source.ts'
import type { JsonSchema } from '../schema.ts'
import type { ManifestStream } from './manifest.ts'
import { when } from './when.ts'

/** Read whole each time, or followed. */
export type OpenedStream =
  | { readonly mode: 'replace'; readonly execute: Execute<any> }
  | { readonly backfill: Execute<any>; readonly delta: Execute<any>; readonly anchor: (context: SyncContext) => Promise<any> }

export interface OpenedConnector {
  stream(stream: ManifestStream): OpenedStream
}

export interface Connector {
  /** What `config` holds. `${NAME}` where it is a secret. */
  readonly config: JsonSchema
  /** What its streams need and may hold besides. */
  readonly stream: { readonly required?: JsonSchema; readonly properties: Readonly<Record<string, JsonSchema>> }
  /** The source's code is loaded only here. */
  open(config: any, folder: string): Promise<OpenedConnector>
  /** Whether changes are followed without a cursor to be named. */
  readonly isFollowed?: boolean
  discover?(config: any, folder: string, context: Pick<SyncContext, 'fetch' | 'clock' | 'secrets' | 'signal'>): Promise<DiscoveredStream[]>
}

/** A secret as it stands in a manifest: its name, and never itself. */
const SECRET = {
  type: 'string',
  pattern: '^\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}$',
  description: 'a secret: write ${NAME} here, and set NAME in the environment or in .env',
} as const

const TEXT = { type: 'string', minLength: 1 } as const

const AUTH = {
  type: 'object',
  required: ['kind'],
  properties: { kind: { enum: ['bearer', 'api_key', 'basic'] }, token: SECRET, key: SECRET, user: SECRET, password: SECRET, header: TEXT, prefix: { type: 'string' } },
  additionalProperties: false,
  allOf: [when('kind', 'bearer', { required: ['token'] }), when('kind', 'api_key', { required: ['key', 'header'] }), when('kind', 'basic', { required: ['user', 'password'] })],
}

/** What a manifest can name as `connector`. */
export const CONNECTORS: Readonly<Record<'sql' | 'odata' | 'rest' | 'stripe' | 'linear', Connector>> = {
  sql: {
    config: object({
      url: {
        type: 'string',
        pattern: '^(?:\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}|sqlite:.+|(?:postgres|postgresql|mysql|mariadb)://(?:[^:@/]+@)?[^@]*)$',
        description: 'postgres://…, mysql://…, mariadb://… or sqlite:file. With a password in it, it is a secret: write ${NAME} here, and set NAME in the environment or in .env',
      },
    }, ['url']),
    stream: { properties: { options: object({ table: TEXT, deleted: TEXT, page_size: { type: 'integer', minimum: 1 } }) } },
    async open(config, folder) {
      const { sql } = await import('../../sources/sql/source.ts')
      const source = sql({ url: urlIn(config.url, folder) })
      return {
        stream({ id, key, cursor, mode, select, safety_window: safetyWindow, options = {} }) {
          const { table = id, deleted, page_size: pageSize } = options as { table?: string; deleted?: string; page_size?: number }
          const shared = { ...given({ key, deleted, pageSize }), ...(select !== undefined && { columns: select }) }
          if (cursor === undefined || mode === 'full_refresh') return source.listing(table, shared)
          return source.table(table, { ...shared, cursor, ...given({ safetyWindow }) })
        },
      }
    },
    async discover(config, folder, context) {
      const { discover } = await import('../../sources/sql/source.ts')
      return discover({ url: urlIn(config.url, folder) }, context)
    },
  },
  odata: {
    config: object({ url: { ...TEXT, description: 'the root of the service; ${NAME} in it is read from the environment' }, auth: AUTH, query: { type: 'object', additionalProperties: { type: 'string' } } }, ['url']),
    stream: {
      properties: {
        options: object({
          entity_set: TEXT, filter: TEXT, deleted: TEXT, page_size: { type: 'integer', minimum: 1 }, lag_ms: { type: 'integer', minimum: 0 }, exact_cursor: { type: 'boolean' },
          delta_links: { type: 'boolean' },
        }),
      },
    },
    async open(config) {
      const { odata, ...auths } = await import('../../sources/odata/source.ts')
      const source = odata({ ...config, ...given({ auth: authOf(config.auth, auths) }) })
      return {
        stream({ id, key, cursor, mode, select, safety_window: safetyWindow, options = {} }) {
          const { entity_set: name = id.slice(id.lastIndexOf('.') + 1), filter, deleted, page_size: pageSize, lag_ms: lagMs, exact_cursor: exactCursor, delta_links: isTracked = false } = options as Record<string, any>
          const shared = given({ key, select, filter, pageSize })
          if (isTracked && [cursor, deleted, safetyWindow].some((value) => value !== undefined)) throw new SyncError('SYNC_INVALID', 'delta links tell all there is to tell: they go with no `cursor`, no `deleted` and no `safety_window`')
          if (mode === 'full_refresh' || (cursor === undefined && !isTracked)) return source.listing(name, { ...shared, ...given({ deleted }) })
          return isTracked ? source.tracked(name, shared) : source.entitySet(name, { ...shared, cursor: cursor!, ...given({ deleted, safetyWindow, lagMs, exactCursor }) })
        },
      }
    },
    async discover(config, _, context) {
      const { discover, ...auths } = await import('../../sources/odata/source.ts')
      return discover({ ...config, ...given({ auth: authOf(config.auth, auths) }) }, context)
    },
  },
  rest: {
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
      const { rest, ...auths } = await import('../../sources/rest/source.ts')
      const made = authOf(config.auth, auths)
      return {
        stream({ id, key, cursor, mode, options = {} }) {
          const { follow, ...listed } = options as any
          const followed = mode === 'full_refresh' ? {} : given({ follow })
          const source = rest({ baseUrl: config.base_url, ...given({ auth: made }), streams: [{ name: id, key: key!.length === 1 ? key![0]! : key!, ...given({ updatedAt: cursor }), ...listed, ...followed }] })
          return source[id] as OpenedStream
        },
      }
    },
  },
  stripe: vendor(true, { api_key: SECRET, base_url: TEXT }, async (config) => {
    const { stripe } = await import('../../sources/stripe/source.ts')
    return stripe({ apiKey: config.api_key, ...given({ baseUrl: config.base_url }) })
  }),
  linear: vendor(false, { api_key: SECRET, base_url: TEXT }, async (config) => {
    const { linear } = await import('../../sources/linear/source.ts')
    return linear({ apiKey: config.api_key, ...given({ baseUrl: config.base_url }) })
  }),
}

/** A system whose streams, keys and cursors are known: `options.stream` names one, or the end of the stream's id. */
function vendor(isFollowed: boolean, config: Record<string, JsonSchema>, open: (config: any) => Promise<Readonly<Record<string, OpenedStream>>>): Connector {
  const known = { not: {}, description: 'known of this connector, and cannot be chosen' }
  return {
    isFollowed,
    config: object(config, ['api_key']),
    stream: { properties: { options: object({ stream: TEXT }), key: known, cursor: known, select: known, safety_window: known } },
    async open(given) {
      const streams = await open(given)
      return {
        stream({ id, mode, options = {} }) {
          const name = (options as { stream?: string }).stream ?? id.slice(id.lastIndexOf('.') + 1)
          if (!Object.hasOwn(streams, name)) throw new SyncError('SOURCE_NOT_FOUND', `There is no stream "${name}"; there are ${Object.keys(streams).join(', ')}.`)
          const stream = streams[name]!
          return mode === 'full_refresh' && 'backfill' in stream ? { mode: 'replace', execute: stream.backfill } : stream
        },
      }
    },
    discover: async (given) => Object.keys(await open(given)).map((id) => ({ id, key: ['id'], candidates: [] })),
  }
}

/** Of a source's own ways to say who is asking. */
function authOf(auth: any, { apiKey, basic, bearer }: Pick<typeof import('../../sources/rest/source.ts'), 'apiKey' | 'basic' | 'bearer'>): ReturnType<typeof bearer> | undefined {
  if (auth === undefined) return undefined
  return auth.kind === 'bearer' ? bearer(auth.token) : auth.kind === 'basic' ? basic(auth) : apiKey(auth)
}

function urlIn(url: string, folder: string): string {
  const file = /^sqlite:(.+)$/.exec(url)?.[1]
  return file === undefined || isAbsolute(file) ? url : `sqlite:${join(folder, file)}`
}

function object(properties: Record<string, JsonSchema>, required: string[] = []): JsonSchema {
  return { type: 'object', properties, additionalProperties: false, ...(required.length > 0 && { required }) }
}

/** Only what was given: an option that is undefined is not the same as none. */
function given<Members extends object>(members: Members): { [Name in keyof Members]?: Exclude<Members[Name], undefined> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as { [Name in keyof Members]?: Exclude<Members[Name], undefined> }
}
