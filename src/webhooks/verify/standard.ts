import { signature } from '../sign.ts'
import { checkTime, digits, FORGED, headerOf, isSame, secretsNamed, WebhookRefused, type InboundDelivery, type SignatureOptions, type Verify } from './verify.ts'

/** Standard Webhooks, which tidemark itself sends. */
export function standardSignature(options: SignatureOptions): Verify {
  return (delivery, context) => verifyStandardWebhook(delivery, { secrets: secretsNamed(options, context), now: context.now })
}

/** For a program that takes our webhooks. What it returns is signed; whether the id came before is for the program to know. */
export function verifyStandardWebhook(delivery: Pick<InboundDelivery, 'headers' | 'rawBody'>, { secrets, now }: { readonly secrets: readonly string[]; readonly now: number }): { id: string } {
  const whole = { method: 'POST', path: '', ...delivery }
  const [id, timestamp] = [headerOf(whole, 'webhook-id'), headerOf(whole, 'webhook-timestamp')]
  checkTime(digits(timestamp) * 1_000, now)
  const given = headerOf(whole, 'webhook-signature').split(' ')
  const expected = secrets.map((secret) => signature(secret, id, timestamp, delivery.rawBody))
  // A dot in the id would let the parts be shifted.
  if (id.includes('.') || !given.some((one) => expected.some((known) => isSame(one, known)))) throw new WebhookRefused(FORGED)
  return { id }
}
