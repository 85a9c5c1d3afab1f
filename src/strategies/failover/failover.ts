import {
  SyncError,
  type Change,
  type Execute,
  type JsonValue,
  type Pacing,
  type SyncContext,
} from '../../contract/index.ts'
import { requireMode, requireNumber } from '../kit/strategy-errors.ts'
import { toChanges } from '../kit/to-changes.ts'
import { recordFailure, recordSuccess } from './circuit-breaker.ts'
import { chooseProvider } from './choose-provider.ts'
import {
  isComparableCursor,
  isSameCursor,
  mergeCursor,
  requireMetadata,
  type CursorState,
  type PaginationCursor,
  type ComparableCursor,
} from './cursors.ts'
import { withDeadline } from './deadline.ts'
import { DedupWindow } from './dedup-window.ts'
import type { ProviderBatch, ProviderOperation, Provider, StreamRequest } from './provider.ts'
import { advanceReplay } from './replay.ts'
import { buildRepairRequest, buildStreamRequest } from './stream-request.ts'
import { err, ok, type FailoverResult } from './result.ts'
import { DEDUP_WINDOW_SIZE, FailoverRun } from './failover-run.ts'
import { addBatch } from './import-session.ts'
import { getHealth, loadState, type FailoverState } from './state.ts'

/** The providers and operations of `failover`. */
export interface FailoverOptions<Item> {
  /** In order of preference while their scores are equal. */
  readonly providers: readonly Provider<Item>[]
  /** Read one after the other, each with its own cursor. */
  readonly operations: Readonly<Record<string, ProviderOperation<Item>>>
  /** Asked first unless its circuit is open. */
  readonly preferred?: string
  /** How long one provider may take for a page before the next one is asked. */
  readonly deadlineMs?: number
  readonly repair?: HistoryRepair<Item>
}

/** For sources whose history can change, such as a blockchain. Its `kept` value is part of the state. */
export interface HistoryRepair<Item> {
  /** Called before every page: returns where to re-read from when history has changed. */
  check(
    request: { readonly operation: string; readonly provider: string; readonly kept: JsonValue | undefined },
    context: SyncContext,
  ): Promise<{ readonly from: ComparableCursor; readonly kept: JsonValue } | null>
  /** Called after each batch, with all its items. */
  settle(
    batch: ProviderBatch<Item>,
    kept: JsonValue | undefined,
  ): { readonly changes: readonly Change[]; readonly kept: JsonValue | undefined }
}

/** Reads one dataset from several providers. Use it as `execute`. */
export interface Failover<Item> extends Execute<FailoverState> {
  /**
   * The same data as a stream of batches, for a program that commits them itself: store `state` with each batch and
   * resume from it. Expected failures are yielded; the error for all providers ends the stream.
   */
  stream(
    state: FailoverState | undefined,
    context: SyncContext,
  ): AsyncGenerator<FailoverResult<ImportBatch<Item>>, void>
}

/** A batch with its changes and the state to store with it. */
export interface ImportBatch<Item> extends ProviderBatch<Item> {
  readonly changes: readonly Change[]
  readonly state: FailoverState
}

const DEADLINE_MS = 30_000

/**
 * For a data set that several providers offer: when one fails, the next continues from a cursor that it supports,
 * starting slightly before it. Duplicates are committed once.
 *
 * ```mermaid
 * stateDiagram-v2
 *   [*] --> choose
 *   choose --> read: best provider that supports the cursor
 *   read --> landed: batch
 *   read --> choose: failure recorded, next provider
 *   landed --> read: same provider, same cursor
 *   landed --> [*]: every operation complete
 *   choose --> failed: no provider left
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
  // Kept only for one run of a cycle, which owns exactly one pacer. Losing it costs only time.
  const runs = new WeakMap<Pacing, FailoverRun>()
  const step = (state: FailoverState | undefined, context: SyncContext): Promise<ReadStep<Item>> => {
    const run = runs.get(context.pacer) ?? new FailoverRun()
    runs.set(context.pacer, run)
    return readNextBatch(options, run, state, context)
  }
  const execute = async (
    state: FailoverState | undefined,
    context: SyncContext,
  ): ReturnType<Execute<FailoverState>> => {
    requireMode('failover', 'incremental', context, 'a replace cycle discards the provider cursors at its end')
    const { batch, changes, state: nextState } = await step(state, context)
    const hasMore = batch === null || nextState.session.status === 'started'
    return {
      changes: [...changes],
      hasMore,
      nextState,
      ...(!hasMore &&
        nextState.session.switches > 0 && { endReason: formatEndReason(nextState.session.switches, batch.cursor) }),
    }
  }
  return Object.assign(execute, {
    stream: (state: FailoverState | undefined, context: SyncContext) => streamBatches(step, state, context),
  })
}

/** The end reason in the sync's status. */
function formatEndReason(switches: number, { metadata }: CursorState): string {
  const reason = `switched_to_${metadata?.providerName.toLowerCase().replaceAll(/[^a-z0-9]+/g, '_') ?? ''}`
  return switches === 1 && reason.length <= 32 ? reason : `switched_${switches}_times`
}

