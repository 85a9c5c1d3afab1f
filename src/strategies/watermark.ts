import {
  isSyncError,
  SyncError,
  type Change,
  type Execute,
  type JsonObject,
  type SyncContext,
} from '../contract/index.ts'
import { parseDurationMs } from '../values/duration.ts'
import { required } from '../values/required.ts'
import {
  compareCursors,
  subtractFromInstant,
  isCursorValue,
  laterCursor,
  type CursorKind,
  type CursorValue,
} from './kit/cursor-values.ts'
import { carryExtra, type ExtraAnswer, type ExtraCarrier, type ExtraState } from './kit/extra.ts'
import { lowerHorizon, measureRequest, type ServerClock } from './kit/horizon.ts'
import { msToInstant, formatIso, requireInstant } from './kit/instants.ts'
import { sourceInvalidError, requireNumber, stateRejectedError } from './kit/strategy-errors.ts'

/** Describes a stream with a field that every change increases. */
export interface WatermarkOptions<Extra = never> {
  /** `<namespace>.<entity>`; it does not change when the table is renamed. */
  streamId: string
  /** The field that every change to a record increases. */
  cursorField: string
  /** The ordering of its values; instants by default. */
  cursorKind?: CursorKind
  /** The fields that identify a record; a function reads them from the source's metadata. */
  key: readonly string[] | ((context: SyncContext) => Promise<readonly string[]>)
  /** Reads one page. `sqlQuery`, `soqlQuery`, `odataQuery` and `newerFiles` build the query. */
  read(query: WatermarkQuery<Extra>, context: SyncContext): Promise<WatermarkAnswer<Extra>>
  limit: number
  /**
   * Every cycle re-reads this much, as an ISO 8601 duration such as `PT5M`: for clock skew and rows that appear late.
   */
  safetyWindow?: string
  /** Where a sync without state begins; at the first record by default. */
  since?: CursorValue
  /** Query with a bare `>`. Only for unique cursors: other records with the last value would never be read. */
  strict?: boolean
}

/** The input of a cycle. Frozen: the connector must not modify it. */
export interface WatermarkInput {
  readonly stream_id: string
  readonly cursor_field: string
  /** As the source wrote it; null before the first record, and while the cursor is unreliable. */
  readonly cursor_value: CursorValue | null
}

/** The output of a successful cycle. */
export interface WatermarkOutput extends WatermarkInput {
  readonly records_emitted: number
}

/** The bounds and order of one page. `sqlQuery`, `soqlQuery` and `odataQuery` write it as a query. */
export interface WatermarkQuery<Extra = never> extends ExtraState<Extra> {
  readonly input: WatermarkInput
  /** The lower bound of the cycle; null to read everything. */
  readonly from: { readonly cursor: CursorValue; readonly bound: '>' | '>=' } | null
  /** The last record of the previous page; the next page follows it in `order`. */
  readonly after: { readonly cursor: CursorValue | null; readonly key: readonly CursorValue[] } | undefined
  /** By cursor, then key; by key alone in a full refresh. */
  readonly order: 'cursor' | 'key'
  /** The source's own link from the previous answer; it takes precedence over `after`. */
  readonly page: string | undefined
  readonly limit: number
}

/** A page of records. */
export interface WatermarkAnswer<Extra = never> extends ServerClock, ExtraAnswer<Extra> {
  readonly items: readonly JsonObject[]
  readonly end: boolean
  /** The source's own link to the next page. Linked pages need no order. */
  readonly page?: string | null
}

/** Between cycles this is the output of the last cycle; `run` exists only within one. */
export interface WatermarkState<Extra = never> extends WatermarkInput, ExtraState<Extra> {
  readonly records_emitted?: number
  readonly run?: WatermarkRun
}

