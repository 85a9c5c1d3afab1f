import { ERROR_CODES } from '../error-codes.ts'
import { WireWriter } from '../wire-writer.ts'
import type { KafkaApi } from './api.ts'

/** A producer id for idempotent and transactional producers. */
export const initProducerId: KafkaApi = {
  key: 22,
  versions: [0, 1],
  respond({ body, cluster, plannedError }) {
    const transactionalId = body.nullableString()
    body.int32()
    const given = plannedError ?? cluster.transactions.init(transactionalId, cluster.now())
    const { producerId, epoch } = typeof given === 'string' ? { producerId: -1, epoch: -1 } : given
    cluster.notifyAppend()
    return new WireWriter()
      .int32(0)
      .int16(ERROR_CODES[typeof given === 'string' ? given : 'NONE'])
      .int64(producerId)
      .int16(epoch)
  },
}
