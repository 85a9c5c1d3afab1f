import { SyncError, type Execute, type Lookup, type Page, type SyncContext } from '../../contract/index.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import { subtractMicrosecond } from '../../strategies/kit/instants.ts'
import type { TableName } from '../kit/postgres/catalog.ts'
import { parseSafetyWindowMs } from '../kit/safety-window.ts'
import type { Secret } from '../../redaction/secret.ts'
import type { SqlColumn, SqlDatabase } from './database.ts'
import { subtractMs, parseColumnInstant, laterInstant } from './column-instants.ts'
import { openDatabase } from './open-database.ts'
import { toChange, parseKey, readOrderValues, buildPlan, buildTableShape, type TablePlan } from './table-plan.ts'
import { checkRowCursor, checkState, type SqlListState, type SqlState } from './state.ts'
import type { LowerBound, RowSelection } from './statements.ts'

export { discover, type DiscoveredStream } from './discover.ts'
export type { SqlListState, SqlState } from './state.ts'
export type { TableName } from '../kit/postgres/catalog.ts'

export interface SqlOptions {
  /** `postgres://…`, `mysql://…`, `mariadb://…` or `sqlite:path`; or the name of the secret that holds it. */
  readonly url: string | Secret
}

export interface TableOptions {
  /** What tells rows apart; the primary key unless given. */
  readonly key?: readonly string[]
  /** What every change of a row raises: a timestamp, a date, or an integer. */
  readonly cursor?: string
  /** All unless given. */
  readonly columns?: readonly string[]
  /** A column that says that the row is gone: true, or anything but null, false and 0. */
  readonly deleted?: string
  /** 10,000 unless given; a page of large rows ends earlier. */
  readonly pageSize?: number
}

export interface CursorOptions extends TableOptions {
  readonly cursor: string
  /** How long after its timestamp a row may become visible; 30 seconds unless given. Open transactions are waited for besides, where the account may see them. */
  readonly lagMs?: number
  /** Every cycle reads so much again, such as `PT5M`: for clocks that differ, and stamps that are set by clients. */
  readonly safetyWindow?: string
  /** Where a sync without state begins. At the first row unless given. */
  readonly since?: string
  /** Ask with a bare `>` and with no upper bound. Rows that share the last cursor's value, or become visible late, are then never read. */
  readonly strict?: boolean
}

export interface SqlStream {
  readonly backfill: Execute<SqlListState>
  readonly delta: Execute<SqlState>
  readonly anchor: (context: SyncContext) => Promise<SqlState | undefined>
  readonly lookup: Lookup
}

export interface SqlSource {
  /** Followed by its cursor: `worker.track('customers', { database, source: shop.table('public.customers', { cursor: 'updated_at' }) })`. */
  table(name: TableName, options: CursorOptions): SqlStream
  /** All of it each time; what is no longer there is swept: `worker.sync('countries', { database, ...shop.listing('public.countries') })`. */
  listing(name: TableName, options?: TableOptions): { readonly mode: 'replace'; readonly execute: Execute<SqlListState>; readonly lookup: Lookup }
}

const PAGE_SIZE = 10_000
/** A page holds at most about so much, and one row. */
const PAGE_BYTES = 32_000_000
const LAG_MS = 30_000

/** Tables and views of PostgreSQL, MySQL, MariaDB and SQLite. */
export function sql({ url }: SqlOptions): SqlSource {
  return {
    table(name, options) {
      const overlapMs = parseSafetyWindowMs(options.safetyWindow) ?? 0
      const delta: Execute<SqlState> = async (state, context) => {
        await using database = await openDatabase(url, context)
        const plan = await loadPlan(database, name, options)
        checkState(state, options.cursor, plan.order.length)
        const start = isMidCycle(state) ? resumeCycle(state, plan) : await beginCycle(database, plan, state, options, overlapMs, context)
        if (start === null) return { changes: [], hasMore: false, nextState: state }
        return await readByCursor(database, plan, start, options)
      }
      return {
        backfill: withLaggedTidemark(createListing(url, name, options), options.lagMs ?? LAG_MS),
        lookup: createLookup(url, name, options),
        delta,
        anchor: async (context) => {
          await using database = await openDatabase(url, context)
          return await captureAnchor(database, await loadPlan(database, name, options), options, context)
        },
      }
    },
    listing: (name, options = {}) => ({ mode: 'replace', execute: withLaggedTidemark(createListing(url, name, options), LAG_MS), lookup: createLookup(url, name, options) }),
  }
}

