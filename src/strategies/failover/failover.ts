import { SyncError, type Change, type Execute, type JsonValue, type Pacing, type SyncContext } from '../../contract/index.ts'
import { requireMode, requireNumber } from '../kit/strategy-errors.ts'
import { toChanges } from '../kit/to-changes.ts'
import { recordFailure, recordSuccess } from './circuit-breaker.ts'
import { chooseProvider } from './choose-provider.ts'
import { isComparableCursor, isSameCursor, mergeCursor, type CursorState, type PaginationCursor, type ComparableCursor } from './cursors.ts'
import { withDeadline } from './deadline.ts'
import { DedupWindow } from './dedup-window.ts'
import type { ProviderBatch, ProviderOperation, Provider, StreamRequest } from './provider.ts'
import { advanceReplay } from './replay.ts'
import { buildRepairRequest, buildStreamRequest } from './stream-request.ts'
import { err, ok, type FailoverResult } from './result.ts'
import { DEDUP_WINDOW_SIZE, FailoverRun } from './failover-run.ts'
import { addBatch } from './import-session.ts'
import { getHealth, loadState, type FailoverState } from './state.ts'

export interface FailoverOptions<Item> {
  /** In the order in which they are asked while nothing else tells them apart. */
  readonly providers: readonly Provider<Item>[]
  /** Read one after the other, each with a position of its own. */
  readonly operations: Readonly<Record<string, ProviderOperation<Item>>>
  /** Asked first whenever its circuit is not open. */
  readonly preferred?: string
  /** How long one provider may take for a page before another is asked. */
  readonly deadlineMs?: number
  readonly repair?: HistoryRepair<Item>
}

/** For sources whose past can change, such as a chain. What it keeps is part of the state. */
export interface HistoryRepair<Item> {
  /** Before every page: from where to read again, when what was read is no longer so. */
  check(request: { readonly operation: string; readonly provider: string; readonly kept: JsonValue | undefined }, context: SyncContext): Promise<{ readonly from: ComparableCursor; readonly kept: JsonValue } | null>
  /** After each batch, with everything it held. */
  settle(batch: ProviderBatch<Item>, kept: JsonValue | undefined): { readonly changes: readonly Change[]; readonly kept: JsonValue | undefined }
}

export interface Failover<Item> extends Execute<FailoverState> {
  /**
   * The same as a stream of batches, for a program that lands them itself: it keeps `state` with each batch and begins with it again.
   * Expected failures are yielded; after the error that stands for all providers there is nothing more.
   */
  stream(state: FailoverState | undefined, context: SyncContext): AsyncGenerator<FailoverResult<ImportBatch<Item>>, void>
}

export interface ImportBatch<Item> extends ProviderBatch<Item> {
  readonly changes: readonly Change[]
  readonly state: FailoverState
}

const DEADLINE_MS = 30_000

/**
 * For a dataset that several providers tell: when one fails, the next goes on, from a position that it understands and a little
 * before it; what comes twice lands once.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> choose
 *   choose --> read: best provider that understands the position
 *   read --> landed: batch
 *   read --> choose: failure recorded, the next one
 *   landed --> read: same provider, exactly where it was
 *   landed --> [*]: every operation complete
 *   choose --> failed: nobody left
 * ```
 *
 * ```ts
 * import { failover, pagedProvider } from 'tidemark'
 *
 * type Transfer = { id: string; block: number; from: string; to: string; value: string }
 *
 * const provider = (name: string, url: string) => pagedProvider<Transfer>({
 *   name, supports: ['blockNumber'], prefers: 'blockNumber',
 *   fetchPage: async ({ cursor }, { fetch }) => {
 *     const response = await fetch(`${url}/transfers?from=${cursor?.value ?? 0}`)
 *     const { transfers, head } = (await response.json()) as { transfers: Transfer[]; head: number }
 *     return { items: transfers, through: { type: 'blockNumber', value: head + 1 }, end: true }
 *   },
 * })
 *
 * export const transfers = failover({
 *   providers: [provider('north', 'https://north.example'), provider('south', 'https://south.example')],
 *   operations: {
 *     transfers: {
 *       id: ({ id, block }) => `${id}@${block}`,
 *       cursors: ({ block }) => [{ type: 'blockNumber', value: block }],
 *       toChange: (transfer) => ({ type: 'upsert', key: transfer.id, record: transfer }),
 *     },
 *   },
 * })
 * ```
 */
