import type { KafkaErrorName } from './error-codes.ts'
import type { PartitionLog } from './partition-log.ts'

/** A producer with a transactional id, as its coordinator knows it. */
interface TransactionalProducer {
  readonly producerId: number
  epoch: number
  state: 'empty' | 'ongoing' | 'committed' | 'aborted'
  readonly partitions: Set<PartitionLog>
}

/** A producer as it identifies itself in a request. */
export interface ProducerIdentity {
  readonly transactionalId: string
  readonly producerId: number
  readonly producerEpoch: number
}

/**
 * The transaction coordinator of a cluster, and the producer ids that it assigned.
 *
 *   empty ─ AddPartitionsToTxn ─► ongoing ─ EndTxn ─► committed | aborted ─ AddPartitionsToTxn ─► ongoing …
 *
 * `InitProducerId` raises the epoch of a transactional id: requests with an older epoch are refused from then on, and an
 * ongoing transaction is aborted. Markers are written before a response is sent, unless `markersLate` is set. Transactions
 * do not time out.
 */
export class Transactions {
  readonly #producers = new Map<string, TransactionalProducer>()
  /** The newest epoch of every producer id. */
  readonly #epochs = new Map<number, number>()
  #nextId = 1_000
  /** The number of requests for offsets after a commit until its markers are written, as if partitions were slow. */
  markersLate = 0
  #pending: { write: () => void; requests: number }[] = []

  /** An ongoing transaction is aborted first, and the client asks again. */
  init(transactionalId: string | null, now: number): { producerId: number; epoch: number } | KafkaErrorName {
    if (transactionalId === null) return this.#register(this.#nextId++, 0)
    const producer = this.#producers.get(transactionalId)
    if (producer === undefined) {
      const created = this.#register(this.#nextId++, 0)
      this.#producers.set(transactionalId, { ...created, state: 'empty', partitions: new Set() })
      return created
    }
    if (this.#isPending()) return 'CONCURRENT_TRANSACTIONS'
    this.#register(producer.producerId, ++producer.epoch)
    if (producer.state === 'ongoing') {
      this.#end(producer, 'abort', now)
      return 'CONCURRENT_TRANSACTIONS'
    }
    producer.state = 'empty'
    return { producerId: producer.producerId, epoch: producer.epoch }
  }

  /** Called for each request for offsets. */
  passTime(): void {
    for (const pending of this.#pending) if (pending.requests-- <= 0) pending.write()
    this.#pending = this.#pending.filter(({ requests }) => requests >= 0)
  }

  /** Requests of a producer whose last transaction has not ended everywhere are refused. */
  #isPending(): boolean {
    const isPending = this.#pending.length > 0
    for (const { write } of this.#pending) write()
    this.#pending = []
    return isPending
  }

  addPartition(identity: ProducerIdentity, log: PartitionLog): KafkaErrorName {
    const producer = this.#find(identity)
    if (typeof producer === 'string') return producer
    if (this.#isPending()) return 'CONCURRENT_TRANSACTIONS'
    if (producer.state !== 'ongoing') producer.partitions.clear()
    producer.state = 'ongoing'
    producer.partitions.add(log)
    return 'NONE'
  }

  /** The same end twice is one end: the first response may have been lost. */
  end(identity: ProducerIdentity, how: 'commit' | 'abort', now: number): KafkaErrorName {
    const producer = this.#find(identity)
    if (typeof producer === 'string') return producer
    if (producer.state === (how === 'commit' ? 'committed' : 'aborted')) return 'NONE'
    if (producer.state !== 'ongoing') return 'INVALID_TXN_STATE'
    this.#end(producer, how, now)
    return 'NONE'
  }

  /** Whether a batch of a producer may be appended to a partition, apart from its sequence numbers. */
  check(
    {
      producerId,
      producerEpoch,
      isTransactional,
    }: { producerId: number; producerEpoch: number; isTransactional: boolean },
    transactionalId: string | null,
    log: PartitionLog,
  ): KafkaErrorName {
    if (producerId < 0) return 'NONE'
    const epoch = this.#epochs.get(producerId)
    if (epoch === undefined) return 'UNKNOWN_PRODUCER_ID'
    if (producerEpoch !== epoch) return 'INVALID_PRODUCER_EPOCH'
    if (!isTransactional) return 'NONE'
    const producer = this.#producers.get(transactionalId ?? '')
    if (producer?.producerId !== producerId) return 'INVALID_PRODUCER_ID_MAPPING'
    return producer.state === 'ongoing' && producer.partitions.has(log) ? 'NONE' : 'INVALID_TXN_STATE'
  }

  #find({ transactionalId, producerId, producerEpoch }: ProducerIdentity): TransactionalProducer | KafkaErrorName {
    const producer = this.#producers.get(transactionalId)
    if (producer === undefined || producer.producerId !== producerId) return 'INVALID_PRODUCER_ID_MAPPING'
    return producer.epoch === producerEpoch ? producer : 'INVALID_PRODUCER_EPOCH'
  }

  #end(producer: TransactionalProducer, how: 'commit' | 'abort', now: number): void {
    const { producerId, epoch, partitions } = producer
    const logs = [...partitions]
    const write = (): void => logs.forEach((log) => log.writeMarker(producerId, epoch, how, now))
    if (this.markersLate > 0) this.#pending.push({ write, requests: this.markersLate })
    else write()
    producer.state = how === 'commit' ? 'committed' : 'aborted'
  }

  #register(producerId: number, epoch: number): { producerId: number; epoch: number } {
    this.#epochs.set(producerId, epoch)
    return { producerId, epoch }
  }
}
