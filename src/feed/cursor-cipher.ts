import { createCipheriv, createDecipheriv, createHmac, timingSafeEqual } from 'node:crypto'
import { required } from '../values/required.ts'

const TAG_BYTES = 16
/** Checked before any decoding. */
export const CURSOR_LENGTH_MAX = 2_048

/**
 * Opaque text that only the holder of the secret can create or read. The signature is also the initialization vector,
 * so equal contents give equal texts: an idle reader keeps its cursor, and no randomness is needed.
 */
export class CursorCipher {
  readonly #keys: ReadonlyArray<{ sign: Buffer; encrypt: Buffer }>

  /** The first secret encrypts; all of them decrypt. */
  constructor(secrets: readonly string[]) {
    this.#keys = secrets.map((secret) => ({ sign: deriveKey(secret, 'sign'), encrypt: deriveKey(secret, 'encrypt') }))
  }

  encrypt(content: string): string {
    const { sign, encrypt } = required(this.#keys[0], 'the cursor secret')
    const tag = computeTag(sign, content)
    const cipher = createCipheriv('aes-256-ctr', encrypt, tag)
    return Buffer.concat([tag, cipher.update(content, 'utf8')]).toString('base64url')
  }

  /** Null for every text that none of the secrets encrypted. Callers cannot distinguish the causes. */
  decrypt(text: string): string | null {
    if (text.length > CURSOR_LENGTH_MAX) return null
    const bytes = Buffer.from(text, 'base64url')
    // Node decodes base64 leniently; two texts must not be the same cursor.
    if (bytes.length <= TAG_BYTES || bytes.toString('base64url') !== text) return null
    const tag = bytes.subarray(0, TAG_BYTES)
    let found: string | null = null
    for (const { sign, encrypt } of this.#keys) {
      const content = createDecipheriv('aes-256-ctr', encrypt, tag).update(bytes.subarray(TAG_BYTES)).toString('utf8')
      if (timingSafeEqual(computeTag(sign, content), tag)) found = content
    }
    return found
  }
}

function deriveKey(secret: string, use: string): Buffer {
  return createHmac('sha256', secret).update(use).digest()
}

function computeTag(key: Buffer, content: string): Buffer {
  return createHmac('sha256', key).update(content).digest().subarray(0, TAG_BYTES)
}
