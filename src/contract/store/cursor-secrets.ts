import type { CursorSecret, CursorSecretCandidate } from '../feed.ts'

/** The secrets that authenticate cursors of the feed. */
export interface CursorSecretStore {
  /**
   * Newest first, never empty; the candidate is stored if one is needed. A replica stores none, and throws if it has no
   * secret.
   */
  cursorSecrets(offer: CursorSecretCandidate): Promise<CursorSecret[]>
}
