import { signRequest } from '../sources/kraken/sign-request.ts'
import { Secret } from '../redaction/secret.ts'
import type { FormAuth } from './define-provider.ts'

/** A request before it is authenticated. */
export interface PlainRequest {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

/** Adds the access token of OAuth. */
export function withAccessToken(request: PlainRequest, accessToken: string): PlainRequest {
  return { ...request, headers: { ...request.headers, authorization: `Bearer ${accessToken}` } }
}

/** Adds the credentials of a form. */
export function withFormFields(
  request: PlainRequest,
  auth: FormAuth,
  fields: Readonly<Record<string, string>>,
  now: number,
): PlainRequest {
  const field = (name: string): string => fields[name] ?? ''
  switch (auth.kind) {
    case 'header':
      return { ...request, headers: { ...request.headers, [auth.header]: `${auth.prefix ?? ''}${field(auth.field)}` } }
    case 'basic': {
      const pair = Buffer.from(`${field(auth.user)}:${field(auth.password)}`).toString('base64')
      return { ...request, headers: { ...request.headers, authorization: `Basic ${pair}` } }
    }
    case 'kraken': {
      const form = new URLSearchParams({ nonce: String(now * 1_000) })
      return {
        ...request,
        headers: {
          ...request.headers,
          'content-type': 'application/x-www-form-urlencoded',
          'api-key': field(auth.key),
          'api-sign': signRequest(request.url.pathname, form, new Secret(field(auth.secret))),
        },
        body: form.toString(),
      }
    }
    default:
      return auth satisfies never
  }
}