async function* streamBatches<Item>(
  step: (state: FailoverState | undefined, context: SyncContext) => Promise<ReadStep<Item>>,
  first: FailoverState | undefined,
  context: SyncContext,
): AsyncGenerator<FailoverResult<ImportBatch<Item>>, void> {
  for (let state = first; ;) {
    let result: ReadStep<Item>
    try {
      result = await step(state, context)
    } catch (thrown) {
      yield err(thrown)
      return
    }
    state = result.state
    if (result.batch === null) continue
    yield ok({ ...result.batch, changes: result.changes, state })
    if (state.session.status === 'completed') return
  }
}

/** The outcome of one request to one provider. */
interface ReadStep<Item> {
  /** Null when the request failed. The failure is in the state. */
  readonly batch: ProviderBatch<Item> | null
  readonly changes: readonly Change[]
  readonly state: FailoverState
  /** The provider returned a rate limit. */
  readonly isRateLimited?: true
}

/** A rate-limited provider costs no page: the next one is asked at once. When all are rate-limited, the step fails. */
async function readNextBatch<Item>(
  options: FailoverOptions<Item>,
  run: FailoverRun,
  given: FailoverState | undefined,
  context: SyncContext,
): Promise<ReadStep<Item>> {
  for (let state = given; ;) {
    const step = await attemptRead(options, run, state, context)
    if (step.isRateLimited !== true) return step
    state = step.state
  }
}

