import { SyncError } from '../contract/index.ts'
import { readRedirect } from '../http/follow-redirects.ts'
import { isPublicHost } from './public-address.ts'

/** One request of a redirect chain. */
export interface Hop {
  readonly url: URL
  readonly method: string
  readonly headers: Headers
  readonly body: RequestInit['body'] | null
  /** Reached by a redirect from another origin, so only public addresses are allowed. */
  readonly isCrossOrigin: boolean
}

/** Headers without credentials. All others, such as `x-api-key` and Authorization, are not sent to another origin. */
const CROSS_ORIGIN_HEADERS = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'if-modified-since',
  'if-none-match',
  'range',
  'user-agent',
])

/** The next request of the chain; null if the response is final. Throws SOURCE_INVALID for an unsafe redirect. */
export function resolveRedirect(response: Response, hop: Hop): Hop | null {
  const redirect = readRedirect(response, hop.url)
  if (redirect === null) return null
  const { url } = redirect
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new SyncError('SOURCE_INVALID', `${hop.url.origin} redirects to something that is not an http or https URL.`)
  }
  url.username = ''
  url.password = ''
  const drops = response.status === 303 ? hop.method !== 'HEAD' : response.status < 303 && hop.method === 'POST'
  const method = drops ? 'GET' : hop.method
  const body = drops ? null : hop.body
  const headers = new Headers(hop.headers)
  if (drops)
    for (const name of ['content-type', 'content-length', 'content-encoding', 'content-language']) headers.delete(name)
  if (url.origin === hop.url.origin) return { url, method, headers, body, isCrossOrigin: hop.isCrossOrigin }
  // A request body may contain a client secret.
  if (body !== null)
    throw new SyncError('SOURCE_INVALID', `${hop.url.origin} redirects a ${method} with its body to ${url.origin}.`)
  // SSRF: a source must not redirect into a private network and read its data through the synced rows.
  if (!isPublicHost(url.hostname))
    throw new SyncError(
      'SOURCE_INVALID',
      `${hop.url.origin} redirects to ${url.origin}, which was not followed because its address is not public.`,
    )
  return {
    url,
    method,
    headers: new Headers([...headers].filter(([name]) => CROSS_ORIGIN_HEADERS.has(name))),
    body,
    isCrossOrigin: true,
  }
}