interface WatermarkRun {
  readonly from: CursorValue | null
  readonly bound: '>' | '>='
  /** The greatest cursor of the committed pages. */
  readonly max: CursorValue | null
  readonly emitted: number
  readonly limit: number
  readonly full: boolean
  readonly after?: { readonly cursor: CursorValue | null; readonly key: readonly CursorValue[] }
  readonly page?: string
  /** The source's own time, if it reported one. */
  readonly untilMs?: number
}

/**
 * For streams with a field that every change increases. A cycle reads from the last watermark, including the records at
 * it, and stores the greatest value of all its pages. Commits are idempotent, so re-read records change nothing. If the
 * cursor turns out not to order the stream, this is logged and everything is read in every cycle until one finds it in
 * order.
 *
 * ```ts
 * import { odataQuery, watermark } from 'tidemark'
 *
 * export const accounts = watermark({
 *   streamId: 'sap.s4hana.gl_accounts',
 *   cursorField: 'LastUpdated',
 *   key: ['AccountID'],
 *   read: async (query, { fetch }) => {
 *     const first = odataQuery({ name: 'GLAccounts', key: ['AccountID'] }, query)
 *     const response = await fetch(new URL(query.page ?? first, 'https://erp.example'))
 *     const body = (await response.json()) as { value: Record<string, string>[]; '@odata.nextLink'?: string }
 *     const page = body['@odata.nextLink'] ?? null
 *     return { items: body.value, page, end: page === null && body.value.length < query.limit, serverTime: response.headers.get('date') }
 *   },
 *   limit: 1_000,
 *   safetyWindow: 'PT5M',
 * })
 * ```
 */
export function watermark<Extra = never>(options: WatermarkOptions<Extra>): Execute<WatermarkState<Extra>> {
  const { cursorKind: kind = 'instant' } = options
  const windowMs = checkOptions(options, kind)

  return carryExtra<WatermarkState<Extra>, Extra>(async (state, context, extra) => {
    const isReplace = context.cycle.mode === 'replace'
    const input = buildInput(state, options, kind)
    const run = state?.run ?? (isReplace ? createFullRun(options.limit) : beginRun(state, options, windowMs))
    const { answer, limit, tookMs } = await readPage(buildQuery(input, run), options, extra, context)
    const { items, end, page } = answer
    if (!end && items.length === 0 && typeof page !== 'string')
      throw sourceInvalidError(
        'The source returned an empty page that is not the end, without a link to continue from.',
      )

    const cursors = items.map((item) => item[options.cursorField])
    if (!run.full) {
      const isKeysetPaged = run.after !== undefined || (!end && typeof page !== 'string')
      const fault = findCursorFault(cursors, run, isKeysetPaged, kind)
      if (fault !== null) {
        context.log.warn('the cursor does not order the stream; reading the whole stream', {
          stream: options.streamId,
          cursorField: options.cursorField,
          fault,
        })
        return { changes: [], hasMore: true, nextState: { ...input, run: createFullRun(options.limit) } }
      }
    }
    const untilMs = lowerHorizon(run.untilMs ?? Number.POSITIVE_INFINITY, 0, answer, tookMs)
    // An unordered cursor is discarded: the next cycle starts from the beginning.
    const max = run.full
      ? null
      : cursors.reduce<CursorValue | null>((top, cursor) => laterCursor(kind, top, cursor as CursorValue), run.max)
    const emitted = run.emitted + items.length
    const fields = { key: await readKey(options, context), cursorField: options.cursorField }
    const changes = items.map((item) => toChange(item, fields, kind, run.full))
    // Without a window nothing bounds how late a row may appear, so the engine derives the tidemark.
    const tidemark = windowMs === 0 ? undefined : formatIso(Math.min(untilMs, context.cycle.startedAt) - windowMs)
    if (end)
      return {
        changes,
        hasMore: false,
        tidemark,
        ...(!isReplace && {
          nextState: { ...input, cursor_value: capAtHorizon(max, untilMs, kind), records_emitted: emitted },
        }),
      }
    const next =
      typeof page === 'string' ? { page } : { after: toPageCursor(required(items.at(-1), 'the last record'), fields) }
    return {
      changes,
      hasMore: true,
      nextState: {
        ...input,
        run: {
          from: run.from,
          bound: run.bound,
          max,
          emitted,
          full: run.full,
          // The page size grows back to the configured limit after a failure reduced it.
          limit: Math.min(options.limit, limit * 2),
          ...next,
          ...(Number.isFinite(untilMs) && { untilMs }),
        },
      },
    }
  })
}

