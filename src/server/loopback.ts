import type { IncomingHttpHeaders } from 'node:http'

/** A server that listens here is reached from this machine alone. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(?:\.\d{1,3}){3}$/.test(host)
}

/**
 * A browser on this machine may be made to ask by anybody's page: under another name that leads here, or across origins.
 * Both show in headers that a page cannot forge.
 */
export function isLocalRequest(headers: IncomingHttpHeaders): boolean {
  const { host = '', origin, 'sec-fetch-site': site } = headers
  // Through a proxy on this machine anybody may come.
  if (FORWARDING_HEADERS.some((header) => headers[header] !== undefined)) return false
  const name = host.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
  if (!isLoopback(name)) return false
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  return origin === undefined || origin === `http://${host}`
}

/** A page of others can make a browser send a form, but not with a header of ours: for what writes, that is asked for too. Programs send neither. */
export function passesCsrfCheck({ method, headers }: { readonly method: string; readonly headers: IncomingHttpHeaders }): boolean {
  const isBrowser = headers.origin !== undefined || headers['sec-fetch-site'] !== undefined
  return method === 'GET' || method === 'HEAD' || !isBrowser || headers['x-tidemark-console'] !== undefined
}

const FORWARDING_HEADERS = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-proto', 'x-real-ip', 'cf-connecting-ip', 'true-client-ip']
