import { isSyncError, SyncError, type Page, type SyncContext } from '../contract/index.ts'
import type { AnchoredExecute } from './kit/anchored-execute.ts'
import { required } from '../values/required.ts'
import { carryExtra, type ExtraAnswer, type ExtraCarrier, type ExtraState } from './kit/extra.ts'
import { sourceInvalidError, requireNumber, stateRejectedError } from './kit/strategy-errors.ts'
import { toChanges, type ItemChanges } from './kit/to-changes.ts'

/** Offset per partition, as decimal text: offsets exceed the precision of a double. */
export type PartitionOffsets = Readonly<Record<string, string>>

/** Describes how to read the partitions of a log. */
export interface OffsetsOptions<Message, Extra = never> {
  /** The current bounds of each partition: the oldest retained offset, and the one after the last. */
  bounds(context: SyncContext): Promise<Readonly<Record<string, { readonly low: string; readonly end: string }>>>
  /** Where partitions without a state begin, if not at their oldest retained offset: the offsets of a start date. */
  start?(context: SyncContext): Promise<PartitionOffsets>
  /**
   * Reads messages of the partitions in `from`, each from its offset and before `until`, in offset order within a
   * partition. An offset that is no longer retained is a HISTORY_LOST error.
   */
  read(query: OffsetsQuery<Extra>, context: SyncContext): Promise<OffsetsAnswer<Message, Extra>>
  /** The message's cursor, such as `3:1207`. */
  cursor(message: Message): string
  toChanges(message: Message): ItemChanges
  /** How long the log keeps tombstones, if shorter than other entries: `delete.retention.ms` of a compacted topic. */
  tombstonesMs?: number
}

/** The range of offsets to read, by partition. */
export interface OffsetsQuery<Extra = never> extends ExtraState<Extra> {
  readonly from: PartitionOffsets
  readonly until: PartitionOffsets
  /** As returned by the last answer. */
  readonly marks?: PartitionMarks
}

/** Per partition, an identifier of its last message: a recreated log may have grown beyond the same offset. */
export type PartitionMarks = Readonly<Record<string, string>>

/** Messages of a log, with the offsets that follow them. */
export interface OffsetsAnswer<Message, Extra = never> extends ExtraAnswer<Extra> {
  readonly messages: readonly Message[]
  /** The next offset of each partition; partitions that are not listed do not move. */
  readonly next: PartitionOffsets
  /** For partitions in `next`, where available; stored, and passed to the next read. */
  readonly marks?: PartitionMarks
}

/** Between cycles only `offsets` and `readAt` are kept; the other fields belong to one cycle. */
export interface OffsetsState<Extra = never> extends ExtraState<Extra> {
  /** Everything below these offsets is committed. */
  readonly offsets: PartitionOffsets
  /** Start of the cycle that read them, RFC 3339. */
  readonly readAt: string
  readonly marks?: PartitionMarks
  /** Where this cycle stops. */
  readonly until?: PartitionOffsets
  /** New partitions and their first offsets. */
  readonly added?: PartitionOffsets
}

/**
 * For partitioned logs. A cycle reads each partition up to its end when the cycle began. The offsets are the state, so
 * they commit with the rows they cover. In replace mode the log is read again from its start; these older entries do
 * not overwrite rows that another sync has committed since the cycle began.
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
 *   cursor: ({ shard, number }) => `${shard}:${number}`,
 *   toChanges: ({ id, data }) => (data === null ? { type: 'delete', key: id } : { type: 'upsert', key: id, record: data }),
 * })
 * ```
 */
