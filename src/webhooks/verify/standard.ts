import { computeSignature } from '../sign.ts'
import {
  checkTimestamp,
  parseDigits,
  SIGNATURE_MISMATCH,
  requireHeader,
  timingSafeTextEqual,
  findSecrets,
  WebhookRefused,
  type InboundDelivery,
  type SignatureOptions,
  type WebhookVerifier,
} from './verify.ts'

/** Standard Webhooks, which tidemark itself sends. */
export function standardSignature(options: SignatureOptions): WebhookVerifier {
  return (delivery, context) =>
    verifyStandardWebhook(delivery, { secrets: findSecrets(options, context), now: context.now })
}

/** For programs that receive tidemark's webhooks. The returned id is signed; the program has to detect duplicates. */
export function verifyStandardWebhook(
  delivery: Pick<InboundDelivery, 'headers' | 'rawBody'>,
  { secrets, now }: { readonly secrets: readonly string[]; readonly now: number },
): { id: string } {
  const whole = { method: 'POST', path: '', ...delivery }
  const [id, timestamp] = [requireHeader(whole, 'webhook-id'), requireHeader(whole, 'webhook-timestamp')]
  checkTimestamp(parseDigits(timestamp) * 1_000, now)
  const given = requireHeader(whole, 'webhook-signature').split(' ')
  const expected = secrets.map((secret) => computeSignature(secret, id, timestamp, delivery.rawBody))
  // A dot in the id would make the signed parts ambiguous.
  if (id.includes('.') || !given.some((one) => expected.some((known) => timingSafeTextEqual(one, known))))
    throw new WebhookRefused(SIGNATURE_MISMATCH)
  return { id }
}
