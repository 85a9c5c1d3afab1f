import type { ReaderPosition } from './reader-position.ts'

/** Keeps where a consumer stands. Best kept where the consumer's own data is, in the same transaction. */
export interface Checkpoint {
  /** Null when nothing was ever saved. */
  load(): Promise<ReaderPosition | null>
  /** Called when the consumer is done with everything up to the position. */
  save(position: ReaderPosition): Promise<void>
}

/** For as long as the process lives. */
export function memoryCheckpoint(position: ReaderPosition | null = null): Checkpoint {
  let kept = position
  return {
    load: async () => kept,
    async save(next) {
      kept = next
    },
  }
}
