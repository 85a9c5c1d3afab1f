import type pg from 'pg'
import { SyncError, type SyncContext } from '../../contract/index.ts'
import { toSyncError, getSqlState } from '../kit/postgres/failures.ts'
import { connect, quoteName, SESSION_SETTINGS_SQL, getSocket, describeServer } from '../kit/postgres/session.ts'
import { formatLsn, type Lsn } from './lsn.ts'
import { parseMessage, type PgoutputMessage } from './pgoutput.ts'

/** A log message, or the server's notice that everything before an LSN has been sent. */
export type ReplicationMessage = PgoutputMessage | { readonly kind: 'reached'; readonly lsn: Lsn }

interface ReplicationConnection {
  on(event: 'copyData', listener: (message: { chunk: Buffer }) => void): void
  once(event: 'replicationStart', listener: () => void): void
  sendCopyFromChunk(chunk: Buffer): void
}

/** Backpressure: above this many unread messages the socket is paused, so memory stays bounded. */
const QUEUE_MAX = 2_000

export interface ReplicationOptions {
  readonly url: string
  readonly slot: string
  readonly publication: string
}

/** Streams the server's log from an LSN. Only `acknowledge` acknowledges. */
export class ReplicationStream {
  readonly #client: pg.Client
  readonly #where: string
  readonly #queue: ReplicationMessage[] = []
  #wake: (() => void) | null = null
  #failure: unknown = null
  #isPaused = false
  #acknowledged: Lsn

  private constructor(client: pg.Client, where: string, acknowledged: Lsn) {
    this.#client = client
    this.#where = where
    this.#acknowledged = acknowledged
  }

  /** `committed` is the LSN that may be acknowledged, which can be before the start of the stream. */
  static async open(
    { url, slot, publication }: ReplicationOptions,
    from: Lsn,
    committed: Lsn,
    context: SyncContext,
  ): Promise<ReplicationStream> {
    const where = describeServer(url)
    for (let attempt = 1; ; attempt++) {
      try {
        return await ReplicationStream.#start({ url, slot, publication }, where, from, committed, context.signal)
      } catch (error) {
        // The server may not have noticed yet that a previous reader has disconnected.
        if (getSqlState(error) !== OBJECT_IN_USE || attempt >= ATTEMPTS_MAX)
          throw context.signal.aborted ? context.signal.reason : toSyncError(error, where)
        await context.clock.sleep(BUSY_RETRY_MS, context.signal)
      }
    }
  }

  static async #start(
    { url, slot, publication }: ReplicationOptions,
    where: string,
    from: Lsn,
    committed: Lsn,
    signal: AbortSignal,
  ): Promise<ReplicationStream> {
    const client = await connect(url, where, signal, { replication: 'database' })
    try {
      await client.query(SESSION_SETTINGS_SQL)
      const stream = new ReplicationStream(client, where, committed)
      const wire = getConnection(client)
      wire.on('copyData', ({ chunk }) => stream.#receive(chunk))
      const started = new Promise<void>((resolve) => wire.once('replicationStart', resolve))
      // The query never completes normally: it ends with the connection or an error.
      const ended = client.query(
        `START_REPLICATION SLOT ${quoteName(slot)} LOGICAL ${formatLsn(from)} (proto_version '1', publication_names '${quoteName(publication).replaceAll("'", "''")}')`,
      )
      ended.then(
        () => stream.#fail(new Error('the server ended the replication stream')),
        (error: unknown) => stream.#fail(error),
      )
      await Promise.race([started, ended])
      return stream
    } catch (error) {
      getSocket(client)?.destroy()
      throw error
    }
  }

  get isBroken(): boolean {
    return this.#failure !== null
  }

  /** Returns the next message, or null on timeout. */
  async next(context: SyncContext, waitMs: number): Promise<ReplicationMessage | null> {
    if (this.#queue.length === 0) {
      if (this.#failure !== null)
        throw context.signal.aborted ? context.signal.reason : toSyncError(this.#failure, this.#where)
      await this.#waitForMessage(context, waitMs)
    }
    const received = this.#queue.shift() ?? null
    if (this.#isPaused && this.#queue.length < QUEUE_MAX / 2) {
      this.#isPaused = false
      getSocket(this.#client)?.resume()
    }
    if (received === null && this.#failure !== null)
      throw context.signal.aborted ? context.signal.reason : toSyncError(this.#failure, this.#where)
    return received
  }

  /** Everything before the LSN is committed, so the server may discard it. Also requests the server's current LSN. */
  acknowledge(lsn: Lsn): void {
    if (lsn > this.#acknowledged) this.#acknowledged = lsn
    this.#sendStatus(true)
  }

  close(): void {
    getSocket(this.#client)?.destroy()
  }

  #sendStatus(requestReply: boolean): void {
    if (this.#failure !== null) return
    const status = Buffer.alloc(34)
    status.write('r')
    // Written, flushed and applied are the same for us.
    for (const offset of [1, 9, 17]) status.writeBigUInt64BE(this.#acknowledged, offset)
    status.writeUInt8(requestReply ? 1 : 0, 33)
    getConnection(this.#client).sendCopyFromChunk(status)
  }

  #receive(chunk: Buffer): void {
    try {
      const tag = chunk[0]
      if (tag === KEEPALIVE) {
        this.#queue.push({ kind: 'reached', lsn: chunk.readBigUInt64BE(1) })
        // The server requests a reply to check that we are connected.
        if (chunk[17] === 1) this.#sendStatus(false)
      } else if (tag === XLOG_DATA) this.#queue.push(parseMessage(chunk.subarray(25)))
    } catch (error) {
      this.#fail(new SyncError('SOURCE_INVALID', `${this.#where}: ${(error as Error).message}.`, { cause: error }))
    }
    if (this.#queue.length >= QUEUE_MAX && !this.#isPaused) {
      this.#isPaused = true
      getSocket(this.#client)?.pause()
    }
    this.#wake?.()
  }

  #fail(error: unknown): void {
    this.#failure ??= error
    this.#wake?.()
  }

  async #waitForMessage({ clock, signal }: SyncContext, waitMs: number): Promise<void> {
    const waiting = new AbortController()
    const arrived = new Promise<void>((resolve) => (this.#wake = resolve))
    const timedOut = clock.sleep(waitMs, AbortSignal.any([signal, waiting.signal])).catch(() => {})
    await Promise.race([arrived, timedOut])
    this.#wake = null
    waiting.abort()
    signal.throwIfAborted()
  }
}

function getConnection(client: pg.Client): ReplicationConnection {
  return (client as pg.Client & { connection: ReplicationConnection }).connection
}

const XLOG_DATA = 0x77
const KEEPALIVE = 0x6b
const OBJECT_IN_USE = '55006'
const BUSY_RETRY_MS = 100
const ATTEMPTS_MAX = 50
