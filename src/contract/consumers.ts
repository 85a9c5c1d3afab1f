/** How far somebody who reads the feed says that it has come. */
export interface Consumer {
  /** The name of the key that told it, which stays when the key is rotated. Nobody else's consumers can be touched. */
  readonly owner: string
  readonly name: string
  /** `changes`, or the database whose list it reads. */
  readonly resource: string
  /** What it hears of; null for all. */
  readonly databases: readonly string[] | null
  /** Everything up to here is done. */
  readonly sequence: number
  /** As it was given; null when it was a time, or the start. */
  readonly cursor: string | null
  /** By the consumer's own clock. */
  readonly checkpointAt: number
  readonly reportedAt: number
  /** JSON text of its own; null without. */
  readonly metadata: string | null
}

export type ConsumerName = Pick<Consumer, 'owner' | 'name' | 'resource'>
