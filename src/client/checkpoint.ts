import type { ReaderPosition } from './reader-position.ts'

/** Stores a consumer's position. Best kept with the consumer's own data, in the same transaction. */
export interface Checkpoint {
  /** Null if nothing was saved. */
  load(): Promise<ReaderPosition | null>
  /** Called when the consumer has processed everything up to the position. */
  save(position: ReaderPosition): Promise<void>
}

/** A checkpoint in memory, lost when the process exits. */
export function memoryCheckpoint(position: ReaderPosition | null = null): Checkpoint {
  let saved = position
  return {
    load: async () => saved,
    async save(next) {
      saved = next
    },
  }
}
