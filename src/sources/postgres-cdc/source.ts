import { SyncError, type Execute, type Page, type SyncContext } from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import { PostgresSession } from '../kit/postgres/session.ts'
import { withoutRange } from '../kit/since.ts'
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

/** Options of `postgresCdc`. */
export interface PostgresCdcOptions {
  /**
   * `postgres://…`, or the name of the secret that contains it. The account needs REPLICATION, and SELECT on the
   * tables.
   */
  readonly url: string | Secret
  readonly tables: readonly CdcTable[]
  /** Used by this sync only; `tidemark` by default. */
  readonly slot?: string
  /** Created if missing; `tidemark` by default. */
  readonly publication?: string
  /**
   * A page ends with the first transaction that fills it; a transaction ten times as large is split. 1,000 by default.
   */
  readonly pageSize?: number
}

/** The replicated tables of one PostgreSQL database. Pass it to `worker.track`. */
export interface PostgresCdcSource {
  readonly backfill: Execute<SnapshotState>
  readonly delta: Execute<CdcState>
  readonly anchor: (context: SyncContext) => Promise<CdcState>
}

/** How many pages a transaction must fill before it is split. */
const TRANSACTION_PAGES_MIN = 10
const PAGE_BYTES = 32_000_000
/** Changes received within this time are committed. */
const PAGE_MS = 10_000
const WAIT_MS = 250

/**
 * Follows PostgreSQL's log: all rows as of one LSN, then every change since, in commit order: `worker.track('orders', {
 * database, source: postgresCdc({ url: 'SHOP_URL', tables: [{ table: 'public.orders' }] }) })`.
 *
 *   anchor ──▶ a slot, and a snapshot as of its LSN ──▶ backfill: the snapshot, by key   (missing rows are swept)
 *                       └──────────────────────────────▶ delta: from that LSN on         (acknowledged when committed)
 *   delta: slot dropped, overtaken or table truncated ──▶ HISTORY_LOST ──▶ the engine runs the backfill with a new anchor
 */
