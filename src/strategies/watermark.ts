import { isSyncError, SyncError, type Change, type Execute, type JsonObject, type SyncContext } from '../contract/index.ts'
import { parseDurationMs } from '../values/duration.ts'
import { canonicalizeInstant } from '../values/instant.ts'
import { compareCursors, subtractFromInstant, isCursorValue, laterCursor, type CursorKind, type CursorValue } from './kit/cursor-values.ts'
import { lowerHorizon, measureRequest, type ServerClock } from './kit/horizon.ts'
import { msToInstant, formatIso } from './kit/instants.ts'
import { sourceInvalidError, requireNumber, stateRejectedError } from './kit/strategy-errors.ts'

export interface WatermarkOptions {
  /** `<namespace>.<entity>`; it stays when the table is renamed. */
  streamId: string
  /** The field that every change of a record raises. */
  cursorField: string
  /** How its values are ordered; instants unless said otherwise. */
  cursorKind?: CursorKind
  /** The fields that tell records apart. */
  key: readonly string[]
  /** Asks for one page. `sqlQuery`, `soqlQuery`, `odataQuery` and `newerFiles` write the question down. */
  read(query: WatermarkQuery, context: SyncContext): Promise<WatermarkAnswer>
  limit: number
  /** Every cycle reads so much again, as an ISO 8601 duration such as `PT5M`: for clocks that differ and rows that appear late. */
  safetyWindow?: string
  /** Where a sync without state begins; at the first record unless given. */
  since?: CursorValue
  /** Ask with a bare `>`. Only for cursors that no two records share: others with the last value would never be read. */
  strict?: boolean
}

/** What a cycle is given. Frozen: the connector keeps nothing and changes nothing. */
export interface WatermarkInput {
  readonly stream_id: string
  readonly cursor_field: string
  /** As the source wrote it; null before the first record, and while the cursor cannot be relied on. */
  readonly cursor_value: CursorValue | null
}

/** What a cycle that succeeded gives back. */
export interface WatermarkOutput extends WatermarkInput {
  readonly records_emitted: number
}

export interface WatermarkQuery {
  readonly input: WatermarkInput
  /** The lower bound of the cycle; null when all of it is asked for. */
  readonly from: { readonly cursor: CursorValue; readonly bound: '>' | '>=' } | null
  /** The last record of the page before: what follows it in `order`. */
  readonly after: { readonly cursor: CursorValue | null; readonly key: readonly CursorValue[] } | undefined
  /** By the cursor and then the key; by the key alone in a full refresh. */
  readonly order: 'cursor' | 'key'
  /** The source's own link, when the answer before gave one; it goes before `after`. */
  readonly page: string | undefined
  readonly limit: number
}

export interface WatermarkAnswer extends ServerClock {
  readonly items: readonly JsonObject[]
  readonly end: boolean
  /** The source's own link to the next page. Then the pages need no order. */
  readonly page?: string | null
}

/** Between cycles the output of the last; `run` lives within one. */
export interface WatermarkState extends WatermarkInput {
  readonly records_emitted?: number
  readonly run?: WatermarkRun
}

interface WatermarkRun {
  readonly from: CursorValue | null
  readonly bound: '>' | '>='
  /** The greatest cursor of the pages that landed. */
  readonly max: CursorValue | null
  readonly emitted: number
  readonly limit: number
  readonly full: boolean
  readonly after?: { readonly cursor: CursorValue | null; readonly key: readonly CursorValue[] }
  readonly page?: string
  /** The source's own time, when it told. */
  readonly untilMs?: number
}

