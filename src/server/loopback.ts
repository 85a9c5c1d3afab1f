import type { IncomingHttpHeaders } from 'node:http'

/** A server on a loopback address is reachable from this machine only. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)
}

/**
 * A web page can make a local browser send requests, through DNS rebinding or across origins. Both are visible in
 * headers that a page cannot forge.
 */
export function isLocalRequest(headers: IncomingHttpHeaders): boolean {
  const { host = '', origin, 'sec-fetch-site': site } = headers
  // A proxy on this machine may forward requests from anywhere.
  if (FORWARDING_HEADERS.some((header) => headers[header] !== undefined)) return false
  const name = host.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
  if (!isLoopback(name)) return false
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  return origin === undefined || origin === `http://${host}`
}

/**
 * Cross-site pages can make a browser submit a form, but not with a custom header, so writes require one. Programs
 * outside a browser need none.
 */
export function passesCsrfCheck({
  method,
  headers,
}: {
  readonly method: string
  readonly headers: IncomingHttpHeaders
}): boolean {
  const isBrowser = headers.origin !== undefined || headers['sec-fetch-site'] !== undefined
  return method === 'GET' || method === 'HEAD' || !isBrowser || headers['x-tidemark-console'] !== undefined
}

const FORWARDING_HEADERS = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
  'cf-connecting-ip',
  'true-client-ip',
]
