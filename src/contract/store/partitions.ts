import type { SyncRef } from '../checkpoint.ts'

/** The states of partitions. They are written by `Kernel.commit`, in the transaction of their page (invariant 1). */
export interface PartitionStore {
  /** Partitions of a sync in key order (by UTF-8 bytes), above `after`. */
  partitions(ref: SyncRef, query: PartitionQuery): Promise<PartitionRow[]>
  /** The partitions with these keys; a key without a state is absent. */
  partitionStates(ref: SyncRef, keys: readonly string[]): Promise<PartitionRow[]>
  /** The number of partitions of a sync that have a state. */
  countPartitions(ref: SyncRef): Promise<number>
}

/** A page of partitions. */
export interface PartitionQuery {
  /** The key that the page follows; absent for the first page. */
  readonly after?: string
  readonly limit: number
}

/** A partition as the store keeps it. */
export interface PartitionRow {
  readonly key: string
  /** JSON text. */
  readonly state: string
  /** The cycle whose page wrote it; null if an operator did. */
  readonly cycle: number | null
}
