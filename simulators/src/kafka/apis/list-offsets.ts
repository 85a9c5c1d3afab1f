import type { PartitionLog } from '../partition-log.ts'
import { WireWriter } from '../wire-writer.ts'
import { errorCodeOf, findLog, mapByTopic, readByTopic, writeByTopic, type KafkaApi } from './api.ts'

const LATEST = -1
const EARLIEST = -2
const NO_OFFSET = { timestamp: -1, offset: -1 } as const

/** The first and last offset of a partition, or the offset of a timestamp. */
export const listOffsets: KafkaApi = {
  key: 2,
  versions: [1, 3],
  respond(request) {
    const { version, body } = request
    request.cluster.transactions.passTime()
    body.int32()
    const isCommitted = version >= 2 && body.int8() === 1
    const asked = readByTopic(body, () => ({ partition: body.int32(), timestamp: body.int64() }))
    const found = mapByTopic(asked, (topic, { partition, timestamp }) => {
      const log = findLog(request, topic, partition)
      return {
        partition,
        error: errorCodeOf(log),
        ...(typeof log === 'string' ? NO_OFFSET : findOffset(log, timestamp, isCommitted)),
      }
    })
    const answer = new WireWriter()
    if (version >= 2) answer.int32(0)
    return writeByTopic(answer, found, ({ partition, error, timestamp, offset }) =>
      answer.int32(partition).int16(error).int64(timestamp).int64(offset),
    )
  },
}

function findOffset(log: PartitionLog, timestamp: number, isCommitted: boolean): { timestamp: number; offset: number } {
  const end = isCommitted ? log.stableEnd : log.end
  if (timestamp === LATEST) return { timestamp: -1, offset: end }
  if (timestamp === EARLIEST) return { timestamp: -1, offset: log.start }
  const record = log.recordSince(timestamp)
  return record === undefined || record.offset >= end ? NO_OFFSET : record
}
