import { SyncError, type Commit } from '../../contract/index.ts'

/** Columns of the registry that hold sealed text. */
export const SEALED_COLUMNS = [
  'committed',
  'tidemark',
  'scope',
  'inflight_state',
  'inflight_tidemark',
  'inflight_scope',
  'inflight_guard',
] as const

export type SealedColumn = (typeof SEALED_COLUMNS)[number]

/** LIKE patterns for every sealed text, and for the texts of one data key. Key ids contain no LIKE wildcards. */
export const SEALED_PATTERN = 'sealed.%'
export const sealedPatternFor = (keyId: string): string => `sealed._.${keyId}.%`

/** Returns the id of the data key that sealed a commit's states; null when nothing in it is sealed. */
export function findSealingKeyId({
  transition,
  partitions = [],
}: Pick<Commit, 'transition' | 'partitions'>): string | null {
  const states =
    transition.kind === 'continue'
      ? [transition.state, transition.scope, transition.tidemark, transition.guardState]
      : transition.kind === 'complete'
        ? [transition.state, transition.scope, transition.tidemark]
        : transition.kind === 'set'
          ? [transition.state]
          : []
  const texts = [...states, ...partitions.map(({ state }) => state)]
  return texts.map((text) => parseSealingKeyId(text)).find((key) => key !== null) ?? null
}

/** Returns null when the text is not sealed. */
export function parseSealingKeyId(text: string | null): string | null {
  return text?.startsWith('sealed.') === true ? (text.split('.')[2] ?? null) : null
}

/**
 * Only the newest data key seals. A process that still uses an older key gets this error before anything is written, so
 * an unused key can be deleted without losing later writes of such a process.
 */
export function createKeyReplacedError(used: string): SyncError {
  return new SyncError('DATA_KEY_REPLACED', `Data key ${used} was replaced by a newer one. Nothing was changed.`)
}
