import type { RecordBatch } from './record-batch.ts'

/** Batches per producer whose repetition is recognized, as in a broker. */
const REMEMBERED_BATCHES = 5
const SEQUENCES = 2 ** 31

interface AppendedBatch {
  readonly epoch: number
  readonly baseSequence: number
  readonly count: number
  readonly baseOffset: number
}

/** The sequence numbers of idempotent producers in one partition. */
export class ProducerSequences {
  readonly #batches = new Map<number, AppendedBatch[]>()

  /** The offset of a batch that was appended before; null if the batch is the next one. */
  check(batch: RecordBatch): number | null | 'OUT_OF_ORDER_SEQUENCE_NUMBER' {
    const { producerId, producerEpoch, baseSequence } = batch
    if (producerId < 0) return null
    const batches = (this.#batches.get(producerId) ?? []).filter(({ epoch }) => epoch === producerEpoch)
    const last = batches.at(-1)
    const next = last === undefined ? 0 : (last.baseSequence + last.count) % SEQUENCES
    if (baseSequence === next) return null
    const same = batches.find((known) => known.baseSequence === baseSequence && known.count === countRecords(batch))
    return same === undefined ? 'OUT_OF_ORDER_SEQUENCE_NUMBER' : same.baseOffset
  }

  add(batch: RecordBatch, baseOffset: number): void {
    const { producerId, producerEpoch: epoch, baseSequence } = batch
    if (producerId < 0) return
    const batches = this.#batches.get(producerId) ?? []
    const appended = { epoch, baseSequence, count: countRecords(batch), baseOffset }
    this.#batches.set(producerId, [...batches, appended].slice(-REMEMBERED_BATCHES))
  }
}

/** A batch of a producer has no gaps. */
function countRecords({ baseOffset, lastOffset }: RecordBatch): number {
  return lastOffset - baseOffset + 1
}
