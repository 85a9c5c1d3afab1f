import pg from 'pg'
import type { ColumnValue } from '../kit/tables/encode-record.ts'
import { BinaryWriter, type SqlType } from './binary-values.ts'

/** Room for the row that exceeds the limit, so that the buffer is seldom copied to a larger one. */
const ROW_BYTES = 1 << 16

const COPY_SIGNATURE = Buffer.from('PGCOPY\n\u00ff\r\n\0', 'latin1')
const COPY_DATA = 0x64
const COPY_DONE = Buffer.from([0x63, 0, 0, 0, 4])

/** The data of `COPY … FROM STDIN (FORMAT binary)`, row by row. */
export class CopyWriter extends BinaryWriter {
  /** `isFirst` is false for a part that continues another one. */
  constructor(buffer: Buffer | number = 1 << 18, isFirst = true) {
    super(buffer)
    if (!isFirst) return
    this.bytes(COPY_SIGNATURE)
    this.int32(0) // flags
    this.int32(0) // no extension
  }

  end(): Buffer {
    this.int16(-1)
    return this.toBuffer()
  }
}

export function encodeCopyData(types: readonly SqlType[], rows: Iterable<readonly ColumnValue[]>): Buffer {
  const [data] = encodeCopyParts(types, rows, Infinity)
  return data ?? new CopyWriter().end()
}

/** The data of several COPYs, each of which ends once it has this many bytes. */
export function* encodeCopyParts(
  types: readonly SqlType[],
  rows: Iterable<readonly ColumnValue[]>,
  bytesMax: number,
): Generator<Buffer> {
  let writer: CopyWriter | null = null
  for (const row of rows) {
    writer ??= bytesMax === Infinity ? new CopyWriter() : new CopyWriter(bytesMax + ROW_BYTES)
    writer.int16(types.length)
    for (let at = 0; at < types.length; at++) writer.value(types[at] as SqlType, row[at] ?? null)
    if (writer.length < bytesMax) continue
    yield writer.end()
    writer = null
  }
  if (writer !== null) yield writer.end()
}

interface WireConnection {
  query(text: string): void
  readonly stream: { write(bytes: Uint8Array): boolean; cork(): void; uncork(): void; readonly writable: boolean }
}

/**
 * `COPY … FROM STDIN` immediately followed by its data: a server that refuses the statement ignores the data, so there
 * is no need to wait for its answer. Without `data`, parts are sent until `end`. It extends Query, because the driver
 * pipelines nothing else.
 */
export class CopyQuery extends pg.Query {
  readonly #sql: string
  readonly #data: Buffer | null
  #stream: WireConnection['stream'] | null = null

  constructor(sql: string, data: Buffer | null, callback: (error: Error | null) => void) {
    super({ text: sql }, undefined, callback as never)
    this.#sql = sql
    this.#data = data
  }

  override submit = (connection: unknown): void => {
    const { stream, query } = connection as WireConnection
    if (!stream.writable) return
    this.#stream = stream
    stream.cork()
    query.call(connection, this.#sql)
    if (this.#data !== null) {
      this.send(this.#data)
      this.end()
    }
    stream.uncork()
  }

  /** Sends a part of the data; no other statement may be sent before `end`. */
  send(data: Buffer): void {
    const head = Buffer.allocUnsafe(5)
    head[0] = COPY_DATA
    head.writeInt32BE(data.length + 4, 1)
    this.#stream?.cork()
    this.#stream?.write(head)
    this.#stream?.write(data)
    this.#stream?.uncork()
  }

  end(): void {
    this.#stream?.write(COPY_DONE)
  }

  handleCopyInResponse(): void {}
}

/**
 * The rows of an open COPY. Full parts are sent while later rows are still encoded. Their buffers are used again once
 * the server has answered: to allocate memory of this size takes as long as to fill it.
 */
export class CopyRows {
  readonly #query: CopyQuery
  readonly #buffers: Buffer[] = []
  #writer: CopyWriter

  constructor(query: CopyQuery) {
    this.#query = query
    this.#writer = new CopyWriter(this.#takeBuffer())
  }

  /** For one row; ask for it again for the next one. */
  get writer(): BinaryWriter {
    if (this.#writer.length < PART_BYTES) return this.#writer
    this.#query.send(this.#writer.toBuffer())
    return (this.#writer = new CopyWriter(this.#takeBuffer(), false))
  }

  end(): void {
    this.#query.send(this.#writer.end())
    this.#query.end()
  }

  /** Legal only once the server has answered: until then a buffer may not be sent yet. */
  releaseBuffers(): void {
    freeBuffers.push(...this.#buffers.splice(0, FREE_BUFFERS_MAX - freeBuffers.length))
  }

  #takeBuffer(): Buffer {
    const buffer = freeBuffers.pop() ?? Buffer.allocUnsafeSlow(PART_BYTES + ROW_BYTES)
    this.#buffers.push(buffer)
    return buffer
  }
}

/** PostgreSQL allocates memory for a whole message: small ones are cheaper. */
const PART_BYTES = 1 << 17
const FREE_BUFFERS_MAX = 32
const freeBuffers: Buffer[] = []
