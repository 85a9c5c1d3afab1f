import {
  SyncError,
  type JsonValue,
  type SourceConnection,
  type SourceCredentials,
  type SyncContext,
} from '../../contract/index.ts'
import { Secret } from '../../redaction/secret.ts'
import { createBasicHeader, type Auth, type Credentials } from './auth.ts'

/** How an API key of a connection is sent. Default: as a bearer token. */
export interface KeyPlacement {
  readonly header?: string
  readonly query?: string
  readonly prefix?: string
}

/**
 * Authenticates requests with the tenant's connection. Credentials are read for every request, so that a renewal or a
 * rotation applies at once.
 */
export function connectionAuth(placement: KeyPlacement = {}): Auth {
  const used = new WeakMap<Credentials, SourceCredentials>()
  const remember = (found: SourceCredentials): Credentials => {
    const credentials = toRequestCredentials(found, placement)
    used.set(credentials, found)
    return credentials
  }
  return {
    credentials: async (context) => remember(await requireConnection(context).credentials(context)),
    async renew(refused, context) {
      const found = used.get(refused)
      return found === undefined ? null : remember(await requireConnection(context).renew(found, context))
    },
  }
}

/** A text setting of the tenant's connection; `fallback` if it has none. */
export function connectionSetting(name: string, fallback?: string): (context: SyncContext) => string {
  return (context) => {
    const connection = requireConnection(context)
    const value: JsonValue | undefined = Object.hasOwn(connection.settings, name) ? connection.settings[name] : fallback
    if (typeof value === 'string' && value !== '') return value
    throw new SyncError('CONNECTION_INVALID', `The connection ${connection.name} has no setting \`${name}\`.`)
  }
}

export function requireConnection({ connection }: SyncContext): SourceConnection {
  if (connection !== undefined) return connection
  throw new SyncError(
    'SYNC_INVALID',
    'The source reads with a connection, but its sync names none. Set `connection` of the sync.',
  )
}

function toRequestCredentials(credentials: SourceCredentials, { header, query, prefix }: KeyPlacement): Credentials {
  switch (credentials.kind) {
    case 'oauth':
      return { headers: { authorization: new Secret(`Bearer ${credentials.accessToken}`) }, query: {} }
    case 'basic': {
      const { user, password } = credentials
      return { headers: { authorization: createBasicHeader(new Secret(user), new Secret(password)) }, query: {} }
    }
    case 'api_key':
      return query === undefined
        ? {
            headers: {
              [header ?? 'authorization']: new Secret(
                `${prefix ?? (header === undefined ? 'Bearer ' : '')}${credentials.key}`,
              ),
            },
            query: {},
          }
        : { headers: {}, query: { [query]: new Secret(credentials.key) } }
    case 'none':
      return { headers: {}, query: {} }
    default:
      return credentials satisfies never
  }
}

/** Options of a source that can read with a connection. */
export interface ConnectionOption {
  /**
   * The name of the tenant's connection. Replaces the credentials and `auth`. Each tenant that has an active connection
   * of this name gets the syncs.
   */
  readonly connection?: string
}

/** The base URL of the connection's settings (`base_url`), else the given one. */
export function connectionBaseUrl(
  connection: string | undefined,
  baseUrl: string | ((context: SyncContext) => string),
): string | ((context: SyncContext) => string) {
  if (connection === undefined) return baseUrl
  return (context) => connectionSetting('base_url', typeof baseUrl === 'string' ? baseUrl : baseUrl(context))(context)
}

/** The URL of an instance with a path: of the option, else `instance_url` or `instance_host` of the connection. */
export function connectionInstanceUrl(
  source: string,
  connection: string | undefined,
  instanceUrl: string | undefined,
  path: string,
): string | ((context: SyncContext) => string) {
  const join = (url: string): string => `${url.replace(/\/+$/, '')}${path}`
  if (instanceUrl !== undefined) return join(instanceUrl)
  if (connection === undefined)
    throw new SyncError('SYNC_INVALID', `${source} needs \`instanceUrl\`, or a \`connection\` with it.`)
  return (context) => {
    const { instance_host: host } = requireConnection(context).settings
    return join(connectionSetting('instance_url', typeof host === 'string' ? `https://${host}` : undefined)(context))
  }
}

/** Functions of a stream that are no pages: they read with the connection of its sync. */
const OTHER_FUNCTIONS: readonly string[] = ['lookup', 'anchor', 'discover']
const PAGE_FUNCTIONS: readonly string[] = ['execute', 'backfill', 'delta']

/** Marks every stream of a source with the connection that it reads with, also streams that its methods return. */
export function withConnection<Streams>(connection: string | undefined, streams: Streams): Streams {
  return connection === undefined ? streams : (mark(connection, '', streams) as Streams)
}

function mark(connection: string, name: string, value: unknown): unknown {
  if (typeof value === 'function') {
    if (OTHER_FUNCTIONS.includes(name)) return value
    if (PAGE_FUNCTIONS.includes(name)) return Object.assign(value, { connection })
    return (...args: unknown[]): unknown => mark(connection, '', Reflect.apply(value, undefined, args))
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, mark(connection, key, member)]))
}
