import { ERROR_CODES } from '../error-codes.ts'
import type { PartitionLog } from '../partition-log.ts'
import { WireWriter } from '../wire-writer.ts'
import type { KafkaApi } from './api.ts'
import { required } from '../../kit/required.ts'

const CLUSTER_ID = 'simulated'
const NO_LEADER = -1

/**
 * The brokers and the leader of each partition. Requesting a topic does not create it
 * (`auto.create.topics.enable=false`).
 */
export const metadata: KafkaApi = {
  key: 3,
  versions: [1, 6],
  respond({ version, body, cluster, plannedError: refusal }) {
    const known = cluster.readTopics()
    const topics = body.nullableArray(() => body.string()) ?? known.names
    const ids = cluster.brokers.map(({ id }) => id)
    const answer = new WireWriter()
    if (version >= 3) answer.int32(0)
    answer.nullableArray(cluster.brokers, ({ id, port }) =>
      answer.int32(id).nullableString('127.0.0.1').int32(port).nullableString(null),
    )
    if (version >= 2) answer.nullableString(CLUSTER_ID)
    answer.int32(required(ids[0], 'ids[0]'))
    const writePartition = (log: PartitionLog, at: number): void => {
      answer
        .int16(log.leader === null ? ERROR_CODES.LEADER_NOT_AVAILABLE : ERROR_CODES.NONE)
        .int32(at)
        .int32(log.leader ?? NO_LEADER)
      for (const nodes of [ids, ids, ...(version >= 5 ? [[]] : [])])
        answer.nullableArray(nodes, (id) => answer.int32(id))
    }
    return answer.nullableArray(topics, (topic) => {
      const logs = known.partitions(topic)
      const error = refusal ?? (logs === undefined ? 'UNKNOWN_TOPIC_OR_PARTITION' : 'NONE')
      answer.int16(ERROR_CODES[error]).nullableString(topic).boolean(false)
      answer.nullableArray([...(error === 'NONE' ? required(logs, 'logs') : []).entries()], ([at, log]) =>
        writePartition(log, at),
      )
    })
  },
}
