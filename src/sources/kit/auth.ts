import { SyncError, type SyncContext } from '../../contract/index.ts'
import { Secret } from '../../redaction/secret.ts'

/** The headers and query parameters that authenticate a request. */
export interface Credentials {
  readonly headers: Readonly<Record<string, Secret>>
  readonly query: Readonly<Record<string, Secret>>
}

/** Authenticates the requests of a source, and renews credentials that the source refused. */
export interface Auth {
  credentials(context: SyncContext): Promise<Credentials>
  /** Returns newer credentials than the refused ones; null if there are none. */
  renew(refused: Credentials, context: SyncContext): Promise<Credentials | null>
}

/** The name of a secret, resolved when it is used, or the secret itself. */
export type SecretSource = string | Secret

/** Sends requests without credentials. */
export const anonymous: Auth = createStaticAuth(() => ({ headers: {}, query: {} }))

/** Prefer a header: a query parameter may end up in the access logs of the source. */
export function apiKey(
  options: { header: string; key: SecretSource; prefix?: string } | { query: string; key: SecretSource },
): Auth {
  if ('query' in options)
    return createStaticAuth((context) => ({
      headers: {},
      query: { [options.query]: resolveSecret(options.key, context) },
    }))
  return createStaticAuth((context) => ({
    headers: { [options.header]: new Secret(`${options.prefix ?? ''}${resolveSecret(options.key, context).reveal()}`) },
    query: {},
  }))
}

/**
 * Sends the token in the `Authorization` header.
 *
 * @example
 * ```ts
 * import { bearer, createHttpClient } from 'tidemark/connector'
 *
 * const http = createHttpClient({ baseUrl: 'https://api.example.com', auth: bearer('EXAMPLE_TOKEN') })
 * ```
 */
export function bearer(token: SecretSource): Auth {
  return apiKey({ header: 'authorization', key: token, prefix: 'Bearer ' })
}

/** Sends user and password as HTTP basic authentication. */
export function basic({ user, password }: { user: SecretSource; password: SecretSource }): Auth {
  return createStaticAuth((context) => ({
    headers: { authorization: createBasicHeader(resolveSecret(user, context), resolveSecret(password, context)) },
    query: {},
  }))
}

/** Returns the only authentication that is configured. Throws SYNC_INVALID with the message if there is none, or more. */
export function requireOneAuth(first: Auth | undefined, second: Auth | undefined, message: string, third?: Auth): Auth {
  const [auth, ...others] = [first, second, third].filter((given) => given !== undefined)
  if (auth === undefined || others.length > 0) throw new SyncError('SYNC_INVALID', message)
  return auth
}

export function createBasicHeader(user: Secret, password: Secret): Secret {
  return new Secret(`Basic ${Buffer.from(`${user.reveal()}:${password.reveal()}`).toString('base64')}`)
}

export function resolveSecret(source: SecretSource, { secrets }: SyncContext): Secret {
  return typeof source === 'string' ? new Secret(secrets.get(source)) : source
}

function createStaticAuth(credentials: (context: SyncContext) => Credentials): Auth {
  return {
    credentials: async (context) => credentials(context),
    renew: async () => null,
  }
}
