import type { SyncRef } from '../contract/index.ts'
import type { DataKey } from './data-keys.ts'
import { seal, unseal, type RandomBytes } from './seal.ts'

/** The format of a sealed text: `sealed.1.<data key>.<purpose>.<nonce, ciphertext and tag>`. */

export const SEALED_PREFIX = 'sealed'
export const SEALED_FORMAT = '1'

export interface SealedParts {
  readonly format: string
  readonly keyId: string
  /** The role of the text within its sync; authenticated, so that one text cannot replace another. */
  readonly purpose: string
  readonly body: string
}

/** Null if the text is not sealed. */
export function parseSealedText(text: string): SealedParts | null {
  const [prefix, format, keyId, purpose, body, ...rest] = text.split('.')
  if (
    prefix !== SEALED_PREFIX ||
    format === undefined ||
    keyId === undefined ||
    purpose === undefined ||
    body === undefined ||
    rest.length > 0
  )
    return null
  return { format, keyId, purpose, body }
}

export function sealText(
  key: DataKey,
  tenant: string,
  ref: SyncRef,
  text: string | Buffer,
  purpose: string,
  random: RandomBytes,
): string {
  return [
    SEALED_PREFIX,
    SEALED_FORMAT,
    key.id,
    purpose,
    seal(key.bytes, text, buildSealAad(tenant, ref, key.id, purpose), random),
  ].join('.')
}

/** Null if the text was changed, or belongs to another tenant or sync. */
export function unsealText(
  key: DataKey,
  tenant: string,
  ref: SyncRef,
  { keyId, purpose, body }: SealedParts,
): Buffer | null {
  return unseal(key.bytes, body, buildSealAad(tenant, ref, keyId, purpose))
}

function buildSealAad(tenant: string, { worker, sync }: SyncRef, keyId: string, purpose: string): string {
  return JSON.stringify(['tidemark state', SEALED_FORMAT, tenant, worker, sync, keyId, purpose])
}