export function offsets<Message, Extra = never>(
  options: OffsetsOptions<Message, Extra>,
): AnchoredExecute<OffsetsState<Extra>> {
  if (options.tombstonesMs !== undefined) requireNumber('offsets', 'tombstonesMs', options.tombstonesMs, 1)

  const execute = carryExtra<OffsetsState<Extra>, Extra>(async (state, context, extra) => {
    if (state !== undefined) checkState(state)
    const cycle = state?.until === undefined ? await beginCycle(state, options, context) : (state as OffsetsCycleState)
    const { readAt, until, added = {} } = cycle
    // New partitions are read last: a key that moved into one has its older messages in the others.
    const mustWait = hasUnread(cycle.offsets, until) && Object.keys(added).length > 0
    const from = mustWait ? cycle.offsets : { ...cycle.offsets, ...added }
    const { messages, next, marks } = await readUnread(from, cycle, options, extra, context)
    const reached = { ...from, ...next }
    const hasMore = mustWait || hasUnread(reached, until)
    return {
      changes: toChanges(
        messages,
        (message) => options.toChanges(message),
        (message) => options.cursor(message),
      ),
      hasMore,
      nextState: {
        offsets: reached,
        readAt,
        ...mergeMarks(cycle.marks, next, marks),
        ...(hasMore && { until }),
        ...(mustWait && { added }),
      },
      isLog: true,
      // The bounds were read after this time, so every message in the log by then is below them.
      ...(!hasMore && { tidemark: readAt }),
      left: countUnread({ ...added, ...reached }, until),
    } satisfies Page<OffsetsState<Extra>>
  })
  const anchor = async (context: SyncContext): Promise<OffsetsState<Extra>> => {
    const bounds = await options.bounds(context)
    return { offsets: mapPartitions(bounds, ({ end }) => end), readAt: formatCycleStart(context) }
  }
  return Object.assign(execute, { anchor }, options.tombstonesMs !== undefined && { retentionMs: options.tombstonesMs })
}

type OffsetsCycleState = Omit<OffsetsState, 'extra'> & { readonly until: PartitionOffsets }

async function beginCycle(
  state: Pick<OffsetsState, 'offsets' | 'marks'> | undefined,
  { bounds: boundsNow, start }: Pick<OffsetsOptions<never>, 'bounds' | 'start'>,
  context: SyncContext,
): Promise<OffsetsCycleState> {
  const bounds = await boundsNow(context)
  const known = state?.offsets ?? {}
  for (const [partition, offset] of Object.entries(known)) checkOffset(partition, offset, bounds[partition])
  const added = mapPartitions(bounds, ({ low }) => low)
  for (const partition of Object.keys(known)) delete added[partition]
  const starts = start === undefined || Object.keys(added).length === 0 ? {} : await start(context)
  for (const [partition, low] of Object.entries(added)) {
    const end = required(bounds[partition], `the bounds of partition ${partition}`).end
    // A log that has grown meanwhile may have a first message after this cycle's end.
    added[partition] = minOffset(maxOffset(low, starts[partition] ?? low), end)
  }
  return {
    offsets: known,
    added,
    until: mapPartitions(bounds, ({ end }) => end),
    readAt: formatCycleStart(context),
    ...(state?.marks !== undefined && { marks: state.marks }),
  }
}

function checkOffset(
  partition: string,
  offset: string,
  bounds: { readonly low: string; readonly end: string } | undefined,
): void {
  const lost = (what: string): SyncError =>
    new SyncError('HISTORY_LOST', `Partition ${partition} was read up to offset ${offset}, ${what}.`)
  if (bounds === undefined) throw lost('but no longer exists: the log was deleted or recreated')
  if (BigInt(offset) < BigInt(bounds.low))
    throw lost(`but now begins at ${bounds.low}: the messages in between are no longer retained`)
  if (BigInt(offset) > BigInt(bounds.end))
    throw lost(`but now ends at ${bounds.end}: the log was recreated or truncated`)
}

