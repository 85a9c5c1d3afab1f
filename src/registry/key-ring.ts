import { hash } from 'node:crypto'
import { SyncError } from '../contract/index.ts'
import { registerSecret } from '../redaction/known-secrets.ts'
import { KEY_BYTES, type RandomBytes } from './seal.ts'

/** A key that is never in the store: it wraps the tenants' data keys. */
export interface MasterKey {
  /** Derived from the key itself, so that the same key has the same id everywhere. */
  readonly id: string
  readonly bytes: Buffer
}

/** The first key wraps; the others only unwrap. */
export class KeyRing {
  readonly current: MasterKey
  readonly keys: readonly MasterKey[]

  constructor(keys: readonly MasterKey[]) {
    const [current] = keys
    if (current === undefined) throw new SyncError('KEYS_MISSING', 'The key ring is empty.')
    this.current = current
    this.keys = keys
  }

  find(id: string): MasterKey | undefined {
    return this.keys.find((key) => key.id === id)
  }
}

/** Parses keys in base64, newest first, separated by commas or white space; lines that begin with # are comments. */
export function parseKeyRing(text: string, from: string): KeyRing {
  const words = text
    .split('\n')
    .filter((line) => !line.trimStart().startsWith('#'))
    .join('\n')
    .split(/[\s,]+/)
    .filter((word) => word !== '')
  const keys = words.map((word, at): MasterKey => {
    const bytes = Buffer.from(word, 'base64')
    // The message never includes the text: it may be a key with a typo.
    if (!/^[\w+/-]+={0,2}$/.test(word) || bytes.length !== KEY_BYTES)
      throw new SyncError('KEYS_MISSING', `Key ${at + 1} in ${from} is not ${KEY_BYTES} bytes in base64.`)
    registerSecret(word)
    return toMasterKey(bytes)
  })
  if (keys.length === 0) throw new SyncError('KEYS_MISSING', `There is no key in ${from}.`)
  return new KeyRing(keys)
}

export function generateMasterKey(random: RandomBytes): MasterKey {
  return toMasterKey(random(KEY_BYTES))
}

export function encodeMasterKey({ bytes }: MasterKey): string {
  return bytes.toString('base64')
}

function toMasterKey(bytes: Buffer): MasterKey {
  return { id: `k${hash('sha256', bytes, 'hex').slice(0, 8)}`, bytes }
}
