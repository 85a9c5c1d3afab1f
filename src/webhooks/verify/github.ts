import { createHmac, hash } from 'node:crypto'
import { FORGED, headerOf, isSame, secretsNamed, WebhookRefused, type SignatureOptions, type Verify } from './verify.ts'

/**
 * `X-Hub-Signature-256: sha256=<hex>` over the body. GitHub signs neither a time nor its delivery id, so the body itself is
 * what a message is known by: played again under another id it is still the same.
 */
export function githubSignature(options: SignatureOptions): Verify {
  return (delivery, context) => {
    const given = headerOf(delivery, 'x-hub-signature-256')
    const isOurs = secretsNamed(options, context).some((secret) => isSame(given, `sha256=${createHmac('sha256', secret).update(delivery.rawBody).digest('hex')}`))
    if (!isOurs) throw new WebhookRefused(FORGED)
    return { id: hash('sha256', Buffer.from(delivery.rawBody), 'hex') }
  }
}
