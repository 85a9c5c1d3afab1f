import { isIP } from 'node:net'
import { SyncError, type WebhookAllowance } from '../contract/index.ts'
import { isPublicAddress, isPublicHost } from '../platform/public-address.ts'
import { systemResolveHost, type ResolveHost } from '../platform/resolve-host.ts'

/**
 * Checks a URL without network access; WHATWG parsing has normalized every spelling of an address. Resolved addresses
 * are checked at each connection, in send.ts.
 */
export function checkWebhookUrl(text: string, allow: readonly WebhookAllowance[]): URL {
  if (!URL.canParse(text)) throw urlRefusedError('is not a URL')
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw urlRefusedError('is not an https URL')
  if (url.protocol === 'http:' && !allow.includes('http')) throw urlRefusedError('does not use https')
  if (url.username !== '' || url.password !== '') throw urlRefusedError('contains credentials')
  if (url.port !== '' && !['80', '443'].includes(url.port) && !allow.includes('port'))
    throw urlRefusedError(`uses port ${url.port}`)
  if (!allow.includes('private') && !isPublicHost(url.hostname))
    throw urlRefusedError('resolves to an address that is not public')
  return url
}

/**
 * For registrations and edits: also resolves the host, and refuses it if any of its addresses is not public. A host
 * that does not resolve yet is accepted; send.ts checks the addresses again at every connection.
 */
export async function checkResolvedWebhookUrl(
  text: string,
  allow: readonly WebhookAllowance[],
  resolve: ResolveHost = systemResolveHost,
): Promise<URL> {
  const url = checkWebhookUrl(text, allow)
  if (allow.includes('private') || isIP(url.hostname.replace(/^\[(.*)\]$/, '$1')) !== 0) return url
  const addresses = await resolve(url.hostname).catch(() => [])
  if (!addresses.every(({ address }) => isPublicAddress(address)))
    throw urlRefusedError('resolves to an address that is not public')
  return url
}

/** The message omits the URL, because its path or query may be the receiver's secret. */
function urlRefusedError(what: string): SyncError {
  return new SyncError('WEBHOOK_URL_REFUSED', `The URL of the webhook ${what}.`)
}
