import { createHmac } from 'node:crypto'
import { checkTimestamp, parseDigits, SIGNATURE_MISMATCH, requireHeader, timingSafeTextEqual, findSecrets, WebhookRefused, type SignatureOptions, type WebhookVerifier } from './verify.ts'

export interface HubspotSignatureOptions extends SignatureOptions {
  /**
   * The URL as HubSpot calls it, query included: it is part of what is signed, and a proxy may have changed it on the way. Or
   * how it follows from the path, where every tenant has one of its own.
   */
  readonly url: string | ((path: string) => string)
}

/** `X-HubSpot-Signature-v3`, over method, URL, body and time. Its events have no id that is theirs alone, so the signature is the message's. */
export function hubspotSignature(options: HubspotSignatureOptions): WebhookVerifier {
  const { url } = options
  const signedUrl = (path: string): string => (typeof url === 'string' ? url : url(path)).replaceAll(/%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi, (code) => decodeURIComponent(code))
  return (delivery, context) => {
    const [given, timestamp] = [requireHeader(delivery, 'x-hubspot-signature-v3'), requireHeader(delivery, 'x-hubspot-request-timestamp')]
    checkTimestamp(parseDigits(timestamp), context.now)
    const isOurs = findSecrets(options, context).some((secret) =>
      timingSafeTextEqual(given, createHmac('sha256', secret).update(`${delivery.method}${signedUrl(delivery.path)}`).update(delivery.rawBody).update(timestamp).digest('base64')))
    if (!isOurs) throw new WebhookRefused(SIGNATURE_MISMATCH)
    return { id: given }
  }
}