async function attemptRead<Item>(
  options: FailoverOptions<Item>,
  run: FailoverRun,
  given: FailoverState | undefined,
  context: SyncContext,
): Promise<ReadStep<Item>> {
  const state = run.withRateLimits(loadState(given, context.cycle))
  const [name, operation] =
    Object.entries(options.operations).find(([key]) => state.cursors[key]?.metadata?.isComplete !== true) ?? []
  if (name === undefined || operation === undefined)
    throw new SyncError(
      'CURSOR_REJECTED',
      'failover: every operation of the stored state is complete, but its cycle is not.',
    )
  const isStarted = state.session.operations[name] !== undefined
  const choice = chooseProvider({
    providers: options.providers,
    preferred: options.preferred,
    operation: name,
    state,
    failedProviders: run.failedProviders,
    isStarted,
    now: context.clock.now(),
  })
  if (choice instanceof SyncError) {
    run.failedProviders.clear()
    throw choice
  }
  const { provider, resumption } = choice
  const cursor = state.cursors[name]
  const startedAt = context.clock.now()
  const reading = await withDeadline(options.deadlineMs ?? DEADLINE_MS, provider.name, context, async (bounded) => {
    const rewind =
      cursor === undefined
        ? null
        : ((await options.repair?.check(
            { operation: name, provider: provider.name, kept: state.kept?.[name] },
            bounded,
          )) ?? null)
    const request =
      cursor === undefined || rewind === null
        ? buildStreamRequest(name, operation, cursor, resumption)
        : buildRepairRequest(rewind.from, name, operation, cursor, provider.name)
    const first = await readFirstBatch(provider, request, bounded)
    // If history can change, items are committed only together with the repair state that covers them.
    if (options.repair !== undefined && first.failure !== null) throw first.failure
    return { ...first, rewind }
  })
  const now = context.clock.now()
  // If history can change, an item may return after another took its key: only a window of one page is safe.
  const window =
    options.repair === undefined
      ? run.getDedupWindow(name, given, cursor?.lastTransactionId)
      : DedupWindow.fromLastId(DEDUP_WINDOW_SIZE, cursor?.lastTransactionId)
  if (!reading.ok) {
    // With a single provider, an empty page would only restart the cycle at once.
    if (reading.error.code === 'RATE_LIMITED' && options.providers.length === 1) throw reading.error
    context.log.warn('a provider failed', { provider: provider.name, operation: name, code: reading.error.code })
    const next = recordProviderFailure(run, state, name, provider, resumption.cursor, reading.error, now)
    run.storeDedupWindow(name, next, window)
    if (reading.error.code === 'RATE_LIMITED') {
      run.rateLimitedProviders.set(provider.name, getHealth(next, provider.name))
      return { batch: null, changes: [], state: next, isRateLimited: true }
    }
    run.rateLimitedProviders.delete(provider.name)
    return { batch: null, changes: [], state: next }
  }

  const { batch, failure, rewind } = reading.value
  const replayed = advanceReplay(batch, cursor, operation, provider)
  if (replayed.warning !== null)
    context.log.warn(REPLAY_WARNINGS[replayed.warning], { provider: provider.name, operation: name })
  if (rewind !== null)
    context.log.warn('history has changed since it was read; reading it again', {
      provider: provider.name,
      operation: name,
    })
  const items = window.takeNew(batch.items, operation.id)
  const committed: ProviderBatch<Item> = {
    ...batch,
    items,
    cursor: replayed.cursor,
    isComplete: replayed.cursor.metadata?.isComplete === true,
    stats: { fetched: batch.stats.fetched, deduplicated: batch.stats.fetched - items.length, yielded: items.length },
  }
  const settled = options.repair?.settle(
    keepCustomMetadata(batch, committed),
    rewind === null ? state.kept?.[name] : rewind.kept,
  )
  // A deleted item may return unchanged, so the cursor must not list it as already committed.
  const hasDeleted = settled !== undefined && settled.changes.length > 0
  const lastTransactionId = hasDeleted && batch.fetchedItems.length === 0 ? '' : committed.cursor.lastTransactionId
  const cursors = mergeCursor(state.cursors, name, {
    ...committed.cursor,
    lastTransactionId,
    totalFetched: (cursor?.totalFetched ?? 0) + items.length,
  })
  const isLast = Object.keys(options.operations).every((other) => cursors[other]?.metadata?.isComplete === true)
  const from = cursor?.metadata?.providerName
  const isSwitch = from !== undefined && from !== committed.cursor.metadata?.providerName
  if (isSwitch)
    context.log.warn('switched to another provider', {
      operation: name,
      from,
      to: provider.name,
      after: state.providers[from]?.lastError?.code,
    })
  const health =
    failure === null
      ? recordSuccess(getHealth(state, provider.name), Math.max(0, now - startedAt))
      : recordFailure(getHealth(state, provider.name), failure, now)
  const session = addBatch(state.session, name, committed.stats, isLast)
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
  return {
    batch: committed,
    changes: [
      ...toChanges(items, operation.toChange, (item) => formatCursor(operation.cursors(item))),
      ...(settled?.changes ?? []),
    ],
    state: next,
  }
}

/**
 * Widening the window moves the cursor back and drops the provider's custom value. The items are committed
 * nevertheless.
 */
function keepCustomMetadata<Item>(
  { cursor: { metadata } }: ProviderBatch<Item>,
  committed: ProviderBatch<Item>,
): ProviderBatch<Item> {
  const { cursor } = committed
  return metadata?.custom === undefined
    ? committed
    : { ...committed, cursor: { ...cursor, metadata: { ...requireMetadata(cursor), custom: metadata.custom } } }
}

const REPLAY_WARNINGS = {
  widened: 'the provider does not return the last item of the previous provider; reading from further back',
  gap: 'the provider never returned the last item of the previous provider; continuing without it',
} as const

