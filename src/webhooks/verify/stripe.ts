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

/** `Stripe-Signature: t=<seconds>,v1=<hex>` over `t.body`; the event id is in the body. */
export function stripeSignature(options: SignatureOptions): WebhookVerifier {
  return (delivery, context) => {
    const parts = requireHeader(delivery, 'stripe-signature')
      .split(',')
      .map((part) => part.trim().split('=', 2) as [string, string | undefined])
    const timestamp = parts.find(([name]) => name === 't')?.[1]
    const given = parts.filter(([name]) => name === 'v1').map(([, value]) => value ?? '')
    const expected = findSecrets(options, context).map((secret) =>
      createHmac('sha256', secret).update(`${timestamp}.`).update(delivery.rawBody).digest('hex'),
    )
    if (!given.some((one) => expected.some((known) => timingSafeTextEqual(one, known))))
      throw new WebhookRefused(SIGNATURE_MISMATCH)
    checkTimestamp(parseDigits(timestamp) * 1_000, context.now)
    return { id: parseEventId(delivery.rawBody) }
  }
}

function parseEventId(body: Uint8Array): string {
  try {
    const { id } = JSON.parse(Buffer.from(body).toString()) as { id?: unknown }
    if (typeof id === 'string' && id !== '') return id
  } catch {
    // Reported below.
  }
  throw new WebhookRefused('The body is not an event with an id.')
}