export function postgresCdc({
  url,
  tables,
  slot = 'tidemark',
  publication = 'tidemark',
  pageSize = 1_000,
}: PostgresCdcOptions): PostgresCdcSource {
  if (tables.length === 0)
    throw new SyncError('SYNC_INVALID', 'postgres-cdc: `tables` is empty. Add at least one table.')
  if (!/^[a-z0-9_]{1,63}$/.test(slot))
    throw new SyncError(
      'SYNC_INVALID',
      `The slot name ${JSON.stringify(slot)} is invalid. Use at most 63 lower-case letters, digits and \`_\`.`,
    )
  const resolveOptions = ({ secrets }: SyncContext): ReplicationOptions => ({
    url: url instanceof Secret ? url.reveal() : /^[a-z]+:/.test(url) ? url : secrets.get(url),
    slot,
    publication,
  })
  // Keyed by URL: one worker may read the databases of many tenants.
  const resourcesByUrl = new Map<string, CycleResources>()
  const getResources = (replication: ReplicationOptions): CycleResources => {
    let resources = resourcesByUrl.get(replication.url)
    if (resources === undefined)
      resourcesByUrl.set(
        replication.url,
        (resources = { durable: new DurableLsnTracker(), snapshot: null, logReader: null }),
      )
    return resources
  }

  const source: PostgresCdcSource = {
    async anchor(context) {
      const replication = resolveOptions(context)
      await using session = await PostgresSession.open(replication.url, context.signal)
      await requireLogicalWal(session)
      const replicated = await describeReplicatedTables(session, tables)
      const created = await createSlot(session, replication, replicated, context.signal)
      getResources(replication).snapshot = { session: created.session, cycle: context.cycle.id }
      return { lsn: created.lsn, columns: collectDigests(replicated) }
    },

    async backfill(state, context) {
      // Uses the slot's snapshot while it exists; otherwise the current rows, which the delta then corrects.
      const replication = resolveOptions(context)
      const resources = getResources(replication)
      const heldSession = resources.snapshot?.cycle === context.cycle.id ? resources.snapshot.session : null
      const session = heldSession ?? (await PostgresSession.open(replication.url, context.signal))
      try {
        if (heldSession === null) await session.query('begin isolation level repeatable read read only')
        const replicated = await describeReplicatedTables(session, tables)
        const index = state === undefined ? 0 : replicated.findIndex(({ id }) => id === state.table)
        const [table, following] = index === -1 ? [] : replicated.slice(index)
        if (table === undefined)
          throw new SyncError('CURSOR_REJECTED', 'The stored state refers to a table that is no longer followed.')
        const { changes, after } = await readTable(
          session,
          table,
          state?.after ?? null,
          pageSize * SNAPSHOT_PAGE_FACTOR,
        )
        const next: SnapshotState | null =
          after !== null
            ? { table: table.id, after }
            : following !== undefined
              ? { table: following.id, after: null }
              : null
        if (next === null && heldSession !== null) await heldSession.close()
        const shapes = buildTableShapes(replicated)
        return next === null
          ? { changes, hasMore: false, tables: shapes }
          : { changes, hasMore: true, nextState: next, tables: shapes }
      } catch (error) {
        resources.snapshot = null
        await heldSession?.close()
        throw error
      } finally {
        if (heldSession === null) await session.close()
      }
    },

    async delta(state, context) {
      checkState(state)
      const replication = resolveOptions(context)
      const resources = getResources(replication)
      const confirmed = resources.durable.track(context.cycle.id, parseLsn(state.lsn))
      if (
        resources.logReader === null ||
        resources.logReader.isBroken ||
        resources.logReader.expectedState !== JSON.stringify(state)
      ) {
        resources.logReader?.close()
        resources.logReader = null
        const opened = await openLogReader(replication, tables, state, confirmed, context)
        if (!(opened instanceof LogReader)) return opened
        resources.logReader = opened
      }
      const { logReader } = resources
      // Another page cannot resume from the reader until this page is done: a slow page may be requested again
      // concurrently.
      logReader.expectedState = ''
      let isKept = false
      try {
        const page = await (logReader.state.reread !== undefined && logReader.isCaughtUp
          ? logReader.readTablePage(pageSize * SNAPSHOT_PAGE_FACTOR)
          : logReader.readChangesPage(confirmed, pageSize, context))
        logReader.expectedState = JSON.stringify(page.nextState)
        isKept = page.hasMore
        return {
          ...page,
          tables: buildTableShapes(logReader.tables),
          ...(!page.hasMore && { tidemark: formatCycleStart(context) }),
        }
      } finally {
        if (!isKept) {
          logReader.close()
          if (resources.logReader === logReader) resources.logReader = null
        }
      }
    },
  }
  withoutRange(source.backfill, 'the rows of a table have no times, and the log is read once')
  return source
}

/** Kept for one cycle. Correctness does not depend on it: the state is complete without. */
interface CycleResources {
  readonly durable: DurableLsnTracker
  snapshot: { readonly session: PostgresSession; readonly cycle: number } | null
  logReader: LogReader | null
}

/** Snapshot rows cost less than changes, so their pages are larger. */
const SNAPSHOT_PAGE_FACTOR = 5

function collectDigests(tables: readonly ReplicatedTable[]): Record<string, string> {
  return Object.fromEntries(tables.map(({ id, digest }) => [id, digest]))
}

/** The end of the log was read after the cycle began, so every transaction committed by then is before it. */
function formatCycleStart({ cycle }: SyncContext): string {
  return new Date(cycle.startedAt).toISOString()
}

/** Opens everything a page needs beyond the state. Returns a page instead when there is nothing to read now. */
async function openLogReader(
  replication: ReplicationOptions,
  tables: readonly CdcTable[],
  state: CdcState,
  confirmed: Lsn,
  context: SyncContext,
): Promise<LogReader | Page<CdcState>> {
  const session = await PostgresSession.open(replication.url, context.signal)
  try {
    const replicated = await describeReplicatedTables(session, tables)
    const since = parseLsn(state.lsn)
    const slot = await checkSlot(session, replication, replicated, since, context)
    if (await isSnapshotInUse(session, replication.slot)) {
      await session.close()
      return { changes: [], hasMore: false, nextState: state, endReason: 'snapshot_running' }
    }
    if (confirmed > slot.confirmedLsn) await advanceSlot(session, replication.slot, confirmed)
    const started = state.until === undefined ? beginCycle(state, replicated, slot.flushedLsn) : state
    const until = parseLsn(started.until)
    if (since >= until && started.reread === undefined) {
      await session.close()
      return { changes: [], hasMore: false, nextState: state, tidemark: formatCycleStart(context) }
    }
    const stream = await ReplicationStream.open(replication, since, confirmed, context)
    return new LogReader(stream, session, replicated, started, until)
  } catch (error) {
    await session.close()
    throw error
  }
}

