import {
  isSyncError,
  SyncError,
  type Change,
  type Execute,
  type JsonValue,
  type Mode,
  type Page,
  type PartitionReader,
  type RowScope,
  type SyncContext,
  type TableShape,
} from '../contract/index.ts'
import { canonicalizeInstant } from '../values/instant.ts'
import { overlayPartitions } from '../values/partition-overlay.ts'
import { required } from '../values/required.ts'
import { hashText } from './kit/hash.ts'
import { lowerHorizon, measureRequest, pinHorizon, type ServerClock } from './kit/horizon.ts'
import { formatIso } from './kit/instants.ts'
import { decideListStep, INITIAL_TALLY, isListTally, type ListTally } from './kit/list-end.ts'
import {
  completePartition,
  listPartition,
  movePartition,
  parsePartitionRecord,
  restartPartition,
  type PartitionRecord,
} from './kit/partition-record.ts'
import { requireNumber, sourceInvalidError, stateRejectedError } from './kit/strategy-errors.ts'

/** Describes how to read a data set that is split into partitions. */
export interface PartitionedOptions<Value extends JsonValue, State> {
  /** Lists the partitions, page by page. `cursor` is undefined on the first call. */
  list(cursor: JsonValue | undefined, context: SyncContext): Promise<PartitionList<Value>>
  /**
   * Reads one page of one partition. `state` is undefined when the partition was never read (or, in replace mode, in
   * this cycle). Any other strategy can read a partition: return the page of its `execute`.
   */
  read(partition: Partition<Value>, state: State | undefined, context: SyncContext): Promise<PartitionPage<State>>
  /** Pages of different partitions that are requested at the same time, within the rate budget. Default 1. */
  concurrency?: number
  /**
   * Above this number of partitions, incremental syncs keep one global cursor, if `globalState` is set. Default 10,000.
   */
  partitionsMax?: number
  /** The state to read a partition with from a time on, RFC 3339. All of its changes since then must follow. */
  globalState?(since: string): State
  /**
   * The records of a partition, by the value of a field, for `tidemark backfill --partition`: without it, such a read
   * deletes nothing.
   */
  rows?: PartitionRows<Value>
  /** How long a new partition may be missing from the list, in ms. Default 0. */
  lagMs?: number
}

/** How the records of a partition are recognized in the copy. */
export interface PartitionRows<Value> {
  /** The field of every record that names its partition. */
  readonly field: string
  value(partition: Partition<Value>): string | number
  /** See RowScope.isFixed. */
  readonly isFixed?: boolean
}

/** A part of a data set that is read by itself: a parent of child records, a window of time, a range of keys. */
export interface Partition<Value = JsonValue> {
  /** Unique among the partitions of the sync, at most 1,024 bytes. Its state is stored under this key. */
  readonly key: string
  /** Whatever `read` needs to know of the partition. Stored with its state. */
  readonly value: Value
}

/** A page of the list of partitions. */
export interface PartitionList<Value> extends ServerClock {
  readonly partitions: readonly Partition<Value>[]
  /** The cursor of the next page; absent or null on the last one. */
  readonly next?: JsonValue | undefined
  /** The number of all partitions, if the source counts them. */
  readonly total?: number | null | undefined
  /** Partitions on a full page. A full page that claims to be the last is requested again. */
  readonly limit?: number | undefined
}

/** A page of one partition. */
export type PartitionPage<State> = Pick<
  Page<State>,
  'changes' | 'hasMore' | 'nextState' | 'tidemark' | 'isLog' | 'tables'
>

/** The progress of the cycle. The states of the partitions are not part of it; see `Page.partitions`. */
export interface PartitionedState {
  /** Absent between cycles. */
  readonly cycle?: PartitionedCycle
  /** The global cursor: all changes before this time have been read from every partition. */
  readonly since?: string
  /**
   * Taken over from another tool: partitions without a state of their own are read from this time on. Absent after the
   * first complete cycle, so that later partitions are read from their beginning.
   */
  readonly imported?: string
}