export function failover<Item>(options: FailoverOptions<Item>): Failover<Item> {
  checkOptions(options)
  // What is remembered only as long as one run of a cycle; a pacer belongs to exactly one. Losing it costs nothing but time.
  const runs = new WeakMap<Pacing, FailoverRun>()
  const step = (state: FailoverState | undefined, context: SyncContext): Promise<ReadStep<Item>> => {
    const run = runs.get(context.pacer) ?? new FailoverRun()
    runs.set(context.pacer, run)
    return readNextBatch(options, run, state, context)
  }
  const execute = async (state: FailoverState | undefined, context: SyncContext): ReturnType<Execute<FailoverState>> => {
    requireMode('failover', 'incremental', context, 'a replace cycle forgets at its end where every provider stands')
    const { batch, changes, state: nextState } = await step(state, context)
    const hasMore = batch === null || nextState.session.status === 'started'
    return { changes: [...changes], hasMore, nextState, ...(!hasMore && nextState.session.switches > 0 && { endReason: formatEndReason(nextState.session.switches, batch.cursor) }) }
  }
  return Object.assign(execute, { stream: (state: FailoverState | undefined, context: SyncContext) => streamBatches(step, state, context) })
}

/** What the status of the sync says of the cycle. */
function formatEndReason(switches: number, { metadata }: CursorState): string {
  const word = `switched_to_${metadata?.providerName.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_') ?? ''}`
  return switches === 1 && word.length <= 32 ? word : `switched_${switches}_times`
}

async function* streamBatches<Item>(step: (state: FailoverState | undefined, context: SyncContext) => Promise<ReadStep<Item>>, first: FailoverState | undefined, context: SyncContext): AsyncGenerator<FailoverResult<ImportBatch<Item>>, void> {
  for (let state = first; ;) {
    let taken: ReadStep<Item>
    try {
      taken = await step(state, context)
    } catch (thrown) {
      yield err(thrown)
      return
    }
    state = taken.state
    if (taken.batch === null) continue
    yield ok({ ...taken.batch, changes: taken.changes, state })
    if (state.session.status === 'completed') return
  }
}

/** What one question to one provider came to. */
interface ReadStep<Item> {
  /** Null when it failed. The failure is in the state. */
  readonly batch: ProviderBatch<Item> | null
  readonly changes: readonly Change[]
  readonly state: FailoverState
  /** It failed because the provider asked to wait. */
  readonly isRateLimited?: true
}

/** A provider that asks to wait costs no page: the next one is asked at once, and when all of them wait, the step fails. */
async function readNextBatch<Item>(options: FailoverOptions<Item>, run: FailoverRun, given: FailoverState | undefined, context: SyncContext): Promise<ReadStep<Item>> {
  for (let state = given; ;) {
    const step = await attemptRead(options, run, state, context)
    if (step.isRateLimited !== true) return step
    state = step.state
  }
}

