import { fillUrl, type TemplateValues } from '../fill-template.ts'
import type { OAuthMethod } from '../define-provider.ts'
import { createCodeChallenge } from './pkce.ts'

/** The facts of one authorization request. */
export interface AuthorizationRequest {
  readonly clientId: string
  readonly redirectUri: string
  readonly scopes: readonly string[]
  readonly state: string
  readonly codeVerifier: string
  readonly values: TemplateValues
}

/** The URL that the user's browser is sent to. */
export function buildAuthorizeUrl(oauth: OAuthMethod, request: AuthorizationRequest): URL {
  const { clientId, redirectUri, scopes, state, codeVerifier, values } = request
  const url = fillUrl(oauth.authorizeUrl, values)
  const fields = {
    ...oauth.authorizeFields,
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    ...(scopes.length > 0 && { scope: scopes.join(oauth.scopeSeparator ?? ' ') }),
    state,
    ...(oauth.pkce !== 'unsupported' && {
      code_challenge: createCodeChallenge(codeVerifier),
      code_challenge_method: 'S256',
    }),
  }
  for (const [name, value] of Object.entries(fields)) url.searchParams.set(name, value)
  return url
}