/** The progress of one cycle over its partitions. */
export interface PartitionedCycle {
  readonly id: number
  /** Partitions that did not exist at this time may be missing from the list. */
  readonly untilMs: number
  /** Distinct partitions that were listed. */
  readonly listed: number
  /** Present while the partitions are listed. */
  readonly list?: { readonly cursor?: JsonValue; readonly tally: ListTally }
  /** Partitions that have been read to their end. */
  readonly done: number
  /** Every partition up to this key has been read or is open. */
  readonly after?: string
  readonly open: readonly OpenPartition[]
  /** The minimum of the tidemarks of the partitions that are done; null if one of them makes no claim. */
  readonly tidemark?: string | null
  /** A partition did not state its tidemark. */
  readonly isUnstated?: true
}

interface OpenPartition {
  readonly key: string
  /** Identifies its state, so that the engine recognizes a partition that loops or stalls. */
  readonly mark?: number
  /** Consecutive pages without changes. */
  readonly empty?: number
  /** How often it began again in this cycle, because a cursor had expired: the same states are then no loop. */
  readonly restarts?: number
  /** Its last request failed while others succeeded. */
  readonly failed?: true
}

const CONCURRENCY_MAX = 32
const EMPTY_PAGES_MAX = 1_000
/** Restarts of a partition in a cycle; see OpenPartition. */
const RESTARTS_MAX = 3
/** Partitions that vanished from the list are removed in steps of this many. */
const REMOVALS_PER_PAGE = 1_000

/**
 * For data that is read in parts: the children of parents, the windows of a long time range, the key ranges of a table.
 * A cycle lists the partitions, then reads each to its end. Every partition has a state of its own, stored as a row of
 * the registry with the page that moved it, so their number is not bounded by the size of a state.
 *
 *   list ──no more──▶ read the partitions in key order, `concurrency` at a time ──▶ end of the cycle
 *
 * A crash loses at most the page that was not committed. The tidemark is the minimum over the partitions, and a replace
 * cycle sweeps only after all of them have been read.
 *
 * ```ts
 * import { partitioned, type Change } from 'tidemark'
 *
 * type Project = { id: string; name: string }
 * type Task = { id: string; title: string; updatedAt: string }
 *
 * export const tasks = partitioned<Project, { since: string }>({
 *   list: async (cursor, { fetch }) => {
 *     const response = await fetch(`https://work.example/projects?after=${String(cursor ?? '')}`)
 *     const { projects, next } = (await response.json()) as { projects: Project[]; next?: string }
 *     return { partitions: projects.map((project) => ({ key: project.id, value: project })), next }
 *   },
 *   read: async ({ value: project }, state, { fetch }) => {
 *     const response = await fetch(`https://work.example/projects/${project.id}/tasks?since=${state?.since ?? ''}`)
 *     const { items, hasMore, until } = (await response.json()) as { items: Task[]; hasMore: boolean; until: string }
 *     const changes = items.map((task): Change => ({ type: 'upsert', key: task.id, record: task, upstreamUpdatedAt: task.updatedAt }))
 *     return { changes, hasMore, nextState: { since: until }, ...(!hasMore && { tidemark: until }) }
 *   },
 *   concurrency: 4,
 * })
 * ```
 */
export function partitioned<Value extends JsonValue, State = JsonValue>(
  options: PartitionedOptions<Value, State>,
): Execute<PartitionedState> {
  const { concurrency = 1, partitionsMax = 10_000, lagMs = 0 } = options
  requireNumber('partitioned', 'concurrency', concurrency, 1)
  if (!Number.isInteger(concurrency) || concurrency > CONCURRENCY_MAX)
    throw new SyncError(
      'SYNC_INVALID',
      `partitioned: \`concurrency\` is ${concurrency}; it must be a whole number of at most ${CONCURRENCY_MAX}.`,
    )
  requireNumber('partitioned', 'partitionsMax', partitionsMax, 0)
  requireNumber('partitioned', 'lagMs', lagMs, 0)

  const create =
    (selection?: PartitionSelection): Execute<PartitionedState> =>
    async (stored, context) => {
      const state = stored === undefined ? {} : readState(stored)
      const cycle = state.cycle ?? beginCycle(context, lagMs)
      const { since, imported } = state
      const facts = { context, cycle, since, imported, concurrency, partitionsMax, lagMs, selection }
      return new PartitionedRun(options, facts).readPage()
    }
  return Object.assign(create(), {
    selectPartitions: (keys: readonly string[], mode: Mode) => create({ keys: new Set(keys), mode }),
    ...(lagMs > 0 && { lagMs }),
  })
}