/** Returns the first batch and, if the page was truncated, the failure that follows it. */
async function readFirstBatch<Item>(
  provider: Provider<Item>,
  request: StreamRequest<Item>,
  context: SyncContext,
): Promise<{ batch: ProviderBatch<Item>; failure: SyncError | null }> {
  const stream = provider.stream(request, context)
  const first = await stream.next()
  if (first.done === true)
    throw new SyncError('SOURCE_INVALID', `${provider.name}: the stream ended without a complete batch.`)
  if (!first.value.ok) throw first.value.error
  const batch = first.value.value
  const second = batch.isTruncated ? await stream.next() : undefined
  await stream.return()
  return { batch, failure: second?.done === false && !second.value.ok ? second.value.error : null }
}

/**
 * A failure is committed as a page without changes: it survives a restart, and the next request goes to another
 * provider.
 */
function recordProviderFailure<Item>(
  run: FailoverRun,
  state: FailoverState,
  name: string,
  provider: Provider<Item>,
  requested: PaginationCursor | undefined,
  error: SyncError,
  now: number,
): FailoverState {
  const cursor = state.cursors[name]
  const fallback =
    error.code === 'CURSOR_REJECTED' && requested?.type === 'pageToken' && cursor !== undefined
      ? dropPageToken(cursor, provider)
      : null
  // An expired token is not a failure of the provider as long as another cursor is available.
  if (fallback !== null) return { ...state, cursors: mergeCursor(state.cursors, name, fallback) }
  run.failedProviders.add(provider.name)
  return {
    ...state,
    providers: { ...state.providers, [provider.name]: recordFailure(getHealth(state, provider.name), error, now) },
  }
}

/** Returns null if the provider supports no other stored cursor, or already fell back to it. */
function dropPageToken<Item>(cursor: CursorState, { supports }: Provider<Item>): CursorState | null {
  const primary = (cursor.alternatives ?? []).find(({ type }) => type !== 'pageToken' && supports.includes(type))
  if (primary === undefined || isSameCursor(primary, cursor.metadata?.fallback)) return null
  const { custom: _, ...metadata } = requireMetadata(cursor)
  const reached = isComparableCursor(primary) ? metadata.reached?.[primary.type] : undefined
  const isBack = reached !== undefined && (primary.value as number) < reached && metadata.replay === undefined
  return {
    ...cursor,
    primary,
    metadata: {
      ...metadata,
      providerName: metadata.providerName,
      updatedAt: metadata.updatedAt,
      fallback: primary,
      ...(isBack && {
        replay: {
          until: { ...primary, value: reached } as ComparableCursor,
          from: primary as ComparableCursor,
          seek: null,
          widened: 0,
        },
      }),
    },
  }
}

function mergeRepairState(
  state: FailoverState,
  name: string,
  kept: JsonValue | undefined,
): Pick<FailoverState, 'kept'> {
  if (kept === undefined) return state.kept === undefined ? {} : { kept: state.kept }
  return { kept: { ...state.kept, [name]: kept } }
}

/** The cursor in a row's envelope. */
function formatCursor(cursors: readonly PaginationCursor[]): string {
  const [first] = cursors
  return first === undefined
    ? ''
    : first.type === 'timestamp'
      ? new Date(first.value).toISOString()
      : String(first.value)
}

function checkOptions<Item>({ providers, operations, preferred, deadlineMs }: FailoverOptions<Item>): void {
  const names = providers.map(({ name }) => name)
  if (names.length === 0) throw new SyncError('SYNC_INVALID', 'failover: `providers` is empty.')
  if (new Set(names).size < names.length)
    throw new SyncError(
      'SYNC_INVALID',
      'failover: two providers have the same name. Give each a unique name: cursors are stored under it.',
    )
  if (Object.keys(operations).length === 0) throw new SyncError('SYNC_INVALID', 'failover: `operations` is empty.')
  if (preferred !== undefined && !names.includes(preferred))
    throw new SyncError('SYNC_INVALID', 'failover: `preferred` is not the name of a provider.')
  if (deadlineMs !== undefined) requireNumber('failover', 'deadlineMs', deadlineMs, 1)
}
