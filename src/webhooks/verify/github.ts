import { createHmac, hash } from 'node:crypto'
import {
  SIGNATURE_MISMATCH,
  requireHeader,
  timingSafeTextEqual,
  findSecrets,
  WebhookRefused,
  type SignatureOptions,
  type WebhookVerifier,
} from './verify.ts'

/**
 * `X-Hub-Signature-256: sha256=<hex>` over the body. GitHub signs neither a time nor the delivery id, so the body's
 * hash identifies the message, and a replay under another id is still a duplicate.
 */
export function githubSignature(options: SignatureOptions): WebhookVerifier {
  return (delivery, context) => {
    const given = requireHeader(delivery, 'x-hub-signature-256')
    const isValid = findSecrets(options, context).some((secret) =>
      timingSafeTextEqual(given, `sha256=${createHmac('sha256', secret).update(delivery.rawBody).digest('hex')}`),
    )
    if (!isValid) throw new WebhookRefused(SIGNATURE_MISMATCH)
    return { id: hash('sha256', Buffer.from(delivery.rawBody), 'hex') }
  }
}
