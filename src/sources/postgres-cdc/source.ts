import { SyncError, type Execute, type Page, type SyncContext } from '../../contract/index.ts'
import { PostgresSession } from '../kit/postgres/session.ts'
import { Secret } from '../../redaction/secret.ts'
import { ChangePage, RelationCache } from './change-page.ts'
import { formatLsn, parseLsn, type Lsn } from './lsn.ts'
import { readTable } from './read-table.ts'
import { ReplicationStream, type ReplicationOptions } from './replication-stream.ts'
import { advanceSlot, createSlot, checkSlot, isSnapshotInUse, requireLogicalWal } from './replication-slot.ts'
import { checkState, DurableLsnTracker, type CdcState, type SnapshotState } from './state.ts'
import { describeReplicatedTables, buildTableShapes, type CdcTable, type ReplicatedTable } from './replicated-tables.ts'

export type { CdcTable } from './replicated-tables.ts'
export type { CdcState, SnapshotState } from './state.ts'

export interface PostgresCdcOptions {
  /** `postgres://…`, or the name of the secret that holds it. The account needs REPLICATION, and SELECT on the tables. */
  readonly url: string | Secret
  readonly tables: readonly CdcTable[]
  /** Of this sync alone; `tidemark` unless given. */
  readonly slot?: string
  /** Made when it is not there; `tidemark` unless given. */
  readonly publication?: string
  /** A page ends with the first transaction that fills it; a transaction ten times as large is divided. 1,000 unless given. */
  readonly pageSize?: number
}

export interface PostgresCdcSource {
  readonly backfill: Execute<SnapshotState>
  readonly delta: Execute<CdcState>
  readonly anchor: (context: SyncContext) => Promise<CdcState>
}

/** How many pages a transaction must fill before it is divided. */
const TRANSACTION_PAGES_MIN = 10
const PAGE_BYTES = 32_000_000
/** What has come by then is landed. */
const PAGE_MS = 10_000
const WAIT_MS = 250

/**
 * The log of PostgreSQL: all rows as they were at one place of it, then every change since, in the order of commits:
 * `worker.track('orders', { database, source: postgresCdc({ url: 'SHOP_URL', tables: [{ table: 'public.orders' }] }) })`.
 *
 *   anchor ──▶ a slot, and the rows as of its place ──▶ backfill: these rows, by key   (what is gone is swept)
 *                       └──────────────────────────────▶ delta: from that place on     (acknowledged when landed)
 *   delta: slot gone, overtaken or truncated ──▶ HISTORY_LOST ──▶ the engine asks for the backfill, and so for a new anchor
 */
export function postgresCdc({ url, tables, slot = 'tidemark', publication = 'tidemark', pageSize = 1_000 }: PostgresCdcOptions): PostgresCdcSource {
  if (tables.length === 0) throw new SyncError('SYNC_INVALID', 'postgres-cdc needs at least one table.')
  if (!/^[a-z0-9_]{1,63}$/.test(slot)) throw new SyncError('SYNC_INVALID', `The slot is called ${JSON.stringify(slot)}; PostgreSQL allows small letters, digits and \`_\`, at most 63.`)
  const publisherOf = ({ secrets }: SyncContext): ReplicationOptions => ({ url: url instanceof Secret ? url.reveal() : /^[a-z]+:/.test(url) ? url : secrets.get(url), slot, publication })
  // By URL: one worker may read the databases of many tenants.
  const readers = new Map<string, CycleResources>()
  const readerOf = (publisher: ReplicationOptions): CycleResources => {
    let reader = readers.get(publisher.url)
    if (reader === undefined) readers.set(publisher.url, (reader = { durable: new DurableLsnTracker(), snapshot: null, logReader: null }))
    return reader
  }

  return {
    async anchor(context) {
      const publisher = publisherOf(context)
      await using session = await PostgresSession.open(publisher.url, context.signal)
      await requireLogicalWal(session)
      const followed = await describeReplicatedTables(session, tables)
      const created = await createSlot(session, publisher, followed, context.signal)
      readerOf(publisher).snapshot = { session: created.session, cycle: context.cycle.id }
      return { lsn: created.lsn, columns: collectDigests(followed) }
    },

    async backfill(state, context) {
      // As of the slot's place while that can be had; else as of now, which the delta makes up for.
      const publisher = publisherOf(context)
      const reader = readerOf(publisher)
      const held = reader.snapshot?.cycle === context.cycle.id ? reader.snapshot.session : null
      const session = held ?? await PostgresSession.open(publisher.url, context.signal)
      try {
        if (held === null) await session.query('begin isolation level repeatable read read only')
        const followed = await describeReplicatedTables(session, tables)
        const at = state === undefined ? 0 : followed.findIndex(({ id }) => id === state.table)
        if (at === -1) throw new SyncError('CURSOR_REJECTED', 'The stored state names a table that is no longer followed.')
        const { changes, after } = await readTable(session, followed[at]!, state?.after ?? null, pageSize * SNAPSHOT_PAGE_FACTOR)
        const next: SnapshotState | null = after !== null ? { table: followed[at]!.id, after } : at + 1 < followed.length ? { table: followed[at + 1]!.id, after: null } : null
        if (next === null && held !== null) await held.close()
        const shapes = buildTableShapes(followed)
        return next === null ? { changes, hasMore: false, tables: shapes } : { changes, hasMore: true, nextState: next, tables: shapes }
      } catch (error) {
        reader.snapshot = null
        await held?.close()
        throw error
      } finally {
        if (held === null) await session.close()
      }
    },

    async delta(state, context) {
      checkState(state)
      const publisher = publisherOf(context)
      const reader = readerOf(publisher)
      const confirmed = reader.durable.track(context.cycle.id, parseLsn(state.lsn))
      if (reader.logReader === null || reader.logReader.isBroken || reader.logReader.expectedState !== JSON.stringify(state)) {
        reader.logReader?.close()
        reader.logReader = null
        const opened = await openLogReader(publisher, tables, state, confirmed, context)
        if (!(opened instanceof LogReader)) return opened
        reader.logReader = opened
      }
      const { logReader: link } = reader
      // Until this page is done nobody can go on from it: one that takes too long is asked for again beside itself.
      link.expectedState = ''
      let isKept = false
      try {
        const page = await (link.state.reread !== undefined && link.isCaughtUp ? link.readTablePage(pageSize * SNAPSHOT_PAGE_FACTOR) : link.readChangesPage(confirmed, pageSize, context))
        link.expectedState = JSON.stringify(page.nextState)
        isKept = page.hasMore
        return { ...page, tables: buildTableShapes(link.tables), ...(!page.hasMore && { tidemark: formatCycleStart(context) }) }
      } finally {
        if (!isKept) {
          link.close()
          if (reader.logReader === link) reader.logReader = null
        }
      }
    },
  }
}

