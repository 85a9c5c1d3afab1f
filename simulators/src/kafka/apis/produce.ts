import { ERROR_CODES, type KafkaErrorName } from '../error-codes.ts'
import { decodeBatches } from '../record-batch.ts'
import { WireWriter } from '../wire-writer.ts'
import { findLog, mapByTopic, readByTopic, writeByTopic, type KafkaApi, type KafkaRequest } from './api.ts'

/**
 * Messages of plain producers: no idempotence and no transactions, for which a client would have to initialise a
 * producer id first.
 */
export const produce: KafkaApi = {
  key: 0,
  versions: [3, 7],
  respond(request) {
    const { version, body, cluster } = request
    body.nullableString()
    const acks = body.int16()
    body.int32()
    const given = readByTopic(body, () => ({ partition: body.int32(), records: body.nullableBytes() }))
    const isKnown = acks >= -1 && acks <= 1
    const taken = mapByTopic(given, (topic, { partition, records }) => ({
      partition,
      ...(isKnown
        ? append(request, topic, partition, records ?? Buffer.alloc(0))
        : rejectAppend('INVALID_REQUIRED_ACKS')),
    }))
    cluster.notifyAppend()
    if (acks === 0) return null
    const answer = new WireWriter()
    writeByTopic(answer, taken, ({ partition, error, baseOffset, start }) => {
      // Messages have the producer's timestamp, so the log assigns none.
      answer.int32(partition).int16(error).int64(baseOffset).int64(-1)
      if (version >= 5) answer.int64(start)
    })
    return answer.int32(0)
  },
}

interface AppendResult {
  readonly error: number
  readonly baseOffset: number
  readonly start: number
}

function append(request: KafkaRequest, topic: string, partition: number, records: Buffer): AppendResult {
  const log = findLog(request, topic, partition)
  if (typeof log === 'string') return rejectAppend(log)
  const batches = decodeBatches(records)
  if (typeof batches === 'string') return rejectAppend(batches)
  const baseOffset = log.end
  for (const batch of batches) log.append(batch)
  return { error: ERROR_CODES.NONE, baseOffset, start: log.start }
}

function rejectAppend(error: KafkaErrorName): AppendResult {
  return { error: ERROR_CODES[error], baseOffset: -1, start: -1 }
}