function checkOptions(
  { streamId, cursorField, key, limit, safetyWindow, since, strict }: Omit<WatermarkOptions, 'read'>,
  kind: CursorKind,
): number {
  requireNumber('watermark', 'limit', limit, 1)
  if (!streamId || !cursorField) refuse('`streamId` and `cursorField` must name the stream and its cursor')
  if (typeof key !== 'function') checkKey(key)
  if (since !== undefined && !isCursorValue(kind, since)) refuse('`since` is not a valid cursor value')
  if (safetyWindow === undefined) return 0
  const windowMs = parseDurationMs(safetyWindow)
  if (windowMs === null) return refuse('`safetyWindow` must be an ISO 8601 duration such as PT5M')
  if (kind !== 'instant') refuse('`safetyWindow` requires a cursor of kind `instant`')
  if (strict === true) refuse('`strict` never re-reads records, so it cannot be combined with `safetyWindow`')
  return windowMs
}

async function readKey({ key }: Pick<WatermarkOptions, 'key'>, context: SyncContext): Promise<readonly string[]> {
  return typeof key === 'function' ? checkKey(await key(context)) : key
}

function checkKey(key: readonly string[]): readonly string[] {
  return key.length === 0 ? refuse('`key` must name at least one field') : key
}

function refuse(what: string): never {
  throw new SyncError('SYNC_INVALID', `watermark: ${what}.`)
}

/** A state may have been edited by hand, and the cursor field may have changed since. */
function buildInput(
  state: WatermarkInput | undefined,
  { streamId, cursorField }: Pick<WatermarkOptions, 'streamId' | 'cursorField'>,
  kind: CursorKind,
): WatermarkInput {
  if (state !== undefined) {
    if (state.stream_id !== streamId) throw stateRejectedError('watermark', 'it belongs to another stream')
    if (state.cursor_field !== cursorField)
      throw stateRejectedError('watermark', `it is a cursor of another field than "${cursorField}"`)
    if (state.cursor_value !== null && !isCursorValue(kind, state.cursor_value))
      throw stateRejectedError('watermark', '`cursor_value` is not a valid cursor value')
  }
  return Object.freeze({ stream_id: streamId, cursor_field: cursorField, cursor_value: state?.cursor_value ?? null })
}

function beginRun(
  state: WatermarkInput | undefined,
  { since, strict, limit }: Pick<WatermarkOptions, 'since' | 'strict' | 'limit'>,
  windowMs: number,
): WatermarkRun {
  // Stored by the first cycle, even if it finds nothing. A stored null means: read everything.
  const known = state === undefined ? (since ?? null) : state.cursor_value
  const from = known === null || windowMs === 0 ? known : subtractFromInstant(String(known), windowMs)
  return { from, bound: strict === true ? '>' : '>=', max: known, emitted: 0, limit, full: false }
}

function createFullRun(limit: number): WatermarkRun {
  return { from: null, bound: '>=', max: null, emitted: 0, limit, full: true }
}

function buildQuery(input: WatermarkInput, { from, bound, after, page, limit, full }: WatermarkRun): WatermarkQuery {
  return {
    input,
    from: from === null ? null : { cursor: from, bound },
    after,
    order: full ? 'key' : 'cursor',
    page,
    limit,
  }
}

const PAGE_SHRINKS_MAX = 3
const SHRINKABLE_CODES = ['SOURCE_TIMEOUT', 'SOURCE_UNAVAILABLE', 'SOURCE_INVALID']

