import {
  SyncError,
  type Change,
  type Execute,
  type Lookup,
  type Page,
  type SourceChecks,
  type SyncContext,
  type TimeRange,
} from '../../contract/index.ts'
import { required } from '../../values/required.ts'
import { partitioned, type PartitionedState } from '../../strategies/partitioned.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import { subtractMicrosecond } from '../../strategies/kit/instants.ts'
import { splitTableName, type TableName } from '../kit/postgres/catalog.ts'
import { parseSafetyWindowMs } from '../kit/safety-window.ts'
import { parseSince, withoutRange, withSinceScope } from '../kit/since.ts'
import type { Secret } from '../../redaction/secret.ts'
import type { SqlDatabase } from './database.ts'
import { subtractMs, parseColumnInstant, laterInstant } from './column-instants.ts'
import { openDatabase } from './open-database.ts'
import {
  toChange,
  parseKey,
  readOrderValues,
  buildPlan,
  buildTableShape,
  requireCursor,
  type TablePlan,
} from './table-plan.ts'
import { hasSimpleKey, selectKeyRange, selectKeys, summarizeTable } from './checks.ts'
import { listKeyRanges, WHOLE_TABLE, type KeyRange } from './key-ranges.ts'
import { checkRowCursor, checkState, type SqlListState, type SqlState } from './state.ts'
import type { LowerBound, RowSelection } from './statements.ts'
import { describeSince, readRangeBounds, readSinceBound } from './time-bounds.ts'

export { discover, type DiscoveredStream } from './discover.ts'
export type { SqlListState, SqlState } from './state.ts'
export type { TableName } from '../kit/postgres/catalog.ts'

/** The database to read. */
export interface SqlOptions {
  /** `postgres://…`, `mysql://…`, `mariadb://…` or `sqlite:path`; or the name of the secret that contains it. */
  readonly url: string | Secret
  /** The start date of every table, such as `2024-01-31`; see `since` of a table. */
  readonly since?: string
}

/** Selects the rows and columns of a table. */
export interface TableOptions {
  /** Columns that identify a row; the primary key by default. */
  readonly key?: readonly string[]
  /** The column that every change increases: a timestamp, a date, or an integer. */
  readonly cursor?: string
  /** All by default. */
  readonly columns?: readonly string[]
  /** The column that marks a deleted row: true, or any value other than null, false and 0. */
  readonly deleted?: string
  /**
   * Only rows whose `cursor` is at or after this are read: a date, a time such as `2024-01-31T08:00:00Z`, or a number
   * for an integer cursor. A column without a zone is compared as it is written.
   */
  readonly since?: string
  /** 10,000 by default; a page of large rows ends earlier. */
  readonly pageSize?: number
  /** Reads a full refresh or a backfill in this many ranges of the key, each of which resumes by itself; 1 by default. */
  readonly partitions?: number
  /** Ranges that are read at the same time, each over its own connection; 1 by default. */
  readonly concurrency?: number
}

/** Options of a table that is followed by a cursor column. */
export interface CursorOptions extends TableOptions {
  readonly cursor: string
  /**
   * Maximum delay before a row becomes visible; 30 seconds by default. Open transactions are waited for in addition, if
   * the account can see them.
   */
  readonly lagMs?: number
  /** Every cycle re-reads this much, such as `PT5M`: for clock skew and timestamps set by clients. */
  readonly safetyWindow?: string
  /**
   * Query with a bare `>` and no upper bound. Rows that share the last cursor value, or become visible late, are never
   * read.
   */
  readonly strict?: boolean
}

/** The progress of a full refresh, over the table or over ranges of its key. */
export type SqlListingState = SqlListState | PartitionedState

/** One table. Pass it to `worker.track`. */
export interface SqlStream {
  readonly backfill: Execute<SqlListingState>
  readonly delta: Execute<SqlState>
  readonly anchor: (context: SyncContext) => Promise<SqlState | undefined>
  readonly lookup: Lookup
}

