import { createHash, createHmac } from 'node:crypto'

/** API-Sign: HMAC-SHA512 of the path and SHA256(nonce + body), under the secret that the account page shows in base64. */
export function krakenSignature(path: string, nonce: string, body: string, secret: string): string {
  const digest = createHash('sha256')
    .update(nonce + body)
    .digest()
  return createHmac('sha512', Buffer.from(secret, 'base64')).update(path).update(digest).digest('base64')
}
