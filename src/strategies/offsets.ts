import { isSyncError, SyncError, type Page, type SyncContext } from '../contract/index.ts'
import type { AnchoredExecute } from './kit/anchored-execute.ts'
import { sourceInvalidError, requireNumber, stateRejectedError } from './kit/strategy-errors.ts'
import { toChanges, type ItemChanges } from './kit/to-changes.ts'

/** By partition, a whole number as text: offsets are larger than what a double holds. */
export type PartitionOffsets = Readonly<Record<string, string>>

export interface OffsetsOptions<Message> {
  /** Where each partition begins and ends now: the oldest offset that is kept, and the one that comes after the last. */
  bounds(context: SyncContext): Promise<Readonly<Record<string, { readonly low: string; readonly end: string }>>>
  /**
   * Messages of the partitions in `from`, each from its offset on and none from `until` on; those of one partition in the order
   * of their offsets. An offset that is no longer kept is a HISTORY_LOST.
   */
  read(query: OffsetsQuery, context: SyncContext): Promise<OffsetsAnswer<Message>>
  /** Where the message stands, such as `3:1207`. */
  place(message: Message): string
  toChanges(message: Message): ItemChanges
  /** How long the log tells that something was deleted, where it forgets that sooner than the rest: `delete.retention.ms` of a compacted topic. */
  tombstonesMs?: number
}

export interface OffsetsQuery {
  readonly from: PartitionOffsets
  readonly until: PartitionOffsets
  /** As the last answer gave them. */
  readonly marks?: PartitionMarks
}

/** By partition, what tells its last message from another one at the same offset: a log that was made anew may have grown beyond it. */
export type PartitionMarks = Readonly<Record<string, string>>

export interface OffsetsAnswer<Message> {
  readonly messages: readonly Message[]
  /** Where each partition is to be read on; what is not named stays where it is. */
  readonly next: PartitionOffsets
  /** Of the partitions in `next`, where there are any; kept, and handed to whoever reads on. */
  readonly marks?: PartitionMarks
}

/** Where reading stands. Between cycles only `offsets` and `readAt`; the rest lives within one cycle. */
export interface OffsetsState {
  /** Everything below is landed. */
  readonly offsets: PartitionOffsets
  /** When the cycle that read them began, RFC 3339. */
  readonly readAt: string
  readonly marks?: PartitionMarks
  /** Up to where this cycle reads. */
  readonly until?: PartitionOffsets
  /** Partitions that are new, and where they begin. */
  readonly added?: PartitionOffsets
}

/**
 * For logs in partitions. A cycle reads each partition up to where it ended when the cycle began; the offsets are the state, and
 * so they are kept with the rows they cover. In replace mode the log is read again from its beginning; what it tells there is
 * history, and does not stand against what another sync has landed since the cycle began.
 *
 * ```ts
 * import { offsets } from 'tidemark'
 *
 * type Entry = { shard: string; number: string; id: string; data: { name: string } | null }
 *
 * export const shards = offsets<Entry>({
 *   bounds: async ({ fetch }) => (await (await fetch('https://log.example/shards')).json()) as Record<string, { low: string; end: string }>,
 *   read: async ({ from, until }, { fetch }) => {
 *     const answer = await fetch('https://log.example/read', { method: 'POST', body: JSON.stringify({ from, until, limit: 1_000 }) })
 *     return (await answer.json()) as { messages: Entry[]; next: Record<string, string> }
 *   },
 *   place: ({ shard, number }) => `${shard}:${number}`,
 *   toChanges: ({ id, data }) => (data === null ? { type: 'delete', key: id } : { type: 'upsert', key: id, record: data }),
 * })
 * ```
 */
export function offsets<Message>(options: OffsetsOptions<Message>): AnchoredExecute<OffsetsState> {
  if (options.tombstonesMs !== undefined) requireNumber('offsets', 'tombstonesMs', options.tombstonesMs, 1)

  const execute: AnchoredExecute<OffsetsState> = async (state, context) => {
    if (state !== undefined) checkState(state)
    const begun = state?.until === undefined ? await beginCycle(state, options, context) : (state as OffsetsCycleState)
    const { readAt, until, added = {} } = begun
    // New partitions come last: a key that moved into one has its older messages in the others.
    const waits = hasUnread(begun.offsets, until) && Object.keys(added).length > 0
    const from = waits ? begun.offsets : { ...begun.offsets, ...added }
    const { messages, next, marks } = await readUnread(from, begun, options, context)
    const reached = { ...from, ...next }
    const hasMore = waits || hasUnread(reached, until)
    return {
      changes: toChanges(messages, (message) => options.toChanges(message), (message) => options.place(message)),
      hasMore,
      nextState: { offsets: reached, readAt, ...mergeMarks(begun.marks, next, marks), ...(hasMore && { until }), ...(waits && { added }) },
      isLog: true,
      // Where the partitions ended was asked after this moment, so all that was in the log by then is below.
      ...(!hasMore && { tidemark: readAt }),
      left: countUnread({ ...added, ...reached }, until),
    } satisfies Page<OffsetsState>
  }
  execute.anchor = async (context) => {
    const bounds = await options.bounds(context)
    return { offsets: mapPartitions(bounds, ({ end }) => end), readAt: formatCycleStart(context) }
  }
  return Object.assign(execute, options.tombstonesMs !== undefined && { retentionMs: options.tombstonesMs })
}

type OffsetsCycleState = OffsetsState & { readonly until: PartitionOffsets }