/**
 * For streams with a field that every change raises. A cycle reads from the last watermark on, the records at it again, and
 * leaves the greatest value of all its pages. What lands twice changes nothing. A cursor that turns out not to order
 * the stream is reported, and all of it is read, each time until a cycle finds it in order.
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
export function watermark(options: WatermarkOptions): Execute<WatermarkState> {
  const { cursorKind: kind = 'instant' } = options
  const windowMs = checkOptions(options, kind)

  return async (state, context) => {
    const isReplace = context.cycle.mode === 'replace'
    const input = buildInput(state, options, kind)
    const run = state?.run ?? (isReplace ? createFullRun(options.limit) : beginRun(state, options, windowMs))
    const { answer, limit, tookMs } = await readPage(buildQuery(input, run), options, context)
    const { items, end, page } = answer
    if (!end && items.length === 0 && typeof page !== 'string') throw sourceInvalidError('The source sent an empty page that is not the end, and no link to go on with.')

    const cursors = items.map((item) => item[options.cursorField])
    if (!run.full) {
      const byPlace = run.after !== undefined || (!end && typeof page !== 'string')
      const fault = findCursorFault(cursors, run, byPlace, kind)
      if (fault !== null) {
        context.log.warn('the cursor does not order the stream, so all of it is read', { stream: options.streamId, cursorField: options.cursorField, fault })
        return { changes: [], hasMore: true, nextState: { ...input, run: createFullRun(options.limit) } }
      }
    }
    const untilMs = lowerHorizon(run.untilMs ?? Number.POSITIVE_INFINITY, 0, answer, tookMs)
    // Nothing is left of a cursor that does not order: the next cycle begins anew.
    const max = run.full ? null : cursors.reduce<CursorValue | null>((top, cursor) => laterCursor(kind, top, cursor as CursorValue), run.max)
    const emitted = run.emitted + items.length
    const changes = items.map((item) => toChange(item, options, kind, run.full))
    // Without a window nothing says how late a row may show, so the engine derives the tidemark.
    const tidemark = windowMs === 0 ? undefined : formatIso(Math.min(untilMs, context.cycle.startedAt) - windowMs)
    if (end) return { changes, hasMore: false, tidemark, ...(!isReplace && { nextState: { ...input, cursor_value: capAtHorizon(max, untilMs, kind), records_emitted: emitted } }) }
    const last = items.at(-1)
    return {
      changes,
      hasMore: true,
      nextState: {
        ...input,
        run: {
          from: run.from, bound: run.bound, max, emitted, full: run.full,
          // After a failure small at first, then as large again as asked for.
          limit: Math.min(options.limit, limit * 2),
          ...(typeof page === 'string' ? { page } : { after: toPageCursor(last!, options) }),
          ...(Number.isFinite(untilMs) && { untilMs }),
        },
      },
    }
  }
}

function checkOptions({ streamId, cursorField, key, limit, safetyWindow, since, strict }: WatermarkOptions, kind: CursorKind): number {
  const refuse = (what: string): never => {
    throw new SyncError('SYNC_INVALID', `watermark: ${what}.`)
  }
  requireNumber('watermark', 'limit', limit, 1)
  if (!streamId || !cursorField) refuse('`streamId` and `cursorField` name the stream and what orders it')
  if (key.length === 0) refuse('`key` names no field that tells records apart')
  if (since !== undefined && !isCursorValue(kind, since)) refuse('`since` is no value of the cursor')
  if (safetyWindow === undefined) return 0
  const windowMs = parseDurationMs(safetyWindow)
  if (windowMs === null) return refuse('`safetyWindow` is an ISO 8601 duration such as PT5M')
  if (kind !== 'instant') refuse('a safety window is a time, and the cursor is none')
  if (strict === true) refuse('`strict` reads nothing again, so it has no safety window')
  return windowMs
}

/** A state may have been set by hand, and a sync may have been given another cursor since. */
function buildInput(state: WatermarkState | undefined, { streamId, cursorField }: WatermarkOptions, kind: CursorKind): WatermarkInput {
  if (state !== undefined) {
    if (state.stream_id !== streamId) throw stateRejectedError('watermark', 'it is of another stream')
    if (state.cursor_field !== cursorField) throw stateRejectedError('watermark', `it is a position of another field than "${cursorField}"`)
    if (state.cursor_value !== null && !isCursorValue(kind, state.cursor_value)) throw stateRejectedError('watermark', '`cursor_value` is no value of the cursor')
  }
  return Object.freeze({ stream_id: streamId, cursor_field: cursorField, cursor_value: state?.cursor_value ?? null })
}

function beginRun(state: WatermarkState | undefined, { since, strict, limit }: WatermarkOptions, windowMs: number): WatermarkRun {
  // Kept from the first cycle on, also when that finds nothing. A null that was left on purpose asks for all of it.
  const known = state === undefined ? (since ?? null) : state.cursor_value
  const from = known === null || windowMs === 0 ? known : subtractFromInstant(String(known), windowMs)
  return { from, bound: strict === true ? '>' : '>=', max: known, emitted: 0, limit, full: false }
}