async function attemptRead<Item>(options: FailoverOptions<Item>, run: FailoverRun, given: FailoverState | undefined, context: SyncContext): Promise<ReadStep<Item>> {
  const state = run.withRateLimits(loadState(given, context.cycle))
  const name = Object.keys(options.operations).find((operation) => state.cursors[operation]?.metadata?.isComplete !== true)
  if (name === undefined) throw new SyncError('CURSOR_REJECTED', 'failover: every operation of the stored state has ended, though its cycle has not.')
  const operation = options.operations[name]!
  const isUnderWay = state.session.operations[name] !== undefined
  const choice = chooseProvider({ providers: options.providers, preferred: options.preferred, operation: name, state, failedProviders: run.failedProviders, isStarted: isUnderWay, now: context.clock.now() })
  if (choice instanceof SyncError) {
    run.failedProviders.clear()
    throw choice
  }
  const { provider, resumption } = choice
  const cursor = state.cursors[name]
  const askedAt = context.clock.now()
  const reading = await withDeadline(options.deadlineMs ?? DEADLINE_MS, provider.name, context, async (bounded) => {
    const back = cursor !== undefined ? await options.repair?.check({ operation: name, provider: provider.name, kept: state.kept?.[name] }, bounded) ?? null : null
    const request = back === null ? buildStreamRequest(name, operation, cursor, resumption) : buildRepairRequest(back.from, name, operation, cursor!, provider.name)
    const first = await readFirstBatch(provider, request, bounded)
    // Where the past can change, items are landed only with the word on which past they belong to.
    if (options.repair !== undefined && first.failure !== null) throw first.failure
    return { ...first, back }
  })
  const now = context.clock.now()
  // Where the past can change, an item may come back after another took its key: only a window of one page is safe.
  const window = options.repair === undefined ? run.getDedupWindow(name, given, cursor?.lastTransactionId) : DedupWindow.fromLastId(DEDUP_WINDOW_SIZE, cursor?.lastTransactionId)
  if (!reading.ok) {
    // With nobody else to ask, a page without records would only make the cycle come back at once.
    if (reading.error.code === 'RATE_LIMITED' && options.providers.length === 1) throw reading.error
    context.log.warn('a provider failed', { provider: provider.name, operation: name, code: reading.error.code })
    const next = recordProviderFailure(run, state, name, provider, resumption.cursor, reading.error, now)
    run.storeDedupWindow(name, next, window)
    if (reading.error.code === 'RATE_LIMITED') {
      run.rateLimitedProviders.set(provider.name, next.providers[provider.name]!)
      return { batch: null, changes: [], state: next, isRateLimited: true }
    }
    run.rateLimitedProviders.delete(provider.name)
    return { batch: null, changes: [], state: next }
  }

  const { batch, failure, back } = reading.value
  const replayed = advanceReplay(batch, cursor, operation, provider)
  if (replayed.warning !== null) context.log.warn(REPLAY_WARNINGS[replayed.warning], { provider: provider.name, operation: name })
  if (back !== null) context.log.warn('what was read has changed since; reading it again', { provider: provider.name, operation: name })
  const items = window.takeNew(batch.items, operation.id)
  const landed: ProviderBatch<Item> = {
    ...batch, items, cursor: replayed.cursor, isComplete: replayed.cursor.metadata?.isComplete === true,
    stats: { fetched: batch.stats.fetched, deduplicated: batch.stats.fetched - items.length, yielded: items.length },
  }
  const settled = options.repair?.settle(keepCustomMetadata(batch, landed), back === null ? state.kept?.[name] : back.kept)
  // A deleted item may come back as it was, so the position must not name it as already landed.
  const hasDeleted = settled !== undefined && settled.changes.length > 0
  const lastTransactionId = hasDeleted && batch.fetchedItems.length === 0 ? '' : landed.cursor.lastTransactionId
  const cursors = mergeCursor(state.cursors, name, { ...landed.cursor, lastTransactionId, totalFetched: (cursor?.totalFetched ?? 0) + items.length })
  const isLast = Object.keys(options.operations).every((other) => cursors[other]?.metadata?.isComplete === true)
  const from = cursor?.metadata?.providerName
  const isSwitch = from !== undefined && from !== landed.cursor.metadata?.providerName
  if (isSwitch) context.log.warn('another provider goes on', { operation: name, from, to: provider.name, after: state.providers[from]?.lastError?.code })
  const health = failure === null ? recordSuccess(getHealth(state, provider.name), Math.max(0, now - askedAt)) : recordFailure(getHealth(state, provider.name), failure, now)
  const session = addBatch(state.session, name, landed.stats, isLast)
  const next: FailoverState = {
    cursors,
    providers: { ...state.providers, [provider.name]: health },
    session: isSwitch ? { ...session, switches: session.switches + 1 } : session,
    ...mergeRepairState(state, name, settled?.kept),
  }
  run.failedProviders.clear()
  run.rateLimitedProviders.delete(provider.name)
  if (failure !== null) run.failedProviders.add(provider.name)
  run.storeDedupWindow(name, next, window)
  return { batch: landed, changes: [...toChanges(items, operation.toChange, (item) => formatCursor(operation.cursors(item))), ...(settled?.changes ?? [])], state: next }
}

/** A window that is opened wider sets the position back, and with it goes what the provider said of the page. The items are landed nevertheless. */
function keepCustomMetadata<Item>({ cursor: { metadata: told } }: ProviderBatch<Item>, landed: ProviderBatch<Item>): ProviderBatch<Item> {
  const { cursor } = landed
  return told?.custom === undefined ? landed : { ...landed, cursor: { ...cursor, metadata: { ...cursor.metadata!, custom: told.custom } } }
}

