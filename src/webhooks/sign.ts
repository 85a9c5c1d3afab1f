import { createHmac } from 'node:crypto'

/**
 * Signs `id.timestamp.body` as defined by Standard Webhooks. Neither id nor timestamp contains a dot, so the parts are
 * unambiguous.
 */
export function computeSignature(
  secret: string,
  id: string,
  timestamp: number | string,
  body: string | Uint8Array,
): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}

/** Two secrets give two signatures, so that a receiver with either secret accepts the message. */
export function createSignatureHeaders(
  secrets: readonly string[],
  id: string,
  now: number,
  body: string,
): Record<string, string> {
  const timestamp = Math.floor(now / 1_000)
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': secrets.map((secret) => computeSignature(secret, id, timestamp, body)).join(' '),
  }
}
