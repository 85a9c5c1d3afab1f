import type { SyncContext } from '../../contract/index.ts'
import { Secret } from '../../redaction/secret.ts'
import { Origin } from '../../sources/kit/origin.ts'
import { sendRequest } from '../../sources/kit/send-request.ts'
import { encodeClientRequest } from '../../sources/kit/token-endpoint.ts'
import type { OAuthMethod, RevocationRequest } from '../define-provider.ts'
import { fillText, fillUrl, type TemplateValues } from '../fill-template.ts'
import type { ClientIdentity } from './token-requests.ts'

/** The tokens of a grant. */
export interface GrantTokens {
  readonly accessToken: string | null
  readonly refreshToken: string | null
}

/**
 * Ends the grant at the vendor. False if the vendor has no endpoint for it, or refused: the tokens are deleted here in
 * any case, and the user can remove the app in the vendor's settings.
 */
export async function revokeGrant(
  { revocation, clientAuth }: OAuthMethod,
  client: ClientIdentity,
  { accessToken, refreshToken }: GrantTokens,
  values: TemplateValues,
  context: SyncContext,
): Promise<boolean> {
  if (revocation === undefined) return false
  // RFC 7009: either token ends the grant. A vendor without refresh tokens gets the access token.
  const tokens = { access_token: accessToken ?? refreshToken ?? '', refresh_token: refreshToken ?? accessToken ?? '' }
  const filled: TemplateValues = {
    checked: values.checked,
    text: { ...values.text, ...tokens, client_id: client.id },
  }
  const url = fillUrl(revocation.url, filled)
  const { headers, body } = encode(revocation, client, clientAuth, filled)
  const label = `${revocation.method} ${url.hostname}`
  const response = await sendRequest(
    { method: revocation.method, url, label, headers, body },
    new Origin(url.origin),
    context,
  )
  await response.body?.cancel().catch(() => {})
  return response.ok
}

function encode(
  { auth = 'client', fields = {}, format = 'form', method }: RevocationRequest,
  { id, secret }: ClientIdentity,
  clientAuth: OAuthMethod['clientAuth'],
  values: TemplateValues,
): { headers: Record<string, string>; body: string | null } {
  const filled = Object.fromEntries(
    Object.entries(fields).map(([name, template]) => [name, fillText(template, values)]),
  )
  if (auth === 'client')
    return encodeClientRequest(
      {
        clientId: new Secret(id),
        clientSecret: secret === null ? null : new Secret(secret),
        // A DELETE with JSON, as GitHub expects it, authenticates the client with a header.
        clientAuth: method === 'DELETE' ? 'basic' : clientAuth,
        format,
      },
      filled,
    )
  return {
    headers: {
      accept: 'application/json',
      ...(Object.keys(filled).length > 0 && { 'content-type': 'application/x-www-form-urlencoded' }),
      ...(auth === 'bearer' && { authorization: `Bearer ${values.text['access_token'] ?? ''}` }),
    },
    body: Object.keys(filled).length > 0 ? new URLSearchParams(filled).toString() : null,
  }
}