/** The tables and views of a SQL database. */
export interface SqlSource {
  /**
   * Follows a cursor: `worker.track('customers', { database, source: shop.table('public.customers', { cursor:
   * 'updated_at' }) })`.
   */
  table(name: TableName, options: CursorOptions): SqlStream
  /**
   * Reads everything each time and sweeps missing rows: `worker.sync('countries', { database,
   * ...shop.listing('public.countries') })`.
   */
  listing(
    name: TableName,
    options?: TableOptions,
  ): { readonly mode: 'replace'; readonly execute: Execute<SqlListingState>; readonly lookup: Lookup }
}

const PAGE_SIZE = 10_000
const PARTITIONS_MAX = 10_000
/** Approximate size limit of a page, plus one row. */
const PAGE_BYTES = 32_000_000
const LAG_MS = 30_000

/** Reads tables and views of PostgreSQL, MySQL, MariaDB and SQLite. */
export function sql({ url, since: sourceSince }: SqlOptions): SqlSource {
  parseSince(sourceSince)
  const withDefaults = <Options extends TableOptions>(name: TableName, given: Options): Options => {
    const since = given.since ?? sourceSince
    if (since !== undefined && given.cursor === undefined)
      throw new SyncError(
        'SYNC_INVALID',
        `${splitTableName(name).join('.')}: \`since\` needs a \`cursor\`. Name the column that every change increases, or set \`since\` of single tables only.`,
      )
    return since === undefined ? given : { ...given, since }
  }
  return {
    table(name, given) {
      const options = withDefaults(name, given)
      const overlapMs = parseSafetyWindowMs(options.safetyWindow) ?? 0
      const delta: Execute<SqlState> = async (state, context) => {
        await using database = await openDatabase(url, context)
        const plan = await loadPlan(database, name, options)
        checkState(state, options.cursor, plan.order.length)
        const start = isMidCycle(state)
          ? resumeCycle(state, plan)
          : await beginCycle(database, plan, state, options, overlapMs, context)
        if (start === null) return { changes: [], hasMore: false, nextState: state }
        return await readByCursor(database, plan, start, options)
      }
      const lookup = createLookup(url, name, options)
      const backfill = withLaggedTidemark(createListing(url, name, options), options.lagMs ?? LAG_MS)
      return {
        backfill: Object.assign(backfill, { lookup, checks: createChecks(url, name, options) }),
        lookup,
        delta,
        anchor: async (context) => {
          await using database = await openDatabase(url, context)
          return await captureAnchor(database, await loadPlan(database, name, options), options, context)
        },
      }
    },
    listing(name, given = {}) {
      const options = withDefaults(name, given)
      return {
        mode: 'replace',
        execute: Object.assign(withLaggedTidemark(createListing(url, name, options), LAG_MS), {
          checks: createChecks(url, name, options),
        }),
        lookup: createLookup(url, name, options),
      }
    },
  }
}

/** Reads all rows in key order, or in several ranges of the key; a range of their times in the order of the cursor. */
function createListing(url: SqlOptions['url'], name: TableName, options: TableOptions): Execute<SqlListingState> {
  const listing = withSinceScope(listByKey(url, name, options), describeSince(options.since))
  return options.cursor === undefined
    ? withoutRange(listing, 'without `cursor` the rows have no times')
    : Object.assign(listing, { range: (range: TimeRange) => listRange(url, name, options, range) })
}

function listRange(
  url: SqlOptions['url'],
  name: TableName,
  options: TableOptions,
  range: TimeRange,
): Execute<SqlListState> {
  return async (state, context) => {
    await using database = await openDatabase(url, context)
    const plan = await loadPlan(database, name, options)
    if (state !== undefined) checkRowCursor(state.after, plan.order.length)
    const bounds = await readRangeBounds(database, plan, range)
    const since = await readSinceBound(database, plan, options)
    const lower: LowerBound | null =
      state === undefined ? bounds.lower : { columns: plan.order, values: state.after, bound: '>' }
    const { changes, last, isFull } = await readPage(
      database,
      plan,
      { lower, since, upper: bounds.upper, order: plan.order },
      options,
    )
    return {
      changes,
      hasMore: isFull,
      tables: [buildTableShape(plan, options)],
      ...(last !== null && { nextState: { after: last } }),
    }
  }
}