/** Kept from page to page of a cycle and ended with it. Everything is as right without: the state is all that counts. */
interface CycleResources {
  readonly durable: DurableLsnTracker
  snapshot: { readonly session: PostgresSession; readonly cycle: number } | null
  logReader: LogReader | null
}

/** Rows of a table are smaller than changes are dear. */
const SNAPSHOT_PAGE_FACTOR = 5

function collectDigests(followed: readonly ReplicatedTable[]): Record<string, string> {
  return Object.fromEntries(followed.map(({ id, digest }) => [id, digest]))
}

/** Where the log ended was asked after the cycle began, so every transaction committed by then is below. */
function formatCycleStart({ cycle }: SyncContext): string {
  return new Date(cycle.startedAt).toISOString()
}

/** Everything a page needs beyond the state. A page instead when there is nothing to follow now. */
async function openLogReader(publisher: ReplicationOptions, tables: readonly CdcTable[], state: CdcState, confirmed: Lsn, context: SyncContext): Promise<LogReader | Page<CdcState>> {
  const session = await PostgresSession.open(publisher.url, context.signal)
  try {
    const followed = await describeReplicatedTables(session, tables)
    const since = parseLsn(state.lsn)
    const slot = await checkSlot(session, publisher, followed, since, context)
    if (await isSnapshotInUse(session, publisher.slot)) {
      await session.close()
      return { changes: [], hasMore: false, nextState: state, endReason: 'snapshot_running' }
    }
    if (confirmed > slot.confirmedLsn) await advanceSlot(session, publisher.slot, confirmed)
    const begun = state.until === undefined ? beginCycle(state, followed, slot.flushedLsn) : state
    const until = parseLsn(begun.until)
    if (since >= until && begun.reread === undefined) {
      await session.close()
      return { changes: [], hasMore: false, nextState: state, tidemark: formatCycleStart(context) }
    }
    const stream = await ReplicationStream.open(publisher, since, confirmed, context)
    return new LogReader(stream, session, followed, begun, until)
  } catch (error) {
    await session.close()
    throw error
  }
}

/** A cycle ends where the log ended when it began. What was altered before that is read whole once the cycle is past it. */
function beginCycle(state: CdcState, followed: readonly ReplicatedTable[], flushed: Lsn): CdcState {
  const altered = followed.filter(({ id, digest }) => state.columns[id] !== digest).map(({ id }) => id)
  return { ...state, until: formatLsn(flushed), columns: collectDigests(followed), ...(altered.length > 0 && { reread: altered }) }
}

/** The log from the state on, as it is being sent. */
class LogReader {
  readonly #stream: ReplicationStream
  readonly #session: PostgresSession
  readonly tables: readonly ReplicatedTable[]
  readonly #relations: RelationCache
  readonly #until: Lsn
  /** Of the transaction that is being read: how many of its changes have been taken. */
  #transaction: { readonly commitLsn: string; seen: number } | null = null
  state: CdcState
  /** What the next page must be asked with to go on from here. */
  expectedState = ''