async function readUnread<Message, Extra>(
  offsets: PartitionOffsets,
  { until, marks }: OffsetsCycleState,
  options: OffsetsOptions<Message, Extra>,
  extra: ExtraCarrier<Extra>,
  context: SyncContext,
): Promise<OffsetsAnswer<Message, Extra>> {
  const unread = selectUnread(offsets, until)
  if (Object.keys(unread).length === 0) return { messages: [], next: {} }
  try {
    return checkAnswer(
      await extra.read((carried) =>
        options.read({ from: unread, until, ...(marks !== undefined && { marks }), ...carried }, context),
      ),
      unread,
      until,
    )
  } catch (error) {
    // A replace cycle reads only what is still retained, so it continues from the new start of the log.
    if (context.cycle.mode !== 'replace' || !isSyncError(error) || error.code !== 'HISTORY_LOST') throw error
    const bounds = await options.bounds(context)
    const next = mapPartitions(unread, (offset, partition) => maxOffset(offset, bounds[partition]?.low ?? offset))
    const isRecreated = Object.keys(unread).some(
      (partition) => BigInt(bounds[partition]?.end ?? 0) < BigInt(until[partition] ?? 0),
    )
    if (isRecreated || Object.keys(next).every((partition) => next[partition] === unread[partition]))
      throw new SyncError(
        'CURSOR_REJECTED',
        'The log was recreated while it was read. It will be read again from the start.',
        { cause: error },
      )
    return { messages: [], next }
  }
}

function checkAnswer<Answer extends Pick<OffsetsAnswer<unknown>, 'next'>>(
  answer: Answer,
  from: PartitionOffsets,
  until: PartitionOffsets,
): Answer {
  for (const [partition, offset] of Object.entries(answer.next)) {
    const first = from[partition]
    const limit = until[partition]
    if (
      first === undefined ||
      limit === undefined ||
      !isOffset(offset) ||
      BigInt(offset) < BigInt(first) ||
      BigInt(offset) > BigInt(limit)
    ) {
      throw sourceInvalidError(
        `Partition ${partition} was read from ${first ?? 'no offset'} to ${offset}, but this cycle reads it up to ${limit ?? 'no offset'}.`,
      )
    }
  }
  return answer
}

/** Partitions that were read take their new marks, or none; the others keep theirs. */
function mergeMarks(
  previous: PartitionMarks = {},
  next: PartitionOffsets,
  given: PartitionMarks = {},
): { marks?: PartitionMarks } {
  const kept = Object.entries(previous).filter(([partition]) => next[partition] === undefined)
  const marks = Object.fromEntries([...kept, ...Object.entries(given)])
  return Object.keys(marks).length > 0 ? { marks } : {}
}

function selectUnread(offsets: PartitionOffsets, until: PartitionOffsets): PartitionOffsets {
  return Object.fromEntries(
    Object.entries(offsets).filter(([partition, offset]) => BigInt(offset) < BigInt(until[partition] ?? '0')),
  )
}

function countUnread(offsets: PartitionOffsets, until: PartitionOffsets): number {
  return Number(
    Object.entries(selectUnread(offsets, until)).reduce(
      (sum, [partition, offset]) => sum + BigInt(until[partition] ?? 0) - BigInt(offset),
      0n,
    ),
  )
}

function hasUnread(offsets: PartitionOffsets, until: PartitionOffsets): boolean {
  return Object.keys(selectUnread(offsets, until)).length > 0
}

function mapPartitions<Value>(
  values: Readonly<Record<string, Value>>,
  convert: (value: Value, partition: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([partition, value]) => [partition, convert(value, partition)]))
}

function minOffset(a: string, b: string): string {
  return BigInt(a) <= BigInt(b) ? a : b
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

function checkState({ offsets, until, added, marks = {}, readAt }: Omit<OffsetsState, 'extra'>): void {
  for (const [name, map] of Object.entries({ offsets, until: until ?? {}, added: added ?? {} })) {
    if (typeof map !== 'object' || map === null || !Object.values(map).every(isOffset))
      throw stateRejectedError('offsets', `\`${name}\` is not a map of offsets`)
  }
  if (typeof marks !== 'object' || marks === null || !Object.values(marks).every((mark) => typeof mark === 'string'))
    throw stateRejectedError('offsets', '`marks` is not a map of strings')
  if (typeof readAt !== 'string' || Number.isNaN(Date.parse(readAt)))
    throw stateRejectedError('offsets', '`readAt` is not an instant')
}