/** Single partitions, read from their start as cycles of this mode would. */
interface PartitionSelection {
  readonly keys: ReadonlySet<string>
  readonly mode: Mode
}

function beginCycle({ cycle }: SyncContext, lagMs: number): PartitionedCycle {
  const untilMs = pinHorizon('partitioned', cycle, lagMs, undefined)
  return { id: cycle.id, untilMs, listed: 0, list: { tally: INITIAL_TALLY }, done: 0, open: [] }
}

interface RunFacts {
  readonly context: SyncContext
  readonly cycle: PartitionedCycle
  readonly since: string | undefined
  readonly imported: string | undefined
  readonly concurrency: number
  readonly partitionsMax: number
  readonly lagMs: number
  readonly selection: PartitionSelection | undefined
}

/** One call of the strategy. */
class PartitionedRun<Value extends JsonValue, State> {
  readonly #options: PartitionedOptions<Value, State>
  readonly #facts: RunFacts
  readonly #context: SyncContext
  /** The partitions with the writes of this call. */
  readonly #partitions: PartitionReader
  readonly #writes = new Map<string, JsonValue | null>()
  #cycle: PartitionedCycle

  constructor(options: PartitionedOptions<Value, State>, facts: RunFacts) {
    this.#options = options
    this.#facts = facts
    this.#context = facts.context
    this.#cycle = facts.cycle
    this.#partitions = overlayPartitions(facts.context.partitions, this.#writes)
  }

