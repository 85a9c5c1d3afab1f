import { SyncError, type StateTransition } from '../../contract/index.ts'

/** Columns of the registry that hold sealed text. */
export const SEALED_COLUMNS = ['committed', 'tidemark', 'scope', 'inflight_state', 'inflight_tidemark', 'inflight_scope', 'inflight_guard'] as const

export type SealedColumn = (typeof SEALED_COLUMNS)[number]

/** As LIKE patterns: every sealed text, and those of one data key. The ids of keys have no character that LIKE treats specially. */
export const SEALED_PATTERN = 'sealed.%'
export const sealedPatternFor = (keyId: string): string => `sealed._.${keyId}.%`

/** The data key that sealed what a commit writes; null when nothing in it is sealed. */
export function findSealingKeyId(move: StateTransition): string | null {
  const texts = move.kind === 'continue' ? [move.state, move.scope, move.tidemark, move.guardState] : move.kind === 'complete' ? [move.state, move.scope, move.tidemark] : move.kind === 'set' ? [move.state] : []
  return texts.map((text) => parseSealingKeyId(text)).find((key) => key !== null) ?? null
}

/** Null when the text is not sealed. */
export function parseSealingKeyId(text: string | null): string | null {
  return text?.startsWith('sealed.') === true ? (text.split('.')[2] ?? null) : null
}

/**
 * Only the newest data key seals. A process that has not heard of it yet is told so by this error, before anything is written;
 * so a key that nothing uses can be deleted without losing what such a process would still write.
 */
export function createKeyReplacedError(used: string): SyncError {
  return new SyncError('DATA_KEY_REPLACED', `Data key ${used} no longer seals. Nothing was changed.`)
}
