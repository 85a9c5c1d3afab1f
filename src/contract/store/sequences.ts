/** Places in the log of a tenant. */
export interface SequenceStore {
  /** The newest sequence; 0 when nothing has landed. */
  headSequence(): Promise<number>
  /** The newest sequence committed before this time, in ms: whoever reads on from it misses nothing of that time and later. */
  sequenceBefore(time: number): Promise<number>
}