  async readPage(): Promise<Page<PartitionedState>> {
    const isListing = this.#cycle.list !== undefined
    if (isListing) {
      await this.#listPartitions()
      if (this.#cycle.list !== undefined) return this.#toPage([], true)
      this.#assertAllListed()
      await this.#openPartitions()
    }
    const pages = await this.#readPartitions(isListing)
    await this.#openPartitions()
    const isEnd = this.#cycle.open.length === 0 && !this.#hasRemovals
    if (isEnd) this.#assertAllRead()
    const rows = isEnd ? await this.#describeRows() : undefined
    return { ...this.#toPage(pages, !isEnd), ...(rows !== undefined && { rows }) }
  }

  // ── the list ─────────────────────────────────────────────────────────────────────────────────────────────────────

  async #listPartitions(): Promise<void> {
    const { id, list, untilMs } = this.#cycle
    const { cursor, tally } = required(list, 'list of the partitions')
    const { answer, tookMs } = await measureRequest(this.#context, () => this.#options.list(cursor, this.#context))
    const { selection } = this.#facts
    const { total, limit } = answer
    const partitions =
      selection === undefined ? answer.partitions : answer.partitions.filter(({ key }) => selection.keys.has(key))
    const next = answer.next ?? undefined
    const keys = [...new Set(partitions.map(({ key }) => key))]
    const known = await this.#getRecords(keys)
    let { listed } = this.#cycle
    for (const { key, value } of partitions) {
      if (typeof key !== 'string' || key === '') throw sourceInvalidError('A partition in the list has no key.')
      const record = this.#writes.has(key) ? undefined : known.get(key)
      if (!this.#writes.has(key) && record?.listed !== id) listed++
      const { mode } = this.#context.cycle
      this.#write(key, listPartition(record ?? known.get(key), { value, cycle: id, mode }))
    }
    const count = new Set(answer.partitions.map(({ key }) => key)).size
    const page = { count, mark: answer.partitions.at(-1)?.key ?? '', isLast: next === undefined, total, limit }
    const step = decideListStep(tally, page, this.#context.clock.now())
    const { list: _, ...rest } = this.#cycle
    const requested = cursor === undefined ? {} : { cursor }
    this.#cycle = {
      ...rest,
      listed,
      untilMs: lowerHorizon(untilMs, this.#facts.lagMs, answer, tookMs),
      ...(step.kind === 'again' && { list: { ...requested, tally: step.tally } }),
      ...(step.kind === 'next' && { list: { cursor: required(next, 'cursor of the list'), tally: step.tally } }),
    }
  }

  // ── the partitions ───────────────────────────────────────────────────────────────────────────────────────────────

  #hasRemovals = false

  /** Opens the next partitions in key order, and removes those that the list no longer has. */
  async #openPartitions(): Promise<void> {
    const { concurrency } = this.#facts
    const open = [...this.#cycle.open]
    let { after } = this.#cycle
    let removals = 0
    let limit = concurrency
    this.#hasRemovals = false
    while (open.length < concurrency) {
      const found = await this.#partitions.list({ ...(after !== undefined && { after }), limit })
      for (const { key, state } of found) {
        if (open.length === concurrency) break
        after = key
        if (parsePartitionRecord(state).listed === this.#cycle.id) open.push({ key })
        else {
          this.#writes.set(key, null)
          removals++
        }
      }
      if (found.length < limit) break
      this.#hasRemovals = removals >= REMOVALS_PER_PAGE
      if (this.#hasRemovals) break
      if (removals > 0) limit = REMOVALS_PER_PAGE / 10
    }
    this.#cycle = { ...this.#cycle, ...(after !== undefined && { after }), open }
  }

  /** Returns the pages that succeeded. Throws if none did, unless the list would have to be requested again. */
  async #readPartitions(hasListed: boolean): Promise<PartitionPage<State>[]> {
    const { open } = this.#cycle
    // Partitions that failed are read again before any other.
    const failed = open.filter((partition) => partition.failed === true)
    const requested = failed.length > 0 ? failed : open
    const records = await this.#getRecords(requested.map(({ key }) => key))
    const settled = await Promise.allSettled(
      requested.map(async (partition) => {
        const record = records.get(partition.key)
        if (record?.listed !== this.#cycle.id)
          throw stateRejectedError('partitioned', 'the row of an unfinished partition is gone')
        return this.#readPartition(partition, record)
      }),
    )
    this.#context.signal.throwIfAborted()
    const failures = settled.filter((result) => result.status === 'rejected')
    const [failure] = failures
    if (failure !== undefined && failures.length === settled.length && !hasListed) throw failure.reason
    const remaining = new Map(open.map((partition) => [partition.key, partition]))
    const pages: PartitionPage<State>[] = []
    for (const [index, result] of settled.entries()) {
      const partition = required(requested[index], 'partition of a page')
      if (result.status === 'rejected') {
        remaining.set(partition.key, { ...partition, failed: true })
        continue
      }
      pages.push(result.value.page)
      const moved = this.#recordPage(partition, result.value)
      if (moved === null) remaining.delete(partition.key)
      else remaining.set(partition.key, moved)
    }
    this.#cycle = { ...this.#cycle, open: [...remaining.values()] }
    return pages
  }

  /** A selection is a replace cycle of its own, whose partitions are read as the sync reads them. */
  get #innerContext(): SyncContext {
    const { context, selection } = this.#facts
    return selection === undefined ? context : { ...context, cycle: { ...context.cycle, mode: selection.mode } }
  }

  async #readPartition(
    { key, restarts = 0 }: OpenPartition,
    stored: PartitionRecord<Value, State>,
  ): Promise<ReadPartition<Value, State>> {
    const partition = { key, value: stored.value }
    const state = this.#stateOf(stored)
    try {
      const page = await this.#options.read(partition, state, this.#innerContext)
      return { record: stored, state, restarts, page: checkPage(key, page) }
    } catch (error) {
      // A cursor between two pages may have expired; the state before the first page has not been replaced.
      if (stored.isPartial !== true || !isSyncError(error) || error.code !== 'CURSOR_REJECTED') throw error
      if (restarts >= RESTARTS_MAX) throw error
      const record = restartPartition(stored)
      const start = this.#stateOf(record)
      const page = await this.#options.read(partition, start, this.#innerContext)
      return { record, state: start, restarts: restarts + 1, page: checkPage(key, page) }
    }
  }

  #stateOf({ state, done }: PartitionRecord<Value, State>): State | undefined {
    const { since, imported } = this.#facts
    const { globalState } = this.#options
    if (state !== undefined || this.#context.cycle.mode === 'replace') return state
    if (imported !== undefined && globalState !== undefined) return globalState(imported)
    return done === undefined || since === undefined || globalState === undefined ? undefined : globalState(since)
  }

  /** Returns the partition if it has more pages, else null. */
  #recordPage(
    { key, empty = 0 }: OpenPartition,
    { record, state, restarts, page }: ReadPartition<Value, State>,
  ): OpenPartition | null {
    if (page.hasMore) {
      const next = page.nextState as State
      this.#write(key, movePartition(record, state, next))
      const isEmpty = page.changes.length === 0
      if (isEmpty && empty >= EMPTY_PAGES_MAX)
        throw new SyncError(
          'EMPTY_PAGES',
          `A partition returned ${empty + 1} empty pages in a row, each with \`hasMore: true\`.`,
        )
      return {
        key,
        mark: hashText(JSON.stringify(next)),
        ...(isEmpty && { empty: empty + 1 }),
        ...(restarts > 0 && { restarts }),
      }
    }
    const keepsState = this.#context.cycle.mode === 'incremental' && !this.#hasGlobalCursor
    this.#write(key, completePartition(record, keepsState ? (page.nextState ?? state) : undefined))
    this.#cycle = { ...withTidemark(this.#cycle, page.tidemark), done: this.#cycle.done + 1 }
    return null
  }

  get #hasGlobalCursor(): boolean {
    return (
      this.#options.globalState !== undefined &&
      this.#context.cycle.mode === 'incremental' &&
      this.#cycle.listed > this.#facts.partitionsMax
    )
  }

  /** A row that was removed or restored by hand during the cycle would be a partition that the cycle skips. */
  #assertAllRead(): void {
    const { listed, done } = this.#cycle
    if (done !== listed)
      throw stateRejectedError('partitioned', `${listed} partitions were listed, but ${done} were found and read`)
  }

  /** A partition that vanished: its rows are those of a complete cycle. */
  #assertAllListed(): void {
    const { selection } = this.#facts
    const { listed } = this.#cycle
    if (selection === undefined || listed === selection.keys.size) return
    throw new SyncError(
      'ARGUMENT_INVALID',
      `The source lists ${listed} of the ${selection.keys.size} partitions ${JSON.stringify([...selection.keys])}. Check their keys; a complete cycle deletes the rows of partitions that no longer exist.`,
    )
  }

