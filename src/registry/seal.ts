import { createCipheriv, createDecipheriv } from 'node:crypto'

const NONCE_BYTES = 12
const TAG_BYTES = 16
export const KEY_BYTES = 32

export type RandomBytes = (bytes: number) => Buffer

/**
 * AES-256-GCM as nonce, ciphertext and tag. `aad` is authenticated, so that a text opens only with the same key and in
 * the same context.
 */
export function seal(key: Buffer, text: string | Buffer, aad: string, random: RandomBytes): string {
  const nonce = random(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(Buffer.from(aad))
  const body = Buffer.concat([cipher.update(typeof text === 'string' ? Buffer.from(text) : text), cipher.final()])
  return Buffer.concat([nonce, body, cipher.getAuthTag()]).toString('base64url')
}

/** Null if the text was changed, truncated, moved to another context, or sealed with another key. */
export function unseal(key: Buffer, sealed: string, aad: string): Buffer | null {
  const bytes = Buffer.from(sealed, 'base64url')
  // The decoder accepts invalid base64url, so a text that does not survive the round trip is rejected.
  if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString('base64url') !== sealed) return null
  // Without an explicit length, a tag truncated to four bytes would be accepted.
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(aad))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
  } catch {
    return null
  }
}
