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
  constructor(bytes = 1 << 18) {
    super(bytes)
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
 * is no need to wait for its answer. It extends Query, because the driver pipelines nothing else.
 */
export class CopyQuery extends pg.Query {
  readonly #sql: string
  readonly #data: Buffer

  constructor(sql: string, data: Buffer, callback: (error: Error | null) => void) {
    super({ text: sql }, undefined, callback as never)
    this.#sql = sql
    this.#data = data
  }

  override submit = (connection: unknown): void => {
    const { stream, query } = connection as WireConnection
    if (!stream.writable) return
    stream.cork()
    query.call(connection, this.#sql)
    const head = Buffer.allocUnsafe(5)
    head[0] = COPY_DATA
    head.writeInt32BE(this.#data.length + 4, 1)
    stream.write(head)
    stream.write(this.#data)
    stream.write(COPY_DONE)
    stream.uncork()
  }

  handleCopyInResponse(): void {}
}
