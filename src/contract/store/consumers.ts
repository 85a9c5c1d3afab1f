import type { Consumer, ConsumerName } from '../consumers.ts'

/** Consumers of the feed: their checkpoints and their request counts. */
export interface ConsumerStore {
  /** In order of name. */
  consumers(): Promise<Consumer[]>
  /** False, and nothing is written, if the owner already has that many other consumers. */
  putConsumer(consumer: Consumer, bounds: { ownedMax: number }): Promise<boolean>
  removeConsumer(name: ConsumerName): Promise<boolean>
  /**
   * Adds requests to a time window that all processes share, and returns the new totals in the same order. Windows
   * before the previous one are deleted.
   */
  countRequests(window: number, counts: ReadonlyArray<readonly [who: string, count: number]>): Promise<number[]>
}
