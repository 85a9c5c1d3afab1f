import type { SyncContext } from '../../contract/index.ts'
import { Secret } from '../../redaction/secret.ts'
import { requestTokens, type TokenAnswer, type TokenEndpoint } from '../../sources/kit/token-endpoint.ts'
import type { OAuthMethod } from '../define-provider.ts'
import { fillUrl, type TemplateValues } from '../fill-template.ts'

/** The OAuth client that the vendor knows. */
export interface ClientIdentity {
  readonly id: string
  readonly secret: string | null
}

/** Exchanges an authorization code for tokens. */
export function exchangeCode(
  oauth: OAuthMethod,
  client: ClientIdentity,
  grant: { readonly code: string; readonly redirectUri: string; readonly codeVerifier: string },
  values: TemplateValues,
  context: SyncContext,
): Promise<TokenAnswer> {
  return requestTokens(
    toEndpoint(oauth, client, values),
    {
      grant_type: 'authorization_code',
      code: grant.code,
      redirect_uri: grant.redirectUri,
      ...(oauth.pkce !== 'unsupported' && { code_verifier: grant.codeVerifier }),
    },
    context,
  )
}

/** Renews the tokens of a connection. A vendor with rotating tokens accepts each refresh token once. */
export function refreshTokens(
  oauth: OAuthMethod,
  client: ClientIdentity,
  refreshToken: string,
  values: TemplateValues,
  context: SyncContext,
): Promise<TokenAnswer> {
  return requestTokens(
    toEndpoint(oauth, client, values),
    { grant_type: 'refresh_token', refresh_token: refreshToken },
    context,
  )
}

function toEndpoint(oauth: OAuthMethod, { id, secret }: ClientIdentity, values: TemplateValues): TokenEndpoint {
  const { clientAuth, tokenFormat, tokensAt } = oauth
  return {
    url: fillUrl(oauth.tokenUrl, values).href,
    clientId: new Secret(id),
    clientSecret: secret === null ? null : new Secret(secret),
    clientAuth,
    ...(tokenFormat !== undefined && { format: tokenFormat }),
    ...(tokensAt !== undefined && { tokensAt }),
  }
}

/**
 * Errors of a token endpoint that blame the client or the request. They say nothing about the user's grant: the
 * program's configuration is wrong, and a new authorization by the user would fail in the same way.
 */
const CLIENT_ERRORS = new Set([
  'invalid_client',
  'unauthorized_client',
  'incorrect_client_credentials',
  'redirect_uri_mismatch',
  'invalid_request',
  'invalid_scope',
  'unsupported_grant_type',
])

export function isClientError(reason: string | null): boolean {
  return reason !== null && CLIENT_ERRORS.has(reason)
}
