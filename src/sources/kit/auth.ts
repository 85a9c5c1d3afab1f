import type { SyncContext } from '../../contract/index.ts'
import { Secret } from '../../redaction/secret.ts'

/** What one request carries to say who is asking. */
export interface Credentials {
  readonly headers: Readonly<Record<string, Secret>>
  readonly query: Readonly<Record<string, Secret>>
}

export interface Auth {
  credentials(context: SyncContext): Promise<Credentials>
  /** Newer credentials than the refused ones; null when these are all there are. */
  renew(refused: Credentials, context: SyncContext): Promise<Credentials | null>
}

/** The name of a secret, looked up when it is needed, or the secret itself. */
export type SecretSource = string | Secret

export const anonymous: Auth = createStaticAuth(() => ({ headers: {}, query: {} }))

/** In a header where the source allows it: a query may end up in the source's own logs. */
export function apiKey(options: { header: string; key: SecretSource; prefix?: string } | { query: string; key: SecretSource }): Auth {
  if ('query' in options) return createStaticAuth((context) => ({ headers: {}, query: { [options.query]: resolveSecret(options.key, context) } }))
  return createStaticAuth((context) => ({ headers: { [options.header]: new Secret(`${options.prefix ?? ''}${resolveSecret(options.key, context).reveal()}`) }, query: {} }))
}

export function bearer(token: SecretSource): Auth {
  return apiKey({ header: 'authorization', key: token, prefix: 'Bearer ' })
}

export function basic({ user, password }: { user: SecretSource; password: SecretSource }): Auth {
  return createStaticAuth((context) => ({ headers: { authorization: createBasicHeader(resolveSecret(user, context), resolveSecret(password, context)) }, query: {} }))
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
