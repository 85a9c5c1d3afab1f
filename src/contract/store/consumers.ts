import type { Consumer, ConsumerName } from '../consumers.ts'

/** Consumers of the feed: their checkpoints and their request counts. */
export interface ConsumerStore {
  /** In the order of their names. */
  consumers(): Promise<Consumer[]>
  /** False, and nothing written, when its owner has so many others already. */
  putConsumer(consumer: Consumer, bounds: { ownedMax: number }): Promise<boolean>
  removeConsumer(name: ConsumerName): Promise<boolean>
  /** Adds requests to a window of time that all processes share, and tells how many there are now, in the same order. Older windows than the one before it are forgotten. */
  countRequests(window: number, counts: ReadonlyArray<readonly [who: string, count: number]>): Promise<number[]>
}
