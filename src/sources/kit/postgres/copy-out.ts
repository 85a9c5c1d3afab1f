import type { Submittable } from 'pg'

/** So much is taken off the wire before somebody takes it off our hands. */
const BUFFERED_BYTES_MAX = 1_000_000
/** So much of what is no longer wanted is read, to leave the connection as it was; of more, the connection is the price. */
const DRAINED_BYTES_MAX = 1_000_000

interface PausableSocket {
  pause(): void
  resume(): void
  destroy(): void
}

/** COPY … TO STDOUT as a statement of the driver: each row is taken as it stands in the driver's buffer. */
export class CopyOut<Row> implements Submittable {
  readonly #text: string
  readonly #parseLine: (line: Buffer) => Row
  readonly #socket: PausableSocket
  #rows: Row[] = []
  #bytes = 0
  #isConsumed = true
  #end: { readonly error: unknown } | null = null
  #wake = (): void => {}

  constructor(text: string, take: (line: Buffer) => Row, socket: PausableSocket) {
    this.#text = text
    this.#parseLine = take
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
    if (this.#end!.error !== null) throw this.#end!.error
  }

  /** A connection that is still told rows can be asked nothing. */
  async #drain(): Promise<void> {
    this.#isConsumed = false
    this.#resumeSocket()
    while (this.#end === null) await new Promise<void>((resolve) => (this.#wake = resolve))
  }

  #resumeSocket(): void {
    if (this.#bytes >= BUFFERED_BYTES_MAX) this.#socket.resume()
    this.#bytes = 0
  }

  // ── what the driver calls ──────────────────────────────────────────────────────────────────────────────────────────

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
      // Thrown here it would end the process.
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

  /** The first word counts. */
  #finish(error: unknown): void {
    this.#end ??= { error }
    this.#wake()
  }
}
