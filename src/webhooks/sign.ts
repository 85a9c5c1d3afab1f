import { createHmac } from 'node:crypto'

/** What is signed: `id.timestamp.body`, by Standard Webhooks. Neither id nor timestamp has a dot, so the parts cannot be shifted. */
export function computeSignature(secret: string, id: string, timestamp: number | string, body: string | Uint8Array): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}

/** With two secrets two signatures: a receiver that knows either of them is content. */
export function createSignatureHeaders(secrets: readonly string[], id: string, now: number, body: string): Record<string, string> {
  const timestamp = Math.floor(now / 1_000)
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': secrets.map((secret) => computeSignature(secret, id, timestamp, body)).join(' ') }
}