/** By key, from the first row to the last. */
function createListing(url: SqlOptions['url'], name: TableName, options: TableOptions): Execute<SqlListState> {
  return async (state, context) => {
    await using database = await openDatabase(url, context)
    const plan = await loadPlan(database, name, options)
    if (state !== undefined) checkRowCursor(state.after, plan.key.length)
    const lower: LowerBound | null = state === undefined ? null : { columns: plan.key, values: state.after, bound: '>' }
    const { changes, last, isFull } = await readPage(database, plan, { lower, upper: null, order: plan.key }, options)
    return { changes, hasMore: isFull, tables: [buildTableShape(plan, options)], ...(last !== null && { nextState: { after: last } }) }
  }
}

/** The first row at its key or above: the row itself, or none. */
function createLookup(url: SqlOptions['url'], name: TableName, options: TableOptions): Lookup {
  return async (key, context) => {
    await using database = await openDatabase(url, context)
    const plan = await loadPlan(database, name, options)
    const texts = parseKey(key, plan.key.length)
    if (texts === null) return null
    const { changes: [found] } = await readPage(database, plan, { lower: { columns: plan.key, values: texts, bound: '>=' }, upper: null, order: plan.key }, { ...options, pageSize: 1 })
    return found?.key === key ? found : null
  }
}

async function loadPlan(database: SqlDatabase, name: TableName, options: TableOptions): Promise<TablePlan> {
  const table = await database.describeTable(name)
  const cursor = table.columns.find((column) => column.name === options.cursor)
  return buildPlan(table, options, cursor === undefined ? undefined : await database.detectCursorKind(table, cursor))
}

// ── by cursor ────────────────────────────────────────────────────────────────────────────────────────────────────────

interface CursorRange {
  readonly lower: LowerBound | null
  readonly until: string | null
  /** What the state becomes when the cycle is over, but for what it reads. */
  readonly state: SqlState
}

function isMidCycle(state: SqlState | undefined): state is SqlState {
  return state?.after !== undefined
}

/** Within a cycle always above the last row's cursor and key: rows that share a timestamp are neither lost nor read twice. */
function resumeCycle(state: SqlState, { order }: TablePlan): CursorRange {
  const { after, until = null, ...rest } = state
  return { lower: { columns: order, values: after!, bound: '>' }, until, state: rest }
}

/** Null when there is nothing to read. */
async function beginCycle(database: SqlDatabase, plan: TablePlan, state: SqlState | undefined, options: CursorOptions, overlapMs: number, context: SyncContext): Promise<CursorRange | null> {
  const { table } = plan
  const cursor = plan.cursor!
  const known = state?.cursorValue ?? options.since ?? null
  const from = (text: string | null, bound: '>' | '>='): LowerBound | null => (text === null ? null : { columns: [cursor], values: [text], bound })
  const field = { cursorField: cursor.name }
  if (options.strict === true) return { lower: from(known, '>'), until: null, state: { ...field, cursorValue: known } }
  if (cursor.nullable && !table.isView) context.log.warn('rows whose cursor is null are seen by the backfill alone', { table: table.id })

  const { now, settled, until } = await database.readHorizon(table, cursor, options.lagMs ?? LAG_MS)
  if (cursor.kind === 'instant') {
    const isAhead = known !== null && (parseColumnInstant(known) ?? '') > parseColumnInstant(until)!
    if (isAhead) context.log.warn('the stored position lies ahead of the horizon and was set back to it', { table: table.id })
    const frontier = isAhead ? until : known
    return { lower: from(frontier === null ? null : subtractMs(frontier, overlapMs), '>='), until, state: { ...field, cursorValue: frontier } }
  }
  if (known === null && state?.mark === undefined) {
    // The first time all of it is read once: what may still appear below is waited for, instead of being read for again.
    const first = await captureAnchor(database, plan, options, context)
    return first === undefined ? null : { lower: null, until: first.cursorValue ?? first.mark!.value, state: first }
  }
  const top = await database.readMaxValue(table, cursor)
  if (top === null) return null
  const { mark } = state ?? {}
  // From here on nothing below the mark can appear any more: this cycle reads it once again, the next one begins there.
  const isSettled = mark !== undefined && mark.at <= settled
  return {
    lower: from(minInteger(known, top), cursor.isUnique ? '>' : '>='), until: top,
    state: { ...field, cursorValue: minInteger(isSettled ? mark.value : known, top), mark: mark === undefined || isSettled ? { value: top, at: now } : mark },
  }
}

