import { createHash } from 'node:crypto'
import type { StateText } from '../contract/index.ts'
import { canonicalizeInstant } from '../values/instant.ts'

/** The displayable part of a state: enough to compare two states, nothing of their content. */
export interface RedactedState {
  readonly digest8: string
  readonly bytes: number
}

export function redactState(state: StateText): RedactedState | null {
  return state === null ? null : { digest8: computeShortDigest(state), bytes: Buffer.byteLength(state) }
}

/**
 * A tidemark is a time, or the last cursor of a source without times. A cursor is part of the state, so it is redacted.
 */
export function redactTidemark(tidemark: string | null, reveal: boolean): string | null {
  if (tidemark === null || reveal || canonicalizeInstant(tidemark) !== null) return tidemark
  return `#${computeShortDigest(tidemark)}`
}

function computeShortDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8)
}
