import { isIP } from 'node:net'
import { SyncError, type WebhookAllowance } from '../contract/index.ts'
import { isPublicAddress } from './address.ts'

/** Names of this machine and of its cloud's metadata, which need no resolver to be known. */
const PRIVATE_NAMES = /^(?:.*\.)?(?:localhost|local|internal|localdomain|home\.arpa)$/

/**
 * What can be told of a URL without asking anybody: WHATWG parsing has made every spelling of an address the same one.
 * What a name leads to is checked when it is resolved, each time, by whoever connects; see send.ts.
 */
export function checkWebhookUrl(text: string, allow: readonly WebhookAllowance[]): URL {
  if (!URL.canParse(text)) throw refusal('is not a URL')
  const url = new URL(text)
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw refusal('is not an https URL')
  if (url.protocol === 'http:' && !allow.includes('http')) throw refusal('is not encrypted')
  if (url.username !== '' || url.password !== '') throw refusal('contains credentials')
  if (url.port !== '' && !['80', '443'].includes(url.port) && !allow.includes('port')) throw refusal(`names port ${url.port}`)
  if (!allow.includes('private') && !isPublicHost(url.hostname)) throw refusal('leads to an address that is not public')
  return url
}

export function isPublicHost(hostname: string): boolean {
  const host = hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '').toLowerCase()
  if (isIP(host) !== 0) return isPublicAddress(host)
  return host.includes('.') && !PRIVATE_NAMES.test(host)
}

/** Never the URL itself: its path or query may be the receiver's secret. */
function refusal(what: string): SyncError {
  return new SyncError('WEBHOOK_URL_REFUSED', `The URL of the webhook ${what}.`)
}
