import { createCipheriv, createDecipheriv } from 'node:crypto'

const NONCE_BYTES = 12
const TAG_BYTES = 16
export const KEY_BYTES = 32

export type RandomBytes = (bytes: number) => Buffer

/** AES-256-GCM as nonce, ciphertext and tag. It opens only with the same key, and only where it belongs: `place` is proven with it. */
export function seal(key: Buffer, text: string | Buffer, place: string, random: RandomBytes): string {
  const nonce = random(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(Buffer.from(place))
  const body = Buffer.concat([cipher.update(typeof text === 'string' ? Buffer.from(text) : text), cipher.final()])
  return Buffer.concat([nonce, body, cipher.getAuthTag()]).toString('base64url')
}

/** Null when it was changed, cut short, moved elsewhere, or sealed with another key. */
export function unseal(key: Buffer, sealed: string, place: string): Buffer | null {
  const bytes = Buffer.from(sealed, 'base64url')
  // Decoding forgives what is not base64url; whatever does not come back as it was is not what was written.
  if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString('base64url') !== sealed) return null
  // Without its length named, a tag cut down to four bytes would do.
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(place))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
  } catch {
    return null
  }
}