/** Reads all rows in key order, or several ranges of them at once. */
function listByKey(url: SqlOptions['url'], name: TableName, options: TableOptions): Execute<SqlListingState> {
  const { partitions = 1, concurrency = 1 } = options
  if (!Number.isInteger(partitions) || partitions < 1 || partitions > PARTITIONS_MAX)
    throw new SyncError('SYNC_INVALID', `\`partitions\` is ${partitions}; it must be from 1 to ${PARTITIONS_MAX}.`)
  const readPart = (
    range: KeyRange,
    state: SqlListState | undefined,
    context: SyncContext,
  ): Promise<Page<SqlListState>> => readRange(url, { name, options, range }, state, context)
  if (partitions === 1) return (state, context) => readPart(WHOLE_TABLE, state as SqlListState | undefined, context)
  const execute = partitioned<KeyRange, SqlListState>({
    list: async (cursor, context) => {
      await using database = await openDatabase(url, context)
      return await listKeyRanges(database, await loadPlan(database, name, options), partitions, cursor)
    },
    read: ({ value }, state, context) => readPart(value, state, context),
    concurrency,
  })
  return (state, context) => execute(state as PartitionedState | undefined, context)
}

async function readRange(
  url: SqlOptions['url'],
  {
    name,
    options,
    range: { above, upTo },
  }: { readonly name: TableName; readonly options: TableOptions; readonly range: KeyRange },
  state: SqlListState | undefined,
  context: SyncContext,
): Promise<Page<SqlListState>> {
  await using database = await openDatabase(url, context)
  const plan = await loadPlan(database, name, options)
  if (state !== undefined) checkRowCursor(state.after, plan.key.length)
  const after = state?.after ?? above
  const lower: LowerBound | null = after === null ? null : { columns: plan.key, values: after, bound: '>' }
  const upper = upTo === null ? null : { columns: plan.key, values: upTo }
  const since = await readSinceBound(database, plan, options)
  const { changes, last, isFull } = await readPage(database, plan, { lower, since, upper, order: plan.key }, options)
  return {
    changes,
    hasMore: isFull,
    tables: [buildTableShape(plan, options)],
    ...(last !== null && { nextState: { after: last } }),
  }
}

function createLookup(url: SqlOptions['url'], name: TableName, options: TableOptions): Lookup {
  return async (key, context) => {
    await using database = await openDatabase(url, context)
    return await readByKey(database, await loadPlan(database, name, options), options, key)
  }
}

/** Reads the first row at or above the key, which is the row itself if it exists. */
async function readByKey(
  database: SqlDatabase,
  plan: TablePlan,
  options: TableOptions,
  key: string,
): Promise<Change | null> {
  const texts = parseKey(key, plan.key.length)
  if (texts === null) return null
  const {
    changes: [found],
  } = await readPage(
    database,
    plan,
    {
      lower: { columns: plan.key, values: texts, bound: '>=' },
      since: await readSinceBound(database, plan, options),
      upper: null,
      order: plan.key,
    },
    { ...options, pageSize: 1 },
  )
  return found?.key === key ? found : null
}

