import { createHash, createHmac } from 'node:crypto'
import type { Secret } from '../../redaction/secret.ts'

/** Signs the path of a private call and the digest of its nonce and form. */
export function signRequest(path: string, form: URLSearchParams, secret: Secret): string {
  const digest = createHash('sha256')
    .update(`${form.get('nonce') ?? ''}${form.toString()}`)
    .digest()
  return createHmac('sha512', Buffer.from(secret.reveal(), 'base64')).update(path).update(digest).digest('base64')
}
