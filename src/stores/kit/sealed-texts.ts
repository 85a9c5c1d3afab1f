import { SyncError, type Move } from '../../contract/index.ts'

/** Columns of the registry that hold sealed text. */
export const SEALED_COLUMNS = ['committed', 'tidemark', 'scope', 'inflight_state', 'inflight_tidemark', 'inflight_scope', 'inflight_guard'] as const

export type SealedColumn = (typeof SEALED_COLUMNS)[number]

/** As LIKE patterns: every sealed text, and those of one data key. The ids of keys have no character that LIKE treats specially. */
export const SEALED_LIKE = 'sealed.%'
export const sealedLike = (keyId: string): string => `sealed._.${keyId}.%`

/** The data key that sealed what a commit writes; null when nothing in it is sealed. */
export function sealingKeyOf(move: Move): string | null {
  const texts = move.kind === 'continue' ? [move.state, move.scope, move.tidemark, move.guard] : move.kind === 'complete' ? [move.state, move.scope, move.tidemark] : move.kind === 'set' ? [move.state] : []
  return texts.map((text) => keyOf(text)).find((key) => key !== null) ?? null
}

/** Null when the text is not sealed. */
export function keyOf(text: string | null): string | null {
  return text?.startsWith('sealed.') === true ? (text.split('.')[2] ?? null) : null
}

/**
 * Only the newest data key seals. A process that has not heard of it yet is told so by this error, before anything is written;
 * so a key that nothing uses can be deleted without losing what such a process would still write.
 */
export function keyReplaced(used: string): SyncError {
  return new SyncError('DATA_KEY_REPLACED', `Data key ${used} no longer seals. Nothing was changed.`)
}