  constructor(stream: ReplicationStream, session: PostgresSession, followed: readonly ReplicatedTable[], state: CdcState, until: Lsn) {
    this.#stream = stream
    this.#session = session
    this.tables = followed
    this.#relations = new RelationCache(followed, session)
    this.#until = until
    this.state = state
  }

  get isBroken(): boolean {
    return this.#stream.isBroken
  }

  get isCaughtUp(): boolean {
    return this.#transaction === null && parseLsn(this.state.lsn) >= this.#until
  }

  async readChangesPage(confirmed: Lsn, pageSize: number, context: SyncContext): Promise<Page<CdcState>> {
    const page = new ChangePage(this.#session)
    const { transaction: resumed } = this.state
    const deadline = context.clock.now() + PAGE_MS
    let lsn = parseLsn(this.state.lsn)
    this.#stream.acknowledge(confirmed)
    for (;;) {
      const message = await this.#stream.next(context, WAIT_MS)
      const isLate = context.clock.now() >= deadline
      switch (message?.kind) {
        case undefined:
          this.#stream.acknowledge(confirmed)
          break
        case 'begin':
          this.#transaction = { commitLsn: formatLsn(message.commitLsn), seen: 0 }
          break
        case 'relation':
          await this.#relations.register(message.relation)
          break
        case 'truncate': {
          const truncated = message.relationOids.map((oid) => this.#relations.get(oid)).find((relation) => relation !== null)
          // Which rows that were is not in the log; only reading all that is left, and sweeping the rest, tells.
          if (truncated !== undefined) throw new SyncError('HISTORY_LOST', `${truncated!.table.id} was truncated.`)
          break
        }
        case 'insert':
        case 'update':
        case 'delete': {
          const done = resumed?.commitLsn === this.#transaction!.commitLsn ? resumed.done : 0
          const relation = this.#relations.get(message.relationOid)
          if (++this.#transaction!.seen > done && relation !== null) page.add(message, relation)
          break
        }
        case 'commit':
          this.#transaction = null
          lsn = message.endLsn
          break
        case 'reached':
          // Between transactions only: inside one, what is before its place has not all been sent.
          if (this.#transaction === null && message.lsn > lsn) lsn = message.lsn
          break
        case 'other':
          break
        default:
          message satisfies never
      }
      if (this.#transaction === null) {
        if (lsn >= this.#until) return this.#endPage(page, lsn)
        if (page.length >= pageSize || page.bytes >= PAGE_BYTES || isLate) return this.#continuePage(page, lsn)
      } else if (page.length >= pageSize * TRANSACTION_PAGES_MIN || page.bytes >= PAGE_BYTES || isLate) return this.#continuePage(page, lsn)
    }
  }

  /** A table whose columns changed: rows that were not touched since are not in the log, and have the new ones too. */
  async readTablePage(limit: number): Promise<Page<CdcState>> {
    const [id, ...others] = this.state.reread!
    const table = this.tables.find((entry) => entry.id === id)
    await this.#session.query('begin isolation level repeatable read read only')
    const { changes, after } = table === undefined ? { changes: [], after: null } : await readTable(this.#session, table, this.state.after ?? null, limit)
    await this.#session.query('commit')
    const { reread: _, after: __, ...rest } = this.state
    const left = after === null ? others : [id!, ...others]
    this.state = { ...rest, ...(left.length > 0 && { reread: left }), ...(after !== null && { after }) }
    return left.length > 0 ? { changes, hasMore: true, nextState: this.state } : { changes, hasMore: false, nextState: { lsn: this.state.lsn, columns: this.state.columns } }
  }

  async #continuePage(page: ChangePage, lsn: Lsn): Promise<Page<CdcState>> {
    const changes = await page.completeRecords()
    const { transaction: _, quiet = 0, ...rest } = this.state
    const isStill = page.length === 0 && formatLsn(lsn) === this.state.lsn
    this.state = {
      ...rest,
      lsn: formatLsn(lsn),
      ...(this.#transaction !== null && { transaction: { commitLsn: this.#transaction.commitLsn, done: this.#transaction.seen } }),
      // A large transaction is prepared for long before its first change is sent.
      ...(isStill && { quiet: quiet + 1 }),
    }
    return { changes, hasMore: true, nextState: this.state }
  }

  async #endPage(page: ChangePage, lsn: Lsn): Promise<Page<CdcState>> {
    const changes = await page.completeRecords()
    const { transaction: _, quiet: __, ...rest } = this.state
    this.state = { ...rest, lsn: formatLsn(lsn) }
    if (this.state.reread !== undefined) return { changes, hasMore: true, nextState: this.state }
    return { changes, hasMore: false, nextState: { lsn: this.state.lsn, columns: this.state.columns } }
  }

  close(): void {
    this.#stream.close()
    void this.#session.close()
  }
}
