import type { CursorSecret, CursorSecretCandidate } from '../feed.ts'

/** The secrets that authenticate cursors of the feed. */
export interface CursorSecretStore {
  /** Newest first, never empty; the offer is taken when one is needed. A replica takes none, and refuses when it has nothing to tell. */
  cursorSecrets(offer: CursorSecretCandidate): Promise<CursorSecret[]>
}