  async #describeRows(): Promise<RowScope | undefined> {
    const { rows } = this.#options
    const { selection } = this.#facts
    if (rows === undefined || selection === undefined) return undefined
    const records = await this.#getRecords([...selection.keys])
    const values = [...records].map(([key, { value }]) => rows.value({ key, value }))
    return { field: rows.field, values, ...(rows.isFixed === true && { isFixed: true }) }
  }

  // ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────

  #toPage(pages: readonly PartitionPage<State>[], hasMore: boolean): Page<PartitionedState> {
    const { since, imported } = this.#facts
    const kept = { ...(since !== undefined && { since }), ...(imported !== undefined && { imported }) }
    const isLog = pages.some((page) => page.isLog === true)
    const tables = mergeTables(pages)
    return {
      changes: pages.flatMap(({ changes }): Change[] => changes),
      hasMore,
      nextState: hasMore ? { ...kept, cycle: this.#cycle } : this.#finalState(),
      partitions: [...this.#writes].map(([key, state]) => ({ key, state })),
      ...(isLog && { isLog }),
      ...(tables.length > 0 && { tables }),
      ...(!hasMore && { tidemark: this.#finalTidemark() }),
    }
  }

  #finalState(): PartitionedState {
    if (!this.#hasGlobalCursor) return {}
    const { tidemark, isUnstated, untilMs } = this.#cycle
    // Without a claim, the changes since the last cycle are read again.
    if (tidemark === null) return this.#facts.since === undefined ? {} : { since: this.#facts.since }
    const until = formatIso(untilMs)
    return { since: tidemark === undefined || isUnstated === true ? until : earlier(tidemark, until) }
  }

  /** Invariant 12: a partition that appeared after the list may have rows of any later time. */
  #finalTidemark(): string | null | undefined {
    const { tidemark, isUnstated, untilMs, listed } = this.#cycle
    const until = formatIso(untilMs)
    if (listed === 0) return until
    if (tidemark === null) return null
    // The engine derives one, which knows nothing of the lag of the list.
    if (isUnstated === true || tidemark === undefined) return this.#facts.lagMs > 0 ? null : undefined
    return earlier(tidemark, until)
  }

  async #getRecords(keys: readonly string[]): Promise<Map<string, PartitionRecord<Value, State>>> {
    const found = await this.#partitions.get(keys)
    return new Map([...found].map(([key, state]) => [key, parsePartitionRecord<Value, State>(state)]))
  }

  #write(key: string, record: PartitionRecord<Value, State>): void {
    this.#writes.set(key, record as unknown as JsonValue)
  }
}

