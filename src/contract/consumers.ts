/** The progress that a reader of the feed has reported. */
export interface Consumer {
  /**
   * The name of the API key that reported it, which survives key rotation. A key can change only its own consumers.
   */
  readonly owner: string
  readonly name: string
  /** `changes`, or the name of the database that it lists. */
  readonly resource: string
  /** The databases it reads; null for all. */
  readonly databases: readonly string[] | null
  /** Everything up to this sequence is processed. */
  readonly sequence: number
  /** The cursor as it was sent; null if the consumer sent a time, or the start. */
  readonly cursor: string | null
  /** By the consumer's own clock. */
  readonly checkpointAt: number
  readonly reportedAt: number
  /** JSON text supplied by the consumer; null without. */
  readonly metadata: string | null
}

/** Identifies the stored cursor of a consumer. */
export type ConsumerName = Pick<Consumer, 'owner' | 'name' | 'resource'>
