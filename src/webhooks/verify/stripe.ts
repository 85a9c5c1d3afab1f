import { createHmac } from 'node:crypto'
import { checkTime, digits, FORGED, headerOf, isSame, secretsNamed, WebhookRefused, type SignatureOptions, type Verify } from './verify.ts'

/** `Stripe-Signature: t=<seconds>,v1=<hex>`, over `t.body`; the event's own id is inside the body. */
export function stripeSignature(options: SignatureOptions): Verify {
  return (delivery, context) => {
    const parts = headerOf(delivery, 'stripe-signature').split(',').map((part) => part.trim().split('=', 2) as [string, string | undefined])
    const timestamp = parts.find(([name]) => name === 't')?.[1]
    const given = parts.filter(([name]) => name === 'v1').map(([, value]) => value ?? '')
    const expected = secretsNamed(options, context).map((secret) => createHmac('sha256', secret).update(`${timestamp}.`).update(delivery.rawBody).digest('hex'))
    if (!given.some((one) => expected.some((known) => isSame(one, known)))) throw new WebhookRefused(FORGED)
    checkTime(digits(timestamp) * 1_000, context.now)
    return { id: eventIdIn(delivery.rawBody) }
  }
}

function eventIdIn(body: Uint8Array): string {
  try {
    const { id } = JSON.parse(Buffer.from(body).toString()) as { id?: unknown }
    if (typeof id === 'string' && id !== '') return id
  } catch {
    // Said below.
  }
  throw new WebhookRefused('The body is not an event with an id.')
}