/** A failed page is requested again with fewer records; if that fails too, the engine backs off. */
async function readPage<Extra>(
  query: WatermarkQuery,
  options: Pick<WatermarkOptions<Extra>, 'read' | 'streamId'>,
  extra: ExtraCarrier<Extra>,
  context: SyncContext,
): Promise<{ answer: WatermarkAnswer<Extra>; tookMs: number; limit: number }> {
  for (let limit = query.limit, shrinks = 0; ; limit = Math.ceil(limit / 2), shrinks++) {
    try {
      const request = (): Promise<WatermarkAnswer<Extra>> =>
        extra.read((carried) => options.read({ ...query, limit, ...carried }, context))
      return { ...(await measureRequest(context, request)), limit }
    } catch (error) {
      // A page link has a fixed page size.
      const canShrink = isSyncError(error) && SHRINKABLE_CODES.includes(error.code) && query.page === undefined
      if (!canShrink || limit === 1 || shrinks === PAGE_SHRINKS_MAX || context.signal.aborted) throw error
      context.log.warn('a page failed; retrying with fewer records', {
        stream: options.streamId,
        code: error.code,
        limit,
      })
    }
  }
}

/** Returns why the cursor is unreliable, or null. Records outside the requested range are the source's error. */
function findCursorFault(
  cursors: readonly unknown[],
  { from, bound, after }: WatermarkRun,
  isKeysetPaged: boolean,
  kind: CursorKind,
): string | null {
  let previous = after?.cursor ?? null
  for (const cursor of cursors) {
    if (!isCursorValue(kind, cursor)) return 'a record has no comparable cursor value'
    const distance = from === null ? 1 : compareCursors(kind, cursor, from)
    if (distance < 0 || (distance === 0 && bound === '>' && typeof kind !== 'function'))
      throw sourceInvalidError('The source returned a record from before the requested cursor.')
    if (isKeysetPaged && previous !== null && compareCursors(kind, cursor, previous) < 0)
      return 'a record follows one with a greater cursor'
    previous = cursor
  }
  return null
}

interface RecordFields {
  readonly key: readonly string[]
  readonly cursorField: string
}

function toChange(item: JsonObject, { key, cursorField }: RecordFields, kind: CursorKind, full: boolean): Change {
  const parts = key.map((field) => item[field])
  // The engine quarantines records without a key. Serializing as a list keeps composite keys unambiguous.
  const text = parts.some((part) => part === null || part === undefined || typeof part === 'object')
    ? ''
    : parts.length === 1
      ? String(parts[0])
      : JSON.stringify(parts.map(String))
  const cursor = item[cursorField]
  if (!isCursorValue(kind, cursor)) return { type: 'upsert', key: text, record: item }
  // An unreliable cursor must not make a newer record look older.
  return {
    type: 'upsert',
    key: text,
    record: item,
    cursor: String(cursor),
    ...(kind === 'instant' && !full && { upstreamUpdatedAt: String(cursor) }),
  }
}

function toPageCursor(item: JsonObject, { key, cursorField }: RecordFields): NonNullable<WatermarkRun['after']> {
  const cursor = item[cursorField]
  return {
    cursor: typeof cursor === 'string' || typeof cursor === 'number' ? cursor : null,
    key: key.map((field) => {
      const value = item[field]
      if (typeof value === 'string' || typeof value === 'number') return value
      throw sourceInvalidError(
        `The last record of a page has no string or number in "${field}", so the next page cannot be requested.`,
      )
    }),
  }
}

/**
 * A source clock that jumped ahead must not move the cursor with it: later records with correct times would never be
 * read.
 */
function capAtHorizon(max: CursorValue | null, untilMs: number, kind: CursorKind): CursorValue | null {
  if (kind !== 'instant' || max === null || !Number.isFinite(untilMs)) return max
  return requireInstant(String(max), 'The cursor') > msToInstant(untilMs) ? formatIso(untilMs) : max
}