async function beginCycle<Message>(state: OffsetsState | undefined, { bounds: boundsNow }: OffsetsOptions<Message>, context: SyncContext): Promise<OffsetsCycleState> {
  const bounds = await boundsNow(context)
  const known = state?.offsets ?? {}
  for (const [partition, offset] of Object.entries(known)) checkOffset(partition, offset, bounds[partition])
  const added = mapPartitions(bounds, ({ low }) => low)
  for (const partition of Object.keys(known)) delete added[partition]
  return { offsets: known, added, until: mapPartitions(bounds, ({ end }) => end), readAt: formatCycleStart(context), ...(state?.marks !== undefined && { marks: state.marks }) }
}

function checkOffset(partition: string, offset: string, bounds: { readonly low: string; readonly end: string } | undefined): void {
  const lost = (what: string): SyncError => new SyncError('HISTORY_LOST', `Partition ${partition} was read up to ${offset}, ${what}.`)
  if (bounds === undefined) throw lost('and is gone: the log was deleted, and made anew')
  if (BigInt(offset) < BigInt(bounds.low)) throw lost(`and now begins at ${bounds.low}: what was in between is no longer kept`)
  if (BigInt(offset) > BigInt(bounds.end)) throw lost(`and now ends at ${bounds.end}: the log was made anew, or has lost its end`)
}

async function readUnread<Message>(offsets: PartitionOffsets, { until, marks }: OffsetsCycleState, options: OffsetsOptions<Message>, context: SyncContext): Promise<OffsetsAnswer<Message>> {
  const unread = selectUnread(offsets, until)
  if (Object.keys(unread).length === 0) return { messages: [], next: {} }
  try {
    return checkAnswer(await options.read({ from: unread, until, ...(marks !== undefined && { marks }) }, context), unread, until)
  } catch (error) {
    // Whoever reads everything again has not lost what nobody can have any more, and goes on where the log now begins.
    if (context.cycle.mode !== 'replace' || !isSyncError(error) || error.code !== 'HISTORY_LOST') throw error
    const bounds = await options.bounds(context)
    const next = mapPartitions(unread, (offset, partition) => maxOffset(offset, bounds[partition]?.low ?? offset))
    const isAnew = Object.keys(unread).some((partition) => BigInt(bounds[partition]?.end ?? 0) < BigInt(until[partition]!))
    if (isAnew || Object.keys(next).every((partition) => next[partition] === unread[partition])) throw new SyncError('CURSOR_REJECTED', 'The log was made anew while it was read.', { cause: error })
    return { messages: [], next }
  }
}

function checkAnswer<Message>(answer: OffsetsAnswer<Message>, from: PartitionOffsets, until: PartitionOffsets): OffsetsAnswer<Message> {
  for (const [partition, offset] of Object.entries(answer.next)) {
    const before = from[partition]
    if (before === undefined || !isOffset(offset) || BigInt(offset) < BigInt(before) || BigInt(offset) > BigInt(until[partition]!)) {
      throw sourceInvalidError(`Partition ${partition} was read from ${before ?? 'nowhere'} to ${offset}, and this cycle reads it to ${until[partition] ?? 'nowhere'}.`)
    }
  }
  return answer
}

/** What was read has the marks it came with, or none; the others keep theirs. */
function mergeMarks(before: PartitionMarks = {}, next: PartitionOffsets, given: PartitionMarks = {}): { marks?: PartitionMarks } {
  const kept = Object.entries(before).filter(([partition]) => next[partition] === undefined)
  const marks = Object.fromEntries([...kept, ...Object.entries(given)])
  return Object.keys(marks).length > 0 ? { marks } : {}
}

function selectUnread(offsets: PartitionOffsets, until: PartitionOffsets): PartitionOffsets {
  return Object.fromEntries(Object.entries(offsets).filter(([partition, offset]) => BigInt(offset) < BigInt(until[partition] ?? '0')))
}

function countUnread(offsets: PartitionOffsets, until: PartitionOffsets): number {
  return Number(Object.entries(selectUnread(offsets, until)).reduce((sum, [partition, offset]) => sum + BigInt(until[partition]!) - BigInt(offset), 0n))
}

function hasUnread(offsets: PartitionOffsets, until: PartitionOffsets): boolean {
  return Object.keys(selectUnread(offsets, until)).length > 0
}

function mapPartitions<Value>(values: Readonly<Record<string, Value>>, convert: (value: Value, partition: string) => string): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([partition, value]) => [partition, convert(value, partition)]))
}

function maxOffset(a: string, b: string): string {
  return BigInt(a) < BigInt(b) ? b : a
}

function formatCycleStart({ cycle }: SyncContext): string {
  return new Date(cycle.startedAt).toISOString()
}

function isOffset(value: unknown): value is string {
  return typeof value === 'string' && /^\d{1,19}$/.test(value)
}

function checkState({ offsets, until, added, marks = {}, readAt }: OffsetsState): void {
  for (const [name, map] of Object.entries({ offsets, until: until ?? {}, added: added ?? {} })) {
    if (typeof map !== 'object' || map === null || !Object.values(map).every(isOffset)) throw stateRejectedError('offsets', `\`${name}\` is not a map of offsets`)
  }
  if (typeof marks !== 'object' || marks === null || !Object.values(marks).every((mark) => typeof mark === 'string')) throw stateRejectedError('offsets', '`marks` is not a map of texts')
  if (typeof readAt !== 'string' || Number.isNaN(Date.parse(readAt))) throw stateRejectedError('offsets', '`readAt` is not an instant')
}
