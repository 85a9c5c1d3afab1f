import { ERROR_CODES, type KafkaErrorName } from '../error-codes.ts'
import { decodeBatches, splitBatches } from '../record-batch.ts'
import { required } from '../../kit/required.ts'
import { WireWriter } from '../wire-writer.ts'
import { findLog, mapByTopic, readByTopic, writeByTopic, type KafkaApi, type KafkaRequest } from './api.ts'

/** `message.max.bytes`, with its default: the limit of one batch. */
const MESSAGE_BYTES_MAX = 1_048_588

/** Messages of plain, idempotent and transactional producers. */
export const produce: KafkaApi = {
  key: 0,
  versions: [3, 7],
  respond(request) {
    const { version, body, cluster } = request
    const transactionalId = body.nullableString()
    const acks = body.int16()
    body.int32()
    const given = readByTopic(body, () => ({ partition: body.int32(), records: body.nullableBytes() }))
    const isKnown = acks >= -1 && acks <= 1
    const taken = mapByTopic(given, (topic, { partition, records }) => ({
      partition,
      ...(isKnown
        ? append(request, transactionalId, topic, partition, records ?? Buffer.alloc(0))
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

function append(
  request: KafkaRequest,
  transactionalId: string | null,
  topic: string,
  partition: number,
  records: Buffer,
): AppendResult {
  const log = findLog(request, topic, partition)
  if (typeof log === 'string') return rejectAppend(log)
  const batches = decodeBatches(records)
  if (typeof batches === 'string') return rejectAppend(batches)
  let baseOffset = log.end
  for (const [at, bytes] of splitBatches(records).entries()) {
    const batch = required(batches[at], 'the batch')
    const refusal = request.cluster.transactions.check(batch, transactionalId, log)
    if (refusal !== 'NONE') return rejectAppend(refusal)
    const bytesMax = Number(request.cluster.readTopics().configs(topic)?.['max.message.bytes'] ?? MESSAGE_BYTES_MAX)
    if (bytes.length > bytesMax) return rejectAppend('MESSAGE_TOO_LARGE')
    const known = log.sequences.check(batch)
    if (typeof known === 'string') return rejectAppend(known)
    // A batch that was appended before is acknowledged again.
    if (known === null) log.sequences.add(batch, log.append(batch, bytes))
    else baseOffset = known
  }
  return { error: ERROR_CODES.NONE, baseOffset, start: log.start }
}

function rejectAppend(error: KafkaErrorName): AppendResult {
  return { error: ERROR_CODES[error], baseOffset: -1, start: -1 }
}
