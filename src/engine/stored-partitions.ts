import type { JsonValue, PartitionReader, PartitionRow, SyncRef } from '../contract/index.ts'
import { parseState } from './check-page.ts'
import type { RetryingStore } from './retrying-store.ts'

/** The committed partitions of a sync. */
export function readStoredPartitions(retryingStore: Pick<RetryingStore, 'call'>, ref: SyncRef): PartitionReader {
  const parse = ({ state }: PartitionRow): JsonValue => parseState(ref.sync, state) as JsonValue
  return {
    get: async (keys) => {
      const rows = await retryingStore.call((store) => store.partitionStates(ref, keys))
      return new Map(rows.map((row) => [row.key, parse(row)]))
    },
    list: async (query) => {
      const rows = await retryingStore.call((store) => store.partitions(ref, query))
      return rows.map((row) => ({ key: row.key, state: parse(row) }))
    },
  }
}
