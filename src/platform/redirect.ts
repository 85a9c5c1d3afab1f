import { SyncError } from '../contract/index.ts'
import { isPublicHost } from './public-address.ts'

/** One request on the way to an answer. */
export interface Hop {
  readonly url: URL
  readonly method: string
  readonly headers: Headers
  readonly body: RequestInit['body'] | null
  /** Reached by a redirect from another origin: only public addresses are connected to. */
  readonly isCrossOrigin: boolean
}

/** Says nothing about who is asking. Everything else, an `x-api-key` as much as Authorization, stays with its origin. */
const CROSS_ORIGIN_HEADERS = new Set(['accept', 'accept-encoding', 'accept-language', 'cache-control', 'if-modified-since', 'if-none-match', 'range', 'user-agent'])

/** Where to ask next; null when this is the answer. Throws SOURCE_INVALID for a redirect that must not be followed. */
export function resolveRedirect(response: Response, hop: Hop): Hop | null {
  const location = response.headers.get('location')
  if (![301, 302, 303, 307, 308].includes(response.status) || location === null) return null
  const url = URL.canParse(location, hop.url.href) ? new URL(location, hop.url) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new SyncError('SOURCE_INVALID', `${hop.url.origin} redirects to something that is not an http or https URL.`)
  }
  url.username = ''
  url.password = ''
  const drops = response.status === 303 ? hop.method !== 'HEAD' : response.status < 303 && hop.method === 'POST'
  const method = drops ? 'GET' : hop.method
  const body = drops ? null : hop.body
  const headers = new Headers(hop.headers)
  if (drops) for (const name of ['content-type', 'content-length', 'content-encoding', 'content-language']) headers.delete(name)
  if (url.origin === hop.url.origin) return { url, method, headers, body, isCrossOrigin: hop.isCrossOrigin }
  // A body may hold a client secret as well as a header may.
  if (body !== null) throw new SyncError('SOURCE_INVALID', `${hop.url.origin} redirects a ${method} with its body to ${url.origin}.`)
  // A source must not point us into a private network and read what lives there through the rows that land.
  if (!isPublicHost(url.hostname)) throw new SyncError('SOURCE_INVALID', `${hop.url.origin} redirects to ${url.origin}, whose address is not public. It was not followed.`)
  return { url, method, headers: new Headers([...headers].filter(([name]) => CROSS_ORIGIN_HEADERS.has(name))), body, isCrossOrigin: true }
}
