/** Sequences in the change log of a tenant. */
export interface SequenceStore {
  /** The newest sequence; 0 if nothing has been committed. */
  headSequence(): Promise<number>
  /**
   * The newest sequence committed before this time, in ms. A reader that continues from it misses nothing from that
   * time on.
   */
  sequenceBefore(time: number): Promise<number>
}
