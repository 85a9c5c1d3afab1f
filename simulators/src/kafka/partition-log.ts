import { ProducerSequences } from './producer-sequences.ts'
import { decodeBatch, encodeBatch, moveBatch, type KafkaRecord, type RecordBatch } from './record-batch.ts'
import { WireWriter } from './wire-writer.ts'
import { required } from '../kit/required.ts'

export interface AbortedTransaction {
  readonly producerId: number
  readonly firstOffset: number
  readonly lastOffset: number
}

export interface ReadLimits {
  readonly maxBytes: number
  /** A larger batch is returned whole all the same, so that a reader with a small buffer is not stuck before it. */
  readonly atLeastOneBatch: boolean
  /** Before this offset: the end, or where the first open transaction begins. */
  readonly until: number
}

/** Outside a transaction and without a sequence number: plain producers are not deduplicated. */
const NON_TRANSACTIONAL = {
  isTransactional: false,
  isControl: false,
  producerId: -1,
  producerEpoch: -1,
  baseSequence: -1,
} as const

/** One partition: batches by offset. The oldest may have been deleted and any record compacted away. */
export class PartitionLog {
  /** The leading broker; null while there is none. */
  leader: number | null
  leaderEpoch = 0
  readonly sequences = new ProducerSequences()
  readonly #retentionBytes: number
  #entries: { readonly batch: RecordBatch; readonly bytes: Buffer }[] = []
  #start = 0
  #end = 0
  /** Per producer, where its transaction begins. */
  readonly #open = new Map<number, number>()
  readonly #aborted: AbortedTransaction[] = []

  constructor(leader: number, retentionBytes = Infinity) {
    this.leader = leader
    this.#retentionBytes = retentionBytes
  }

  get start(): number {
    return this.#start
  }

  /** Everything is replicated at once, so the end is also the high watermark. */
  get end(): number {
    return this.#end
  }

