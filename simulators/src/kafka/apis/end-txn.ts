import { ERROR_CODES } from '../error-codes.ts'
import { WireWriter } from '../wire-writer.ts'
import type { KafkaApi } from './api.ts'

/** Commits or aborts a transaction. */
export const endTxn: KafkaApi = {
  key: 26,
  versions: [0, 1],
  respond({ body, cluster, plannedError }) {
    const identity = { transactionalId: body.string(), producerId: body.int64(), producerEpoch: body.int16() }
    const how = body.int8() === 1 ? 'commit' : 'abort'
    const error = plannedError ?? cluster.transactions.end(identity, how, cluster.now())
    cluster.notifyAppend()
    return new WireWriter().int32(0).int16(ERROR_CODES[error])
  },
}