/** The questions that compare the table with its copy. */
function createChecks(url: SqlOptions['url'], name: TableName, options: TableOptions): SourceChecks {
  return {
    summarize: async (ranges, { ignore }, context) => {
      await using database = await openDatabase(url, context)
      const plan = await loadPlan(database, name, options)
      return await summarizeTable(database, plan, options, await readSinceBound(database, plan, options), {
        ranges,
        ignore,
      })
    },
    read: async (range, context) => {
      await using database = await openDatabase(url, context)
      const plan = await loadPlan(database, name, options)
      const [column] = plan.key
      const selection = selectKeyRange(plan, range) ?? {
        isTextOrder: true,
        textRange: { column: required(column, 'key'), ...range },
      }
      const { changes, isFull } = await readPage(
        database,
        plan,
        {
          lower: null,
          upper: null,
          since: await readSinceBound(database, plan, options),
          order: plan.key,
          ...selection,
        },
        options,
      )
      return { changes, hasMore: isFull }
    },
    find: async (keys, context) => {
      await using database = await openDatabase(url, context)
      const plan = await loadPlan(database, name, options)
      const column = required(plan.key[0], 'key')
      if (!hasSimpleKey(plan)) {
        const found = []
        for (const key of keys) found.push(await readByKey(database, plan, options, key))
        return found.filter((change) => change !== null)
      }
      const { changes } = await readPage(
        database,
        plan,
        {
          lower: null,
          upper: null,
          since: await readSinceBound(database, plan, options),
          order: plan.key,
          oneOf: { column, values: selectKeys(column, keys) },
        },
        { ...options, pageSize: keys.length + 1 },
      )
      return changes
    },
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
  readonly since?: LowerBound | null
  readonly until: string | null
  /** The state at the end of the cycle, without the rows it reads. */
  readonly state: SqlState
}

function isMidCycle(state: SqlState | undefined): state is SqlState & { readonly after: readonly string[] } {
  return state?.after !== undefined
}

/**
 * Within a cycle, reads after the last row's cursor and key, so rows with equal cursors are neither lost nor read
 * twice.
 */
function resumeCycle(state: SqlState & { readonly after: readonly string[] }, { order }: TablePlan): CursorRange {
  const { after, until = null, ...rest } = state
  return { lower: { columns: order, values: after, bound: '>' }, until, state: rest }
}

/** Returns null when there is nothing to read. */
async function beginCycle(
  database: SqlDatabase,
  plan: TablePlan,
  state: SqlState | undefined,
  options: CursorOptions,
  overlapMs: number,
  context: SyncContext,
): Promise<CursorRange | null> {
  const { table } = plan
  const cursor = requireCursor(plan)
  const known = state?.cursorValue ?? null
  const since = known === null ? await readSinceBound(database, plan, options) : null
  const from = (text: string | null, bound: '>' | '>='): LowerBound | null =>
    text === null ? null : { columns: [cursor], values: [text], bound }
  const field = { cursorField: cursor.name }
  if (options.strict === true)
    return { lower: from(known, '>'), since, until: null, state: { ...field, cursorValue: known } }
  if (cursor.nullable && !table.isView)
    context.log.warn('rows with a null cursor are read by the backfill only', { table: table.id })

  const { now, settled, until } = await database.readHorizon(table, cursor, options.lagMs ?? LAG_MS)
  if (cursor.kind === 'instant') {
    const horizon = parseColumnInstant(until) ?? ''
    const isAhead = known !== null && (parseColumnInstant(known) ?? '') > horizon
    if (isAhead)
      context.log.warn('the stored cursor is ahead of the horizon and was moved back to it', { table: table.id })
    const frontier = isAhead ? until : known
    return {
      lower: from(frontier === null ? null : subtractMs(frontier, overlapMs), '>='),
      since,
      until,
      state: { ...field, cursorValue: frontier },
    }
  }
  if (known === null && state?.mark === undefined) {
    // The first cycle reads the whole table once: it waits for rows that may still appear, instead of reading again.
    const first = await captureAnchor(database, plan, options, context)
    return first === undefined
      ? null
      : { lower: null, since, until: first.cursorValue ?? required(first.mark, 'the mark').value, state: first }
  }
  const top = await database.readMaxValue(table, cursor)
  if (top === null) return null
  const { mark } = state ?? {}
  // No row below the mark can appear any more: this cycle reads the range once more, and the next one begins at the
  // mark.
  const isSettled = mark !== undefined && mark.at <= settled
  return {
    lower: from(minInteger(known, top), cursor.isUnique ? '>' : '>='),
    since,
    until: top,
    state: {
      ...field,
      cursorValue: minInteger(isSettled ? mark.value : known, top),
      mark: mark === undefined || isSettled ? { value: top, at: now } : mark,
    },
  }
}

async function captureAnchor(
  database: SqlDatabase,
  plan: TablePlan,
  options: CursorOptions,
  context: SyncContext,
): Promise<SqlState | undefined> {
  const { table } = plan
  const cursor = requireCursor(plan)
  const { lagMs = LAG_MS } = options
  const cursorField = cursor.name
  const { now, until } = await database.readHorizon(table, cursor, lagMs)
  if (cursor.kind === 'instant') return { cursorField, cursorValue: until }
  const top = await database.readMaxValue(table, cursor)
  if (top === null) return undefined
  await context.clock.sleep(lagMs, context.signal)
  const { settled } = await database.readHorizon(table, cursor, lagMs)
  // If a transaction stays open for long, the delta reads the whole table once.
  return now <= settled
    ? { cursorField, cursorValue: top }
    : { cursorField, cursorValue: null, mark: { value: top, at: now } }
}

async function readByCursor(
  database: SqlDatabase,
  plan: TablePlan,
  start: CursorRange,
  options: CursorOptions,
): Promise<Page<SqlState>> {
  const cursor = requireCursor(plan)
  const upper = start.until === null ? null : { columns: [cursor], values: [start.until] }
  const { changes, last, isFull } = await readPage(
    database,
    plan,
    { lower: start.lower, since: start.since ?? null, upper, order: plan.order },
    options,
  )
  // The cursor moves only to a row that was read. An integer cursor moves by its mark.
  const [lastValue] = last ?? []
  const cursorValue =
    lastValue === undefined || (cursor.kind === 'integer' && options.strict !== true)
      ? start.state.cursorValue
      : cursor.kind === 'integer'
        ? lastValue
        : laterInstant(lastValue, start.state.cursorValue)
  const reached = { ...start.state, cursorValue }
  const tidemark =
    cursor.kind === 'instant' && cursor.isUtc ? computeTidemark(isFull ? (lastValue ?? null) : start.until) : undefined
  return {
    changes,
    hasMore: isFull,
    tidemark,
    tables: [buildTableShape(plan, options)],
    nextState:
      isFull && last !== null
        ? { ...reached, after: last, ...(start.until !== null && { until: start.until }) }
        : reached,
  }
}

/**
 * More rows of the same instant may follow: rows with equal cursors on the next page, rows of a date until the day is
 * over.
 */
function computeTidemark(reached: string | null): string | undefined {
  const instant = reached === null ? null : parseColumnInstant(reached)
  return instant === null ? undefined : subtractMicrosecond(instant)
}

/** The row may have been deleted, and some databases reuse its number. */
function minInteger(a: string | null, b: string): string | null {
  return a === null || BigInt(a) <= BigInt(b) ? a : b
}

// ── a page ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface RowsPage {
  readonly changes: Page['changes']
  readonly last: string[] | null
  /** Whether the page ended because it was full. */
  readonly isFull: boolean
}

