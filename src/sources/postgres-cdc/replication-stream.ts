import type pg from 'pg'
import { SyncError, type SyncContext } from '../../contract/index.ts'
import { toSyncError, getSqlState } from '../kit/postgres/failures.ts'
import { connect, quoteName, SESSION_SETTINGS_SQL, getSocket, describeServer } from '../kit/postgres/session.ts'
import { formatLsn, type Lsn } from './lsn.ts'
import { parseMessage, type PgoutputMessage } from './pgoutput.ts'

/** A message of the log, or the server's word that everything before a place has been sent. */
export type ReplicationMessage = PgoutputMessage | { readonly kind: 'reached'; readonly lsn: Lsn }

interface ReplicationConnection {
  on(event: 'copyData', listener: (message: { chunk: Buffer }) => void): void
  once(event: 'replicationStart', listener: () => void): void
  sendCopyFromChunk(chunk: Buffer): void
}

/** Past so many messages that nobody has taken yet, the socket is not read: the server waits, and memory stays bounded. */
const QUEUE_MAX = 2_000

export interface ReplicationOptions {
  readonly url: string
  readonly slot: string
  readonly publication: string
}

/** The log of the server from a place on. Nothing is acknowledged unless `acknowledge` is called. */
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

  /** `landed` is what may be acknowledged, which can be less than where the stream begins. */
  static async open({ url, slot, publication }: ReplicationOptions, from: Lsn, landed: Lsn, context: SyncContext): Promise<ReplicationStream> {
    const where = describeServer(url)
    for (let attempt = 1; ; attempt++) {
      try {
        return await ReplicationStream.#start({ url, slot, publication }, where, from, landed, context.signal)
      } catch (error) {
        // A reader that died a moment ago may not have been noticed yet.
        if (getSqlState(error) !== OBJECT_IN_USE || attempt >= ATTEMPTS_MAX) throw context.signal.aborted ? context.signal.reason : toSyncError(error, where)
        await context.clock.sleep(BUSY_RETRY_MS, context.signal)
      }
    }
  }

  static async #start({ url, slot, publication }: ReplicationOptions, where: string, from: Lsn, landed: Lsn, signal: AbortSignal): Promise<ReplicationStream> {
    const client = await connect(url, where, signal, { replication: 'database' })
    try {
      await client.query(SESSION_SETTINGS_SQL)
      const stream = new ReplicationStream(client, where, landed)
      const wire = (client as unknown as { connection: ReplicationConnection }).connection
      wire.on('copyData', ({ chunk }) => stream.#receive(chunk))
      const started = new Promise<void>((resolve) => wire.once('replicationStart', resolve))
      // It never answers: it ends with the connection, or by failing.
      const over = client.query(`START_REPLICATION SLOT ${quoteName(slot)} LOGICAL ${formatLsn(from)} (proto_version '1', publication_names '${quoteName(publication).replaceAll("'", "''")}')`)
      over.then(() => stream.#fail(new Error('the server ended the replication')), (error: unknown) => stream.#fail(error))
      await Promise.race([started, over])
      return stream
    } catch (error) {
      getSocket(client)?.destroy()
      throw error
    }
  }

  get isBroken(): boolean {
    return this.#failure !== null
  }

  /** The next message; null when none came in time. */
  async next(context: SyncContext, waitMs: number): Promise<ReplicationMessage | null> {
    if (this.#queue.length === 0) {
      if (this.#failure !== null) throw context.signal.aborted ? context.signal.reason : toSyncError(this.#failure, this.#where)
      await this.#waitForMessage(context, waitMs)
    }
    const received = this.#queue.shift() ?? null
    if (this.#isPaused && this.#queue.length < QUEUE_MAX / 2) {
      this.#isPaused = false
      getSocket(this.#client)?.resume()
    }
    if (received === null && this.#failure !== null) throw context.signal.aborted ? context.signal.reason : toSyncError(this.#failure, this.#where)
    return received
  }

  /** Everything before it is landed: the server may forget it. Asks besides how far the server has come. */
  acknowledge(lsn: Lsn): void {
    if (lsn > this.#acknowledged) this.#acknowledged = lsn
    this.#sendStatus(true)
  }

  close(): void {
    getSocket(this.#client)?.destroy()
  }

  #sendStatus(ask: boolean): void {
    if (this.#failure !== null) return
    const status = Buffer.alloc(34)
    status.write('r')
    // Written, flushed and applied: there is but one way of having it.
    for (const at of [1, 9, 17]) status.writeBigUInt64BE(this.#acknowledged, at)
    status.writeUInt8(ask ? 1 : 0, 33)
    ;(this.#client as unknown as { connection: ReplicationConnection }).connection.sendCopyFromChunk(status)
  }

  #receive(chunk: Buffer): void {
    try {
      const tag = chunk[0]
      if (tag === KEEPALIVE) {
        this.#queue.push({ kind: 'reached', lsn: chunk.readBigUInt64BE(1) })
        // It wants to know whether anybody is still there.
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
    const late = clock.sleep(waitMs, AbortSignal.any([signal, waiting.signal])).catch(() => {})
    await Promise.race([arrived, late])
    this.#wake = null
    waiting.abort()
    signal.throwIfAborted()
  }
}

const XLOG_DATA = 0x77
const KEEPALIVE = 0x6b
const OBJECT_IN_USE = '55006'
const BUSY_RETRY_MS = 100
const ATTEMPTS_MAX = 50