async function captureAnchor(database: SqlDatabase, { table, cursor }: TablePlan, options: CursorOptions, context: SyncContext): Promise<SqlState | undefined> {
  const { lagMs = LAG_MS } = options
  const cursorField = cursor!.name
  const { now, until } = await database.readHorizon(table, cursor!, lagMs)
  if (cursor!.kind === 'instant') return { cursorField, cursorValue: until }
  const top = await database.readMaxValue(table, cursor!)
  if (top === null) return undefined
  await context.clock.sleep(lagMs, context.signal)
  const { settled } = await database.readHorizon(table, cursor!, lagMs)
  // Where somebody holds a transaction open for long, the delta has to look at all of it once.
  return now <= settled ? { cursorField, cursorValue: top } : { cursorField, cursorValue: null, mark: { value: top, at: now } }
}

async function readByCursor(database: SqlDatabase, plan: TablePlan, start: CursorRange, options: CursorOptions): Promise<Page<SqlState>> {
  const cursor = plan.cursor!
  const upper = start.until === null ? null : { column: cursor, text: start.until }
  const { changes, last, isFull } = await readPage(database, plan, { lower: start.lower, upper, order: plan.order }, options)
  // The position moves only to a row that was seen. An integer's moves by its mark.
  const cursorValue = last === null || (cursor.kind === 'integer' && options.strict !== true) ? start.state.cursorValue
    : cursor.kind === 'integer' ? last[0]! : laterInstant(last[0]!, start.state.cursorValue)
  const reached = { ...start.state, cursorValue }
  const tidemark = cursor.kind === 'instant' && cursor.isUtc ? computeTidemark(isFull ? last![0]! : start.until) : undefined
  return { changes, hasMore: isFull, tidemark, tables: [buildTableShape(plan, options)], nextState: isFull ? { ...reached, after: last!, ...(start.until !== null && { until: start.until }) } : reached }
}

/** Rows of the very moment may follow: those of the cursor on the next page, those of a day until it is over. */
function computeTidemark(reached: string | null): string | undefined {
  const instant = reached === null ? null : parseColumnInstant(reached)
  return instant === null ? undefined : subtractMicrosecond(instant)
}

/** A row may have been deleted, and in some databases its number is given again. */
function minInteger(a: string | null, b: string): string | null {
  return a === null || BigInt(a) <= BigInt(b) ? a : b
}

// ── a page ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface RowsPage {
  readonly changes: Page['changes']
  readonly last: string[] | null
  /** Whether it ended because it was full. */
  readonly isFull: boolean
}

async function readPage(database: SqlDatabase, plan: TablePlan, range: Pick<RowSelection, 'lower' | 'upper'> & { order: readonly SqlColumn[] }, options: TableOptions): Promise<RowsPage> {
  const { table, isKeyUnique: isKeyProven } = plan
  const limit = options.pageSize ?? PAGE_SIZE
  // Where nothing keeps two rows from having one key, the row behind the page tells whether the border cuts between two such.
  const selection = { table, columns: options.columns, ...range, limit: isKeyProven ? limit : limit + 1 }
  const changes: Page['changes'] = []
  let last: string[] | null = null
  let bytes = 0
  for await (const rows of database.readRows(selection, listNeededColumns(plan, options))) {
    for (const row of rows) {
      const place = readOrderValues(row.record, range.order, table)
      if (!isKeyProven && last !== null && place.every((text, index) => text === last![index])) {
        throw new SyncError('SOURCE_INVALID', `${table.id}: two rows have the same ${range.order.map(({ name }) => `"${name}"`).join(' and ')}; name a \`key\` that tells them apart.`)
      }
      if (changes.length === limit || bytes >= PAGE_BYTES) return { changes, last, isFull: true }
      changes.push(toChange(row, plan, options.deleted))
      last = place
      bytes += row.bytes
    }
  }
  return { changes, last, isFull: changes.length === limit }
}

/** The members that say what a change is, of what, and where. */
function listNeededColumns({ key, cursor }: TablePlan, { deleted }: TableOptions): string[] {
  return [...new Set([...key.map(({ name }) => name), ...(cursor === null ? [] : [cursor.name]), ...(deleted === undefined ? [] : [deleted])])]
}
