import { SyncError, type ConnectionCredentials, type OAuthClient } from '../contract/index.ts'
import { didYouMean } from '../values/did-you-mean.ts'
import type { Provider } from './define-provider.ts'
import { PROVIDERS } from './registry.ts'

/** The kinds of credentials, and the names of their secrets. */
export const CREDENTIAL_FIELDS = {
  api_key: ['key'],
  basic: ['user', 'password'],
  oauth: ['access_token', 'refresh_token', 'token_url', 'client_id', 'client_secret', 'client_auth', 'scope'],
  none: [],
} as const satisfies Record<ConnectionCredentials['kind'], readonly string[]>

export type CredentialKind = keyof typeof CREDENTIAL_FIELDS

/** The kind of credentials of a provider's form; `oauth` if it has none. */
export function defaultKind(provider: string): CredentialKind {
  const { form } = (PROVIDERS as Readonly<Record<string, Provider>>)[provider] ?? {}
  if (form === undefined) return Object.hasOwn(PROVIDERS, provider) ? 'oauth' : 'api_key'
  return form.auth.kind === 'basic' ? 'basic' : 'api_key'
}

/** Builds credentials from named secrets. Names that the kind does not have become further fields. */
export function buildCredentials(
  provider: string,
  kind: CredentialKind,
  given: Readonly<Record<string, string>>,
): ConnectionCredentials {
  const { form } = (PROVIDERS as Readonly<Record<string, Provider>>)[provider] ?? {}
  const alias = form?.auth.kind === 'header' ? form.auth.field : form?.auth.kind === 'kraken' ? form.auth.key : 'key'
  const { [alias]: aliased, ...rest } = given
  const values = kind === 'api_key' && aliased !== undefined ? { ...rest, key: aliased } : given
  const known: readonly string[] = CREDENTIAL_FIELDS[kind]
  const take = (name: string): string | null => values[name] ?? null
  const require = (name: string): string => {
    const value = take(name)
    if (value !== null && value !== '') return value
    throw new SyncError('CONNECTION_INVALID', `Credentials of the kind ${kind} need the secret \`${name}\`.`)
  }
  const fields = Object.fromEntries(Object.entries(values).filter(([name]) => !known.includes(name)))
  switch (kind) {
    case 'api_key':
      return { kind, key: require('key'), fields }
    case 'basic':
      return { kind, user: require('user'), password: require('password'), fields }
    case 'none':
      return { kind, fields }
    case 'oauth': {
      const [unknown] = Object.keys(fields)
      if (unknown !== undefined)
        throw new SyncError(
          'CONNECTION_INVALID',
          `OAuth credentials have no secret \`${unknown}\`.${didYouMean(unknown, known)}`,
        )
      return {
        kind,
        accessToken: take('access_token'),
        refreshToken: take('refresh_token'),
        previousRefreshToken: null,
        expiresAt: null,
        // An access token of unknown age is used until the vendor refuses it.
        renewAt: null,
        claimedUntil: null,
        retryAt: null,
        failures: 0,
        client: take('client_id') === null ? null : buildClient(require, take),
        fields: {},
      }
    }
    default:
      return kind satisfies never
  }
}

function buildClient(require: (name: string) => string, take: (name: string) => string | null): OAuthClient {
  const clientAuth = take('client_auth') ?? 'basic'
  if (clientAuth !== 'basic' && clientAuth !== 'form')
    throw new SyncError('CONNECTION_INVALID', '`client_auth` must be basic or form.')
  return {
    tokenUrl: require('token_url'),
    clientId: require('client_id'),
    clientSecret: take('client_secret'),
    clientAuth,
    scope: take('scope'),
    parameters: {},
  }
}