const REPLAY_WARNINGS = {
  widened: 'the provider does not show what the one before ended with; reading from further back',
  gap: 'the provider never showed what the one before ended with; going on without it',
} as const

/** The first batch; with the failure that follows it, when the page broke in the middle. */
async function readFirstBatch<Item>(provider: Provider<Item>, request: StreamRequest<Item>, context: SyncContext): Promise<{ batch: ProviderBatch<Item>; failure: SyncError | null }> {
  const stream = provider.stream(request, context)
  const first = await stream.next()
  if (first.done === true) throw new SyncError('SOURCE_INVALID', `${provider.name}: the stream ended without a word on whether that is all.`)
  if (!first.value.ok) throw first.value.error
  const batch = first.value.value
  const second = batch.isTruncated ? await stream.next() : undefined
  await stream.return()
  return { batch, failure: second?.done === false && !second.value.ok ? second.value.error : null }
}

/** A failure is landed as a page without changes: a restart knows of it, and the next question goes to somebody else. */
function recordProviderFailure<Item>(run: FailoverRun, state: FailoverState, name: string, provider: Provider<Item>, asked: PaginationCursor | undefined, error: SyncError, now: number): FailoverState {
  const cursor = state.cursors[name]
  const fallback = error.code === 'CURSOR_REJECTED' && asked?.type === 'pageToken' && cursor !== undefined ? dropPageToken(cursor, provider) : null
  // A token that has run out is no failure of the provider, as long as there is another way to say where it stood.
  if (fallback !== null) return { ...state, cursors: mergeCursor(state.cursors, name, fallback) }
  run.failedProviders.add(provider.name)
  return { ...state, providers: { ...state.providers, [provider.name]: recordFailure(getHealth(state, provider.name), error, now) } }
}

/** Null when nothing else is kept that the provider takes, or it came to the same place before. */
function dropPageToken<Item>(cursor: CursorState, { supports }: Provider<Item>): CursorState | null {
  const primary = (cursor.alternatives ?? []).find(({ type }) => type !== 'pageToken' && supports.includes(type))
  if (primary === undefined || isSameCursor(primary, cursor.metadata?.fallback)) return null
  const { custom: _, ...metadata } = cursor.metadata!
  const reached = isComparableCursor(primary) ? metadata.reached?.[primary.type] : undefined
  const isBack = reached !== undefined && (primary.value as number) < reached && metadata.replay === undefined
  return {
    ...cursor, primary,
    metadata: { ...metadata, providerName: metadata.providerName, updatedAt: metadata.updatedAt, fallback: primary, ...(isBack && { replay: { until: { ...primary, value: reached } as ComparableCursor, from: primary as ComparableCursor, seek: null, widened: 0 } }) },
  }
}

function mergeRepairState(state: FailoverState, name: string, kept: JsonValue | undefined): Pick<FailoverState, 'kept'> {
  if (kept === undefined) return state.kept === undefined ? {} : { kept: state.kept }
  return { kept: { ...state.kept, [name]: kept } }
}

/** What a row's envelope says of where it stands. */
function formatCursor(cursors: readonly PaginationCursor[]): string {
  const [first] = cursors
  return first === undefined ? '' : first.type === 'timestamp' ? new Date(first.value).toISOString() : String(first.value)
}

function checkOptions<Item>({ providers, operations, preferred, deadlineMs }: FailoverOptions<Item>): void {
  const names = providers.map(({ name }) => name)
  if (names.length === 0) throw new SyncError('SYNC_INVALID', 'failover: `providers` is empty.')
  if (new Set(names).size < names.length) throw new SyncError('SYNC_INVALID', 'failover: two providers have one name, though their cursors are kept under it.')
  if (Object.keys(operations).length === 0) throw new SyncError('SYNC_INVALID', 'failover: `operations` is empty.')
  if (preferred !== undefined && !names.includes(preferred)) throw new SyncError('SYNC_INVALID', 'failover: `preferred` is not one of the providers.')
  if (deadlineMs !== undefined) requireNumber('failover', 'deadlineMs', deadlineMs, 1)
}
