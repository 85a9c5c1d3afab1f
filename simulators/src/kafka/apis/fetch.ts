import { ERROR_CODES, type KafkaErrorName } from '../error-codes.ts'
import type { AbortedTransaction, PartitionLog } from '../partition-log.ts'
import { WireWriter } from '../wire-writer.ts'
import {
  errorCodeOf,
  findLog,
  mapByTopic,
  readByTopic,
  writeByTopic,
  type KafkaApi,
  type KafkaRequest,
  type TopicPartitions,
} from './api.ts'

interface FetchPartition {
  readonly partition: number
  readonly leaderEpoch: number
  readonly offset: number
  readonly maxBytes: number
}

interface FetchedPartition {
  readonly partition: number
  readonly outcome: PartitionLog | KafkaErrorName
  readonly aborted: readonly AbortedTransaction[] | null
  readonly records: Buffer
}

interface FetchLimits {
  readonly maxBytes: number
  readonly isReadCommitted: boolean
}

/**
 * Records from an offset on. The response waits until there are enough of them, an error occurs, or the time-out
 * passes.
 */
export const fetch: KafkaApi = {
  key: 1,
  versions: [4, 11],
  async respond(request) {
    const { version, body, cluster, signal } = request
    body.int32()
    const [maxWaitMs, minBytes, maxBytes, isCommitted] = [body.int32(), body.int32(), body.int32(), body.int8() === 1]
    // Fetch sessions, in which a client names only changed partitions, are optional for a broker.
    const session = version >= 7 ? { id: body.int32(), epoch: body.int32() } : null
    if (session !== null && session.epoch > 0)
      return writeHeader(version, 'FETCH_SESSION_ID_NOT_FOUND').nullableArray([], () => {})
    const asked = readByTopic(body, (): FetchPartition => ({
      partition: body.int32(),
      leaderEpoch: version >= 9 ? body.int32() : -1,
      offset: body.int64(),
      ...(version >= 5 && { logStart: body.int64() }),
      maxBytes: body.int32(),
    }))
    const deadline = cluster.now() + maxWaitMs
    for (;;) {
      const found = readPartitions(request, asked, { maxBytes, isReadCommitted: isCommitted })
      const leftMs = deadline - cluster.now()
      if (leftMs <= 0 || hasEnoughBytes(found, minBytes)) return writeResponse(version, found)
      await cluster.waitForAppend(leftMs, signal)
    }
  },
}

function readPartitions(
  request: KafkaRequest,
  asked: readonly TopicPartitions<FetchPartition>[],
  { maxBytes, isReadCommitted: isCommitted }: FetchLimits,
): TopicPartitions<FetchedPartition>[] {
  let room = maxBytes
  let needsOne = true
  return mapByTopic(asked, (topic, { partition, leaderEpoch, offset, maxBytes: partitionMaxBytes }) => {
    const refused = (outcome: KafkaErrorName): FetchedPartition => ({
      partition,
      outcome,
      aborted: null,
      records: Buffer.alloc(0),
    })
    const log = findLog(request, topic, partition, leaderEpoch)
    if (typeof log === 'string') return refused(log)
    if (offset < log.start || offset > log.end) return refused('OFFSET_OUT_OF_RANGE')
    const until = isCommitted ? log.stableEnd : log.end
    const records = log.read(offset, { maxBytes: Math.min(partitionMaxBytes, room), atLeastOneBatch: needsOne, until })
    room = Math.max(0, room - records.length)
    needsOne &&= records.length === 0
    return { partition, outcome: log, aborted: isCommitted ? log.abortedBetween(offset, until) : null, records }
  })
}

function hasEnoughBytes(found: readonly TopicPartitions<FetchedPartition>[], minBytes: number): boolean {
  const partitions = found.flatMap((topic) => topic.partitions)
  return (
    partitions.length === 0 ||
    partitions.some(({ outcome }) => typeof outcome === 'string') ||
    partitions.reduce((sum, { records }) => sum + records.length, 0) >= minBytes
  )
}

function writeHeader(version: number, error: KafkaErrorName): WireWriter {
  const answer = new WireWriter().int32(0)
  return version >= 7 ? answer.int16(ERROR_CODES[error]).int32(0) : answer
}

function writeResponse(version: number, found: readonly TopicPartitions<FetchedPartition>[]): WireWriter {
  const answer = writeHeader(version, 'NONE')
  return writeByTopic(answer, found, ({ partition, outcome, aborted, records }) => {
    const { end, stableEnd, start } = typeof outcome === 'string' ? { end: -1, stableEnd: -1, start: -1 } : outcome
    answer.int32(partition).int16(errorCodeOf(outcome)).int64(end).int64(stableEnd)
    if (version >= 5) answer.int64(start)
    answer.nullableArray(aborted, ({ producerId, firstOffset }) => answer.int64(producerId).int64(firstOffset))
    // There is no preferred read replica.
    if (version >= 11) answer.int32(-1)
    answer.nullableBytes(records)
  })
}
