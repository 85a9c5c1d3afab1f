import { ERROR_CODES, type KafkaErrorName } from '../error-codes.ts'
import { WireWriter } from '../wire-writer.ts'
import { mapByTopic, readByTopic, writeByTopic, type KafkaApi } from './api.ts'

/** Must name a partition before a transaction writes to it. */
export const addPartitionsToTxn: KafkaApi = {
  key: 24,
  versions: [0, 1],
  respond({ body, cluster, plannedError }) {
    const identity = { transactionalId: body.string(), producerId: body.int64(), producerEpoch: body.int16() }
    const topics = cluster.readTopics()
    const added = mapByTopic(
      readByTopic(body, () => body.int32()),
      (topic, partition): { partition: number; error: KafkaErrorName } => {
        const log = topics.partitions(topic)?.[partition]
        if (plannedError !== undefined) return { partition, error: plannedError }
        if (log === undefined) return { partition, error: 'UNKNOWN_TOPIC_OR_PARTITION' }
        return { partition, error: cluster.transactions.addPartition(identity, log) }
      },
    )
    const answer = new WireWriter().int32(0)
    return writeByTopic(answer, added, ({ partition, error }) => answer.int32(partition).int16(ERROR_CODES[error]))
  },
}