  /** The last stable offset. */
  get stableEnd(): number {
    return Math.min(this.#end, ...this.#open.values())
  }

  setLeader(leader: number | null): void {
    this.leader = leader
    this.leaderEpoch++
  }

  /** Appends at the end, whatever offset the producer sent; returns the offset of its first record. */
  append(given: RecordBatch, received: Buffer = encodeBatch(given)): number {
    const bytes = moveBatch(received, this.#end, this.leaderEpoch)
    const batch = decodeBatch(bytes)
    if (typeof batch === 'string') throw new Error(`The batch cannot be appended: ${batch}`)
    this.#entries.push({ batch, bytes })
    this.#end = batch.lastOffset + 1
    if (batch.isTransactional && !batch.isControl && !this.#open.has(batch.producerId))
      this.#open.set(batch.producerId, batch.baseOffset)
    this.#retain()
    return batch.baseOffset
  }

  appendRecords(records: readonly Omit<KafkaRecord, 'offset'>[], transactionOf?: number): number {
    const placed = records.map((record, at) => ({ ...record, offset: this.#end + at }))
    const transaction =
      transactionOf === undefined
        ? {}
        : { isTransactional: true, producerId: transactionOf, producerEpoch: 0, baseSequence: 0 }
    return this.append({
      ...NON_TRANSACTIONAL,
      ...transaction,
      baseOffset: this.#end,
      lastOffset: this.#end + records.length - 1,
      leaderEpoch: this.leaderEpoch,
      records: placed,
    })
  }

  /** Appends a transaction marker, which has its own offset. */
  endTransaction(producerId: number, how: 'commit' | 'abort', timestamp: number): void {
    if (!this.#open.has(producerId)) throw new Error(`Producer ${producerId} has no open transaction here.`)
    this.writeMarker(producerId, 0, how, timestamp)
  }

  /** The marker of a coordinator, also in a partition to which the transaction has written nothing. */
  writeMarker(producerId: number, producerEpoch: number, how: 'commit' | 'abort', timestamp: number): void {
    const firstOffset = this.#open.get(producerId)
    const key = new WireWriter().int16(0).int16(how === 'commit' ? 1 : 0).bytes
    const value = new WireWriter().int16(0).int32(0).bytes
    this.append({
      ...NON_TRANSACTIONAL,
      isTransactional: true,
      isControl: true,
      producerId,
      producerEpoch,
      baseOffset: this.#end,
      lastOffset: this.#end,
      leaderEpoch: this.leaderEpoch,
      records: [{ offset: this.#end, timestamp, key, value, headers: [] }],
    })
    this.#open.delete(producerId)
    if (how === 'abort' && firstOffset !== undefined)
      this.#aborted.push({ producerId, firstOffset, lastOffset: this.#end - 1 })
  }

  /** The aborted transactions that a reader of an offset range has to skip. */
  abortedBetween(from: number, until: number): AbortedTransaction[] {
    return this.#aborted.filter(({ firstOffset, lastOffset }) => lastOffset >= from && firstOffset < until)
  }

  /**
   * Whole batches, from the one that holds the offset or follows it; the last may be cut anywhere, as in a file that is
   * read by bytes.
   */
  read(offset: number, { maxBytes, atLeastOneBatch: needsOne, until }: ReadLimits): Buffer {
    const found: Buffer[] = []
    let size = 0
    for (const { batch, bytes } of this.#entries) {
      if (batch.lastOffset < offset) continue
      if (batch.baseOffset >= until || size >= maxBytes) break
      if (found.length === 0 && bytes.length > maxBytes) return needsOne ? bytes : Buffer.alloc(0)
      found.push(bytes)
      size += bytes.length
    }
    return Buffer.concat(found).subarray(0, maxBytes)
  }

  /** The records that a reader with `read_committed` sees. */
  committedRecords(): KafkaRecord[] {
    return this.#entries
      .filter(({ batch }) => !batch.isControl && batch.baseOffset < this.stableEnd && !this.#isAborted(batch))
      .flatMap(({ batch }) => batch.records)
  }

  /** Returns a function that brings the partition back to its present content, as a restore from a backup does. */
  save(): () => void {
    const saved = { entries: [...this.#entries], start: this.#start, end: this.#end, aborted: [...this.#aborted] }
    return () => {
      this.#entries = [...saved.entries]
      this.#start = saved.start
      this.#end = saved.end
      this.#aborted.splice(0, Infinity, ...saved.aborted)
      this.#open.clear()
    }
  }

  /** The first record that is no older, in log order. */
  recordSince(timestamp: number): KafkaRecord | undefined {
    for (const { batch } of this.#entries) {
      const found = batch.records.find((record) => record.offset >= this.#start && record.timestamp >= timestamp)
      if (found !== undefined) return found
    }
    return undefined
  }

  /** Deletes the oldest records, as retention or `DeleteRecords` does. */
  deleteBefore(offset: number): void {
    this.#start = Math.max(this.#start, Math.min(offset, this.#end))
    this.#entries = this.#entries.filter(({ batch }) => batch.lastOffset >= this.#start)
  }

  /**
   * Keeps the last record of every key, and a tombstone only until it expires. The last batch is still open, and open
   * transactions stay as they are; neither replaces an earlier record. Offsets stay: the log gets gaps, but its start
   * does not move.
   */
  compact({ tombstones }: { readonly tombstones: 'keep' | 'forget' }): void {
    const until = Math.min(this.stableEnd, this.#entries.at(-1)?.batch.baseOffset ?? 0)
    const cleaned = this.#entries
      .filter(({ batch }) => batch.lastOffset < until && !batch.isControl)
      .map(({ batch }) => ({ batch, records: this.#isAborted(batch) ? [] : batch.records }))
    const last = new Map(
      cleaned.flatMap(({ records }) =>
        records.map(({ key, offset }) => [String(key?.toString('base64')), offset] as const),
      ),
    )
    const kept = new Map(
      cleaned.map(({ batch, records }) => [
        batch.baseOffset,
        records.filter(
          ({ key, value, offset }) =>
            key !== null && last.get(key.toString('base64')) === offset && (value !== null || tombstones === 'keep'),
        ),
      ]),
    )
    this.#entries = this.#entries.flatMap((entry) => {
      const records = kept.get(entry.batch.baseOffset) ?? entry.batch.records
      if (records.length === entry.batch.records.length) return [entry]
      const batch = { ...entry.batch, records }
      return records.length === 0 ? [] : [{ batch, bytes: encodeBatch(batch) }]
    })
  }

  #isAborted({ producerId, baseOffset, isTransactional }: RecordBatch): boolean {
    return (
      isTransactional &&
      this.#aborted.some(
        (aborted) =>
          aborted.producerId === producerId && baseOffset >= aborted.firstOffset && baseOffset <= aborted.lastOffset,
      )
    )
  }

  /** Deletes the oldest batches while enough remain. */
  #retain(): void {
    if (this.#retentionBytes === Infinity) return
    let size = this.#entries.reduce((sum, { bytes }) => sum + bytes.length, 0)
    while (size - required(this.#entries[0], 'entries[0]').bytes.length >= this.#retentionBytes) {
      size -= required(this.#entries[0], 'entries[0]').bytes.length
      this.deleteBefore(required(this.#entries[0], 'entries[0]').batch.lastOffset + 1)
    }
  }
}