interface ReadPartition<Value, State> {
  readonly record: PartitionRecord<Value, State>
  /** The state of the request. */
  readonly state: State | undefined
  readonly restarts: number
  readonly page: PartitionPage<State>
}

function checkPage<State>(key: string, page: PartitionPage<State>): PartitionPage<State> {
  if (!Array.isArray(page.changes) || typeof page.hasMore !== 'boolean')
    throw new SyncError('PAGE_INVALID', `\`read\` of the partition ${JSON.stringify(key)} did not return a page.`)
  if (page.hasMore && page.nextState === undefined)
    throw new SyncError(
      'STATE_MISSING',
      `The page of the partition ${JSON.stringify(key)} has \`hasMore: true\` but no \`nextState\` for the next page.`,
    )
  return page
}

function withTidemark(cycle: PartitionedCycle, stated: string | null | undefined): PartitionedCycle {
  if (stated === undefined) return { ...cycle, isUnstated: true }
  if (stated === null || cycle.tidemark === null) return { ...cycle, tidemark: null }
  const instant = canonicalizeInstant(stated)
  if (instant === null) throw sourceInvalidError('The tidemark of a partition is not an RFC 3339 time with a zone.')
  return { ...cycle, tidemark: cycle.tidemark === undefined ? instant : earlier(cycle.tidemark, instant) }
}

/** Both in any RFC 3339 form; the result is canonical. */
function earlier(a: string, b: string): string {
  const [first, second] = [a, b].map((instant) => required(canonicalizeInstant(instant), 'instant')) as [string, string]
  return first < second ? first : second
}

function mergeTables(pages: readonly PartitionPage<unknown>[]): TableShape[] {
  const byDatabase = new Map<string | undefined, TableShape>()
  for (const { tables = [] } of pages) for (const table of tables) byDatabase.set(table.database, table)
  return [...byDatabase.values()]
}

function readState(state: PartitionedState): PartitionedState {
  const { cycle, since, imported } = state
  for (const [name, time] of Object.entries({ since, imported }))
    if (time !== undefined && (typeof time !== 'string' || canonicalizeInstant(time) === null))
      throw stateRejectedError('partitioned', `\`${name}\` is not a time`)
  if (cycle === undefined) return state
  const { id, untilMs, listed, done, open, list, after } = cycle
  if (![id, untilMs, listed, done].every(Number.isSafeInteger))
    throw stateRejectedError('partitioned', '`cycle` has no counts')
  if (!Array.isArray(open) || !open.every((partition) => typeof partition?.key === 'string'))
    throw stateRejectedError('partitioned', '`open` is not a list of partitions')
  if (after !== undefined && typeof after !== 'string') throw stateRejectedError('partitioned', '`after` is not a key')
  if (list !== undefined && !isListTally(list.tally))
    throw stateRejectedError('partitioned', '`list` is not the progress of a list')
  return state
}
