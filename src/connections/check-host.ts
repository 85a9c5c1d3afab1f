import { isPublicHost } from '../platform/public-address.ts'

const HOST_PATTERN = /^(?=.{4,253}$)(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)+[a-z][a-z\d-]{0,61}[a-z]$/

/**
 * The host name in what a user entered, which may be the URL of a page: `https://acme.service-now.com/login`. Null if
 * it is not a public host, or ends in none of the suffixes. A request is sent to this host with credentials, so a user
 * must not be able to name a host of the private network. Its addresses are checked again when it is connected to.
 */
export function checkHost(entered: string, suffixes: readonly string[]): string | null {
  const text = entered.trim().toLowerCase()
  const url = URL.canParse(text) && text.startsWith('https://') ? new URL(text) : null
  if (url !== null && (url.username !== '' || url.password !== '' || url.port !== '')) return null
  const host = url === null ? text : url.hostname
  if (!HOST_PATTERN.test(host) || !isPublicHost(host)) return null
  if (suffixes.length === 0) return host
  return suffixes.some((suffix) => (suffix.startsWith('.') ? host.endsWith(suffix) : host === suffix)) ? host : null
}
