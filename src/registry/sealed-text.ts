import type { SyncRef } from '../contract/index.ts'
import type { DataKey } from './data-keys.ts'
import { seal, unseal, type RandomBytes } from './seal.ts'

/** How a sealed text is written: `sealed.1.<data key>.<place>.<nonce, ciphertext and tag>`. */

export const PREFIX = 'sealed'
export const FORMAT = '1'

export interface SealedParts {
  readonly format: string
  readonly keyId: string
  /** What it is within its sync; proven when it is opened, so that none can take another's place. */
  readonly place: string
  readonly body: string
}

/** Null for what is no sealed text. */
export function partsOf(text: string): SealedParts | null {
  const [prefix, format, keyId, place, body, ...rest] = text.split('.')
  if (prefix !== PREFIX || format === undefined || keyId === undefined || place === undefined || body === undefined || rest.length > 0) return null
  return { format, keyId, place, body }
}

export function sealText(key: DataKey, tenant: string, ref: SyncRef, text: string | Buffer, place: string, random: RandomBytes): string {
  return [PREFIX, FORMAT, key.id, place, seal(key.bytes, text, proofOf(tenant, ref, key.id, place), random)].join('.')
}

/** Null when it was changed, or belongs to another tenant or sync. */
export function openText(key: DataKey, tenant: string, ref: SyncRef, { keyId, place, body }: SealedParts): Buffer | null {
  return unseal(key.bytes, body, proofOf(tenant, ref, keyId, place))
}

function proofOf(tenant: string, { worker, sync }: SyncRef, keyId: string, place: string): string {
  return JSON.stringify(['tidemark state', FORMAT, tenant, worker, sync, keyId, place])
}
