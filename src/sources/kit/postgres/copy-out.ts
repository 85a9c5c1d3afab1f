import type { Submittable } from 'pg'
import { required } from '../../../values/required.ts'

/** Backpressure: the socket is paused while this much is buffered. */
const BUFFERED_BYTES_MAX = 1_000_000
/** After an early exit, up to this much is read to keep the connection usable. Beyond it the connection is closed. */
const DRAINED_BYTES_MAX = 1_000_000

interface PausableSocket {
  pause(): void
  resume(): void
  destroy(): void
}

/** COPY … TO STDOUT as a statement of the driver. Each row is parsed directly from the driver's buffer. */
export class CopyOut<Row> implements Submittable {
  readonly #text: string
  readonly #parseLine: (line: Buffer) => Row
  readonly #socket: PausableSocket
  #rows: Row[] = []
  #bytes = 0
  #isConsumed = true
  #end: { readonly error: unknown } | null = null
  #wake = (): void => {}

  constructor(text: string, parseLine: (line: Buffer) => Row, socket: PausableSocket) {
    this.#text = text
    this.#parseLine = parseLine
    this.#socket = socket
  }

  async *rows(): AsyncIterable<Row[]> {
    try {
      for (;;) {
        if (this.#rows.length === 0 && this.#end === null) await new Promise<void>((resolve) => (this.#wake = resolve))
        const rows = this.#rows
        this.#rows = []
        this.#resumeSocket()
        if (rows.length > 0) yield rows
        else if (this.#end !== null) break
      }
    } finally {
      await this.#drain()
    }
    const { error } = required(this.#end, 'The end of the COPY statement')
    if (error !== null) throw error
  }

  /** A connection accepts no other statement until COPY has ended. */
  async #drain(): Promise<void> {
    this.#isConsumed = false
    this.#resumeSocket()
    while (this.#end === null) await new Promise<void>((resolve) => (this.#wake = resolve))
  }

  #resumeSocket(): void {
    if (this.#bytes >= BUFFERED_BYTES_MAX) this.#socket.resume()
    this.#bytes = 0
  }

  // ── called by the driver ───────────────────────────────────────────────────────────────────────────────────────────

  submit(connection: { query(text: string): void }): void {
    connection.query(this.#text)
  }

  handleCopyData({ chunk }: { chunk: Buffer }): void {
    this.#bytes += chunk.length
    if (!this.#isConsumed) {
      if (this.#bytes >= DRAINED_BYTES_MAX) this.#socket.destroy()
      return
    }
    if (this.#end !== null) return
    try {
      this.#rows.push(this.#parseLine(chunk))
    } catch (error) {
      // An exception thrown into the driver would end the process.
      this.#finish(error)
      this.#socket.destroy()
      return
    }
    if (this.#bytes >= BUFFERED_BYTES_MAX) this.#socket.pause()
    this.#wake()
  }

  handleError(error: unknown): void {
    this.#finish(error)
  }

  handleReadyForQuery(): void {
    this.#finish(null)
  }

  handleCommandComplete(): void {}

  /** The first result wins. */
  #finish(error: unknown): void {
    this.#end ??= { error }
    this.#wake()
  }
}
