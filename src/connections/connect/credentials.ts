import type { ConnectAttempt, ConnectionCredentials, OAuthCredentials } from '../../contract/index.ts'
import type { TokenGrant } from '../../sources/kit/token-endpoint.ts'
import type { FormAuth } from '../define-provider.ts'
import { fillUrl } from '../fill-template.ts'
import { requireOAuth, templateValues, type ResolvedProvider } from '../resolve-provider.ts'

/** A token is renewed this long before it expires, or at half its lifetime if that is later. */
const EXPIRY_MARGIN_MS = 30_000

/** The credentials of a connection that was authorized with OAuth. */
export function toOAuthCredentials(
  provider: ResolvedProvider,
  { accessToken, refreshToken, lifetimeMs }: TokenGrant,
  own: ConnectAttempt['client'],
  settings: Readonly<Record<string, string>>,
  now: number,
): OAuthCredentials {
  const { tokenUrl, clientAuth } = requireOAuth(provider)
  return {
    kind: 'oauth',
    accessToken,
    refreshToken,
    previousRefreshToken: null,
    expiresAt: lifetimeMs === null ? null : now + lifetimeMs,
    renewAt: lifetimeMs === null ? null : now + lifetimeMs - Math.min(EXPIRY_MARGIN_MS, lifetimeMs / 2),
    claimedUntil: null,
    retryAt: null,
    failures: 0,
    client:
      own === null
        ? null
        : {
            tokenUrl: fillUrl(tokenUrl, templateValues(provider, settings)).href,
            clientId: own.clientId,
            clientSecret: own.clientSecret,
            clientAuth,
            scope: null,
            parameters: {},
          },
    fields: {},
  }
}

/** The credentials of a connection that was authorized with a form. */
export function toFormCredentials(auth: FormAuth, entered: Readonly<Record<string, string>>): ConnectionCredentials {
  const fields: Record<string, string> = { ...entered }
  const take = (name: string): string => {
    const { [name]: value = '' } = fields
    delete fields[name]
    return value
  }
  switch (auth.kind) {
    case 'header':
      return { kind: 'api_key', key: take(auth.field), fields }
    case 'basic':
      return { kind: 'basic', user: take(auth.user), password: take(auth.password), fields }
    case 'kraken':
      return { kind: 'api_key', key: take(auth.key), fields }
    default:
      return auth satisfies never
  }
}
