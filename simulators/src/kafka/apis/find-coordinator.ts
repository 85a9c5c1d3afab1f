import { required } from '../../kit/required.ts'
import { ERROR_CODES } from '../error-codes.ts'
import { WireWriter } from '../wire-writer.ts'
import type { KafkaApi } from './api.ts'

const TRANSACTION = 1

/** The first broker coordinates every transaction. There are no consumer groups. */
export const findCoordinator: KafkaApi = {
  key: 10,
  versions: [1, 2],
  respond({ body, cluster, plannedError }) {
    body.string()
    const isTransaction = body.int8() === TRANSACTION
    const error = plannedError ?? (isTransaction ? 'NONE' : 'COORDINATOR_NOT_AVAILABLE')
    const { id, port } = required(cluster.brokers[0], 'brokers[0]')
    const found = error === 'NONE' ? { id, host: '127.0.0.1', port } : { id: -1, host: '', port: -1 }
    return new WireWriter()
      .int32(0)
      .int16(ERROR_CODES[error])
      .nullableString(null)
      .int32(found.id)
      .nullableString(found.host)
      .int32(found.port)
  },
}