async function readPage(
  database: SqlDatabase,
  plan: TablePlan,
  range: Omit<RowSelection, 'table' | 'columns' | 'limit' | 'offset'>,
  options: TableOptions,
): Promise<RowsPage> {
  const { table, isKeyUnique } = plan
  const limit = options.pageSize ?? PAGE_SIZE
  // Without a unique constraint, the row after the page shows whether the page boundary separates two rows with the
  // same key.
  const selection = { table, columns: options.columns, ...range, limit: isKeyUnique ? limit : limit + 1 }
  const changes: Page['changes'] = []
  let last: string[] | null = null
  let bytes = 0
  for await (const rows of database.readRows(selection, listNeededColumns(plan, options))) {
    for (const row of rows) {
      const values = readOrderValues(row.record, range.order, table)
      const previous: readonly string[] | null = last
      if (!isKeyUnique && previous !== null && values.every((text, index) => text === previous[index])) {
        throw new SyncError(
          'SOURCE_INVALID',
          `${table.id}: two rows have the same ${range.order.map(({ name }) => `"${name}"`).join(' and ')}; set \`key\` to columns that identify a row.`,
        )
      }
      if (changes.length === limit || bytes >= PAGE_BYTES) return { changes, last, isFull: true }
      changes.push(toChange(row, plan, options.deleted))
      last = values
      bytes += row.bytes
    }
  }
  return { changes, last, isFull: changes.length === limit }
}

/** The fields needed for a change's type, key and cursor. */
function listNeededColumns({ key, cursor }: TablePlan, { deleted }: TableOptions): string[] {
  return [
    ...new Set([
      ...key.map(({ name }) => name),
      ...(cursor === null ? [] : [cursor.name]),
      ...(deleted === undefined ? [] : [deleted]),
    ]),
  ]
}