function createFullRun(limit: number): WatermarkRun {
  return { from: null, bound: '>=', max: null, emitted: 0, limit, full: true }
}

function buildQuery(input: WatermarkInput, { from, bound, after, page, limit, full }: WatermarkRun): WatermarkQuery {
  return { input, from: from === null ? null : { cursor: from, bound }, after, order: full ? 'key' : 'cursor', page, limit }
}

const PAGE_SHRINKS_MAX = 3
const SHRINKABLE_CODES = ['SOURCE_TIMEOUT', 'SOURCE_UNAVAILABLE', 'SOURCE_INVALID']

/** A page that fails is asked for again with fewer records; when that does not help either, the engine waits. */
async function readPage(query: WatermarkQuery, options: WatermarkOptions, context: SyncContext): Promise<{ answer: WatermarkAnswer; tookMs: number; limit: number }> {
  for (let limit = query.limit, shrinks = 0; ; limit = Math.ceil(limit / 2), shrinks++) {
    try {
      return { ...(await measureRequest(context, () => options.read({ ...query, limit }, context))), limit }
    } catch (error) {
      // A link of the source's own is for a page of its own size.
      const canShrink = isSyncError(error) && SHRINKABLE_CODES.includes(error.code) && query.page === undefined
      if (!canShrink || limit === 1 || shrinks === PAGE_SHRINKS_MAX || context.signal.aborted) throw error
      context.log.warn('a page failed and is asked for again with fewer records', { stream: options.streamId, code: error.code, limit })
    }
  }
}

/** Why the cursor cannot be relied on; null when it can. What the source sent against the question is its own fault. */
function findCursorFault(cursors: readonly unknown[], { from, bound, after }: WatermarkRun, byPlace: boolean, kind: CursorKind): string | null {
  let previous = after?.cursor ?? null
  for (const cursor of cursors) {
    if (!isCursorValue(kind, cursor)) return 'a record has no value in it that could be ordered'
    const distance = from === null ? 1 : compareCursors(kind, cursor, from)
    if (distance < 0 || (distance === 0 && bound === '>' && typeof kind !== 'function')) throw sourceInvalidError('The source sent a record from before the position it was asked with.')
    if (byPlace && previous !== null && compareCursors(kind, cursor, previous) < 0) return 'a record comes after one with a greater value'
    previous = cursor
  }
  return null
}

function toChange(item: JsonObject, { key, cursorField }: WatermarkOptions, kind: CursorKind, full: boolean): Change {
  const parts = key.map((field) => item[field])
  // What has no key is put aside by the engine, with the reason. As a list, no two keys of several parts read the same.
  const text = parts.some((part) => part === null || part === undefined || typeof part === 'object') ? '' : parts.length === 1 ? String(parts[0]) : JSON.stringify(parts.map(String))
  const cursor = item[cursorField]
  if (!isCursorValue(kind, cursor)) return { type: 'upsert', key: text, record: item }
  // A cursor that falls must not make a newer record the older one.
  return { type: 'upsert', key: text, record: item, cursor: String(cursor), ...(kind === 'instant' && !full && { upstreamUpdatedAt: String(cursor) }) }
}

function toPageCursor(item: JsonObject, { key, cursorField }: WatermarkOptions): NonNullable<WatermarkRun['after']> {
  const cursor = item[cursorField]
  return {
    cursor: typeof cursor === 'string' || typeof cursor === 'number' ? cursor : null,
    key: key.map((field) => {
      const value = item[field]
      if (typeof value === 'string' || typeof value === 'number') return value
      throw sourceInvalidError(`The last record of a page has no plain value in "${field}", so the next page cannot be asked for.`)
    }),
  }
}

/** A clock that jumped forward must not take the position along: what is stamped rightly afterwards would never be read. */
function capAtHorizon(max: CursorValue | null, untilMs: number, kind: CursorKind): CursorValue | null {
  if (kind !== 'instant' || max === null || !Number.isFinite(untilMs)) return max
  return canonicalizeInstant(String(max))! > msToInstant(untilMs) ? formatIso(untilMs) : max
}
