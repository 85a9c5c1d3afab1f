import { createHmac } from 'node:crypto'
import {
  checkTimestamp,
  parseDigits,
  SIGNATURE_MISMATCH,
  requireHeader,
  timingSafeTextEqual,
  findSecrets,
  WebhookRefused,
  type SignatureOptions,
  type WebhookVerifier,
} from './verify.ts'

/** Options of `hubspotSignature`. */
export interface HubspotSignatureOptions extends SignatureOptions {
  /**
   * The URL that HubSpot calls, including its query: it is part of the signed text, and a proxy may have changed it.
   * Or a function of the path, if every tenant has its own address.
   */
  readonly url: string | ((path: string) => string)
}

/**
 * `X-HubSpot-Signature-v3` over method, URL, body and time. Events have no unique id, so the signature is used as the
 * id.
 */
export function hubspotSignature(options: HubspotSignatureOptions): WebhookVerifier {
  const { url } = options
  const signedUrl = (path: string): string =>
    (typeof url === 'string' ? url : url(path)).replaceAll(/%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi, (code) =>
      decodeURIComponent(code),
    )
  return (delivery, context) => {
    const [given, timestamp] = [
      requireHeader(delivery, 'x-hubspot-signature-v3'),
      requireHeader(delivery, 'x-hubspot-request-timestamp'),
    ]
    checkTimestamp(parseDigits(timestamp), context.now)
    const isValid = findSecrets(options, context).some((secret) =>
      timingSafeTextEqual(
        given,
        createHmac('sha256', secret)
          .update(`${delivery.method}${signedUrl(delivery.path)}`)
          .update(delivery.rawBody)
          .update(timestamp)
          .digest('base64'),
      ),
    )
    if (!isValid) throw new WebhookRefused(SIGNATURE_MISMATCH)
    return { id: given }
  }
}
