import type { FetchedMessage } from '../../sources/kafka/committed-messages.ts'
import { KeySet, hashKey, type HashedKey } from './key-set.ts'
import type { PartitionBounds, TopicReader } from './topic-reader.ts'

/** Keys that are held in memory at once. A larger topic is read several times, each time for a share of its keys. */
const KEYS_MAX = 1_000_000

/**
 * The keys with a row from before a load that the load did not write again: the store no longer has them. Read after the
 * last change of the load was written. A key that was deleted already may occur again.
 */
export async function* findVanishedKeys(
  reader: TopicReader,
  topic: string,
  loadStart: readonly bigint[],
  keysMax = KEYS_MAX,
): AsyncGenerator<readonly string[]> {
  const bounds = await reader.bounds(topic)
  const before = loadStart.map((start, at): PartitionBounds => ({ low: bounds[at]?.low ?? start, end: start }))
  const since = loadStart.map((start, at): PartitionBounds => ({ low: start, end: bounds[at]?.end ?? start }))
  if (before.every(({ low, end }) => low >= end)) return
  const messages = [...before, ...since].reduce((sum, { low, end }) => sum + Number(end > low ? end - low : 0n), 0)
  const shares = Math.max(1, Math.ceil(messages / keysMax))
  for (let share = 0; share < shares; share++) {
    const isInShare = ([, word = 0]: HashedKey): boolean => word % shares === share
    const written = new KeySet()
    for await (const batch of readPartitions(reader, topic, since))
      for (const { key } of batch) {
        const hashed = key === null ? null : hashKey(key)
        if (hashed !== null && isInShare(hashed)) written.add(hashed)
      }
    for await (const batch of readPartitions(reader, topic, before)) {
      const vanished = batch.flatMap(({ key, value }) => {
        const hashed = key === null || value === null ? null : hashKey(key)
        return hashed !== null && isInShare(hashed) && written.add(hashed) ? [String(key)] : []
      })
      if (vanished.length > 0) yield vanished
    }
  }
}

async function* readPartitions(
  reader: TopicReader,
  topic: string,
  ranges: readonly PartitionBounds[],
): AsyncGenerator<readonly FetchedMessage[]> {
  for (const [partition, range] of ranges.entries()) yield* reader.read(topic, partition, range)
}