/** A cycle ends at the end of the log when it began. Tables altered before that are re-read at the end of the cycle. */
function beginCycle(state: CdcState, replicated: readonly ReplicatedTable[], flushed: Lsn): CdcState {
  const altered = replicated.filter(({ id, digest }) => state.columns[id] !== digest).map(({ id }) => id)
  return {
    ...state,
    until: formatLsn(flushed),
    columns: collectDigests(replicated),
    ...(altered.length > 0 && { reread: altered }),
  }
}

/** Reads the log from a state, as the server sends it. */
class LogReader {
  readonly #stream: ReplicationStream
  readonly #session: PostgresSession
  readonly tables: readonly ReplicatedTable[]
  readonly #relations: RelationCache
  readonly #until: Lsn
  /** The current transaction: how many of its changes have been read. */
  #transaction: { readonly commitLsn: string; seen: number } | null = null
  state: CdcState
  /** The state that the next page must have to continue with this reader. */
  expectedState = ''

  constructor(
    stream: ReplicationStream,
    session: PostgresSession,
    tables: readonly ReplicatedTable[],
    state: CdcState,
    until: Lsn,
  ) {
    this.#stream = stream
    this.#session = session
    this.tables = tables
    this.#relations = new RelationCache(tables, session)
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
          const truncated = message.relationOids
            .map((oid) => this.#relations.get(oid))
            .find((relation): relation is NonNullable<typeof relation> => relation !== null)
          // The log does not list the truncated rows; only a backfill with a sweep finds them.
          if (truncated !== undefined)
            throw new SyncError('HISTORY_LOST', `${truncated.table.id} was truncated. A backfill follows.`)
          break
        }
        case 'insert':
        case 'update':
        case 'delete': {
          const transaction = required(this.#transaction, 'the current transaction')
          const done = resumed?.commitLsn === transaction.commitLsn ? resumed.done : 0
          const relation = this.#relations.get(message.relationOid)
          if (++transaction.seen > done && relation !== null) page.add(message, relation)
          break
        }
        case 'commit':
          this.#transaction = null
          lsn = message.endLsn
          break
        case 'reached':
          // Only between transactions: inside one, changes before this LSN may not have been sent yet.
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
      } else if (page.length >= pageSize * TRANSACTION_PAGES_MIN || page.bytes >= PAGE_BYTES || isLate)
        return this.#continuePage(page, lsn)
    }
  }

  /**
   * Re-reads a table whose columns changed: rows not written since are not in the log, but have the new columns too.
   */
  async readTablePage(limit: number): Promise<Page<CdcState>> {
    const [id, ...others] = this.state.reread ?? []
    const table = this.tables.find((entry) => entry.id === id)
    await this.#session.query('begin isolation level repeatable read read only')
    const { changes, after } =
      table === undefined
        ? { changes: [], after: null }
        : await readTable(this.#session, table, this.state.after ?? null, limit)
    await this.#session.query('commit')
    const { reread: _, after: __, ...rest } = this.state
    const left = after === null || id === undefined ? others : [id, ...others]
    this.state = { ...rest, ...(left.length > 0 && { reread: left }), ...(after !== null && { after }) }
    return left.length > 0
      ? { changes, hasMore: true, nextState: this.state }
      : { changes, hasMore: false, nextState: { lsn: this.state.lsn, columns: this.state.columns } }
  }

  async #continuePage(page: ChangePage, lsn: Lsn): Promise<Page<CdcState>> {
    const changes = await page.completeRecords()
    const { transaction: _, quiet = 0, ...rest } = this.state
    const isIdle = page.length === 0 && formatLsn(lsn) === this.state.lsn
    this.state = {
      ...rest,
      lsn: formatLsn(lsn),
      ...(this.#transaction !== null && {
        transaction: { commitLsn: this.#transaction.commitLsn, done: this.#transaction.seen },
      }),
      // The server decodes a large transaction for a long time before it sends the first change.
      ...(isIdle && { quiet: quiet + 1 }),
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
