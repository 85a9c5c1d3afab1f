import { crc32c } from './crc32c.ts'
import type { KafkaErrorName } from './error-codes.ts'
import { WireReader } from './wire-reader.ts'
import { WireWriter } from './wire-writer.ts'
import { required } from '../kit/required.ts'

export interface KafkaRecord {
  readonly offset: number
  readonly timestamp: number
  readonly key: Buffer | null
  /** Null is a tombstone. */
  readonly value: Buffer | null
  readonly headers: readonly (readonly [name: string, value: Buffer | null])[]
}

/** A batch of records in the format of Kafka 0.11 and later. */
export interface RecordBatch {
  readonly baseOffset: number
  /** Kept also when compaction removed the records at its end. */
  readonly lastOffset: number
  readonly leaderEpoch: number
  readonly isTransactional: boolean
  /** Control batches of the broker: transaction markers. */
  readonly isControl: boolean
  readonly producerId: number
  readonly producerEpoch: number
  readonly baseSequence: number
  readonly records: readonly KafkaRecord[]
}

const MAGIC = 2
/**
 * Offset and length precede the bytes that the length counts; leader epoch, magic and checksum precede those the
 * checksum covers.
 */
const HEADER_BYTES = 12
/** The number of records follows the header of a batch. */
const RECORDS_AT = 57
const TRANSACTIONAL = 0x10
const CONTROL = 0x20
const COMPRESSION = 0x07

export function encodeBatch(batch: RecordBatch): Buffer {
  const times = batch.records.map(({ timestamp }) => timestamp)
  const baseTimestamp = times[0] ?? -1
  const body = new WireWriter()
    .int16((batch.isTransactional ? TRANSACTIONAL : 0) | (batch.isControl ? CONTROL : 0))
    .int32(batch.lastOffset - batch.baseOffset)
    .int64(baseTimestamp)
    .int64(times.reduce((latest, time) => Math.max(latest, time), -1))
    .int64(batch.producerId)
    .int16(batch.producerEpoch)
    .int32(batch.baseSequence)
  body.nullableArray(batch.records, (record) => body.varintBytes(encodeRecord(record, batch.baseOffset, baseTimestamp)))
  const covered = body.bytes
  const rest = new WireWriter().int32(batch.leaderEpoch).int8(MAGIC).uint32(crc32c(covered)).raw(covered).bytes
  return new WireWriter().int64(batch.baseOffset).nullableBytes(rest).bytes
}

function encodeRecord(
  { offset, timestamp, key, value, headers }: KafkaRecord,
  baseOffset: number,
  baseTimestamp: number,
): Buffer {
  const record = new WireWriter()
    .int8(0)
    .varint(timestamp - baseTimestamp)
    .varint(offset - baseOffset)
    .varintBytes(key)
    .varintBytes(value)
  return record.varintArray(headers, ([name, bytes]) => record.varintBytes(Buffer.from(name)).varintBytes(bytes)).bytes
}

/** The batches of a produce request, in order; or the reason why a broker accepts none of them. */
export function decodeBatches(bytes: Buffer): RecordBatch[] | KafkaErrorName {
  const batches: RecordBatch[] = []
  for (const part of splitBatches(bytes)) {
    const batch = decodeBatch(part)
    if (typeof batch === 'string') return batch
    batches.push(batch)
  }
  return batches
}

/** The bytes of each batch. */
export function splitBatches(bytes: Buffer): Buffer[] {
  const parts: Buffer[] = []
  for (let rest = bytes; rest.length > 0;) {
    const length = HEADER_BYTES + new WireReader(rest.subarray(8)).int32()
    parts.push(new WireReader(rest).raw(length))
    rest = rest.subarray(length)
  }
  return parts
}

/** A copy of a batch at another offset. The checksum does not cover these fields. */
export function moveBatch(bytes: Buffer, baseOffset: number, leaderEpoch: number): Buffer {
  const moved = Buffer.from(bytes)
  moved.writeBigInt64BE(BigInt(baseOffset), 0)
  moved.writeInt32BE(leaderEpoch, HEADER_BYTES)
  return moved
}

/** Records are decoded when they are read: most batches are only passed on. */
export function decodeBatch(bytes: Buffer): RecordBatch | KafkaErrorName {
  const reader = new WireReader(bytes)
  const baseOffset = reader.int64()
  reader.int32()
  const leaderEpoch = reader.int32()
  if (reader.int8() !== MAGIC) return 'UNSUPPORTED_FOR_MESSAGE_FORMAT'
  if (reader.uint32() !== crc32c(bytes.subarray(bytes.length - reader.remaining))) return 'CORRUPT_MESSAGE'
  const attributes = reader.int16()
  if ((attributes & COMPRESSION) !== 0) return 'UNSUPPORTED_COMPRESSION_TYPE'
  const lastOffset = baseOffset + reader.int32()
  const baseTimestamp = reader.int64()
  reader.int64()
  return {
    baseOffset,
    lastOffset,
    leaderEpoch,
    isTransactional: (attributes & TRANSACTIONAL) !== 0,
    isControl: (attributes & CONTROL) !== 0,
    producerId: reader.int64(),
    producerEpoch: reader.int16(),
    baseSequence: reader.int32(),
    get records() {
      const records = new WireReader(bytes.subarray(RECORDS_AT))
      return records.array(() =>
        decodeRecord(
          new WireReader(required(records.varintBytes(), 'the result of varintBytes')),
          baseOffset,
          baseTimestamp,
        ),
      )
    },
  }
}

function decodeRecord(reader: WireReader, baseOffset: number, baseTimestamp: number): KafkaRecord {
  reader.int8()
  const timestamp = baseTimestamp + reader.varint()
  return {
    timestamp,
    offset: baseOffset + reader.varint(),
    key: reader.varintBytes(),
    value: reader.varintBytes(),
    headers: reader.varintArray(() => [String(reader.varintBytes()), reader.varintBytes()] as const),
  }
}
