import { hash } from 'node:crypto'
import {
  SyncError,
  type Change,
  type Execute,
  type JsonObject,
  type JsonValue,
  type SyncContext,
  type TimeRange,
} from '../../contract/index.ts'
import { partitioned } from '../../strategies/partitioned.ts'
import { token } from '../../strategies/token.ts'
import { withLaggedTidemark } from '../../strategies/kit/lagged-tidemark.ts'
import { instantToMs } from '../../values/instant.ts'
import type { SingleStream } from '../kit/define-source.ts'
import { reportIncomplete } from '../kit/incomplete-answers.ts'
import { limitRange, parseSince } from '../kit/since.ts'
import { importConnectionState } from './import-state.ts'
import { isComponent, texts, type Component } from './manifest/component.ts'
import { canonical, isPartitioned, listPartitions, type PartitionValue } from './partitions/list-partitions.ts'
import { readChanges, toInstant, type ChangesState } from './read-changes.ts'
import { paginatorOf } from './requests/paginate.ts'
import { readSlice, toMicros, wholeRange, type Position } from './read-slice.ts'
import { cursorOf } from './read-page.ts'
import { getAt } from './records/extract.ts'
import { WHOLE_STREAM, type Run, type Slice } from './requests/run.ts'
import type { Session } from './requests/send.ts'
import type { AirbyteStreamOptions } from './stream-options.ts'

const DEFAULT_LAG_MS = 60_000
/** The list of partitions of nested parents is part of the state while it is read. */
const STATE_BYTES_MAX = 1024 * 1024

interface StreamFacts {
  readonly name: string
  readonly component: Component
  readonly session: Session
  createRun(context: SyncContext): Run
}

/** Turns a stream of a manifest into a sync. */
export function openStream(facts: StreamFacts, options: AirbyteStreamOptions): SingleStream {
  const { name, component } = facts
  const { incremental_sync: cursor } = component
  const hasCursor = isComponent(cursor) && cursor.is_client_side_incremental !== true
  const isListed = !hasCursor || options.mode === 'full_refresh'
  if (hasCursor && options.mode === 'full_refresh' && isComponent(cursor) && hasTimeFilter(component, cursor))
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${name}" is read by windows of time, and a record that changes while they are read leaves its window: a complete list cannot be told from an incomplete one. Leave out \`mode\`.`,
    )
  const keyPaths = readKey(component, options.key)
  if (keyPaths === null && !isListed)
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${name}" has no primary key, so a changed record cannot be told from a new one. Set \`key\` of the stream.`,
    )
  const limits = { stateBytesMax: STATE_BYTES_MAX }
  const { lagMs = DEFAULT_LAG_MS } = options
  const since = parseSince(options.since)
  if (since !== undefined && isListed)
    throw new SyncError(
      'SYNC_INVALID',
      `Stream "${name}" is read completely in every cycle, so it cannot start at a time. Leave out \`since\`.`,
    )
  if (isListed) {
    const reader = reportIncomplete(withLaggedTidemark(createListReader(facts, keyPaths, options), lagMs))
    const importState = { airbyte: () => refuseState(name) }
    return { mode: 'replace', execute: Object.assign(reader, { importState }), limits }
  }
  const reader = reportIncomplete(createChangesReader(facts, keyPaths ?? [], { ...options, lagMs, since }))
  const range = (selected: TimeRange): Execute<any> =>
    reportIncomplete(createListReader(facts, keyPaths, options, limitRange(selected, since)))
  const importState = {
    airbyte: (document: JsonValue, stream?: string) => importConnectionState(document, { name, component }, stream),
  }
  return { mode: 'incremental', execute: Object.assign(reader, { lagMs, importState, range }), limits }
}

function refuseState(stream: string): never {
  throw new SyncError(
    'ARGUMENT_INVALID',
    `Stream "${stream}" is read completely in every cycle, so it needs no state. Import the states of the other streams.`,
  )
}

/** Whether a request depends on the window of the cursor. */
function hasTimeFilter(component: Component, cursor: Component): boolean {
  if (isComponent(cursor.start_time_option) || isComponent(cursor.end_time_option)) return true
  return /stream_interval|start_time|end_time|cursor_slice/.test(JSON.stringify(component.retriever))
}

function createListReader(
  { component, session, createRun }: StreamFacts,
  keyPaths: readonly (readonly string[])[] | null,
  { concurrency }: AirbyteStreamOptions,
  range?: TimeRange,
): Execute<any> {
  const toUpsert = createConversion(component, keyPaths)
  const list = (slice: Slice): Execute<any> =>
    token({
      confirms: paginatorOf(component.retriever as Component) !== null,
      read: async ({ token: position }, context) => {
        const run = createRun(context)
        const at = position === undefined ? undefined : (JSON.parse(position) as Position)
        const step = await readSlice(component, slice, at, wholeRange(component, run, range), run, session)
        if (step.isReset) throw restartError(run)
        const cursor = range === undefined ? null : cursorOf(component, run)
        return {
          changes: step.records.flatMap((record) => {
            const time = cursor === null ? null : cursor.timeOf(record)
            return isWithin(time, range) ? [toUpsert(record, time)] : []
          }),
          next: step.next === undefined ? null : JSON.stringify(step.next),
        }
      },
    })
  if (!isPartitioned(component)) return list(WHOLE_STREAM)
  return partitioned<PartitionValue>({
    list: (cursor, context) => listPartitions(component, cursor, createRun(context), session),
    read: (partition, state, context) => list(toSlice(partition.value))(state, context),
    ...(concurrency !== undefined && { concurrency }),
  })
}

function restartError({ stream }: Run): SyncError {
  return new SyncError('CURSOR_REJECTED', `Stream "${stream}": the source asked to read the list again from the start.`)
}

function createChangesReader(
  { component, session, createRun }: StreamFacts,
  keyPaths: readonly (readonly string[])[],
  { concurrency, lagMs, since }: ChangesOptions,
): Execute<any> {
  const cursor = component.incremental_sync as Component
  const toChange = createConversion(component, keyPaths)
  const reader = { stream: component, lagMs, since, followsUpdates: namesUpdates(cursor), toChange }
  if (!isPartitioned(component))
    return (state: ChangesState | undefined, context) =>
      readChanges(reader, WHOLE_STREAM, state, createRun(context), session)
  return partitioned<PartitionValue, ChangesState>({
    list: (position, context) => listPartitions(component, position, createRun(context), session),
    read: ({ value }, state, context) => readChanges(reader, toSlice(value), state, createRun(context), session),
    globalState: (since) => ({ since: String(BigInt(instantToMs(since)) * 1_000n) }),
    ...(cursor.global_substream_cursor === true && { partitionsMax: 0 }),
    ...(concurrency !== undefined && { concurrency }),
    lagMs,
  })
}

type ChangesOptions = Pick<AirbyteStreamOptions, 'concurrency'> & {
  readonly lagMs: number
  /** Canonical. */
  readonly since: string | undefined
}

/** Converts records; the time of the cursor is that of the last change if it follows changes. */
function createConversion(
  { incremental_sync: cursor }: Component,
  keyPaths: readonly (readonly string[])[] | null,
): (record: JsonObject, time: bigint | null) => Change {
  const followsUpdates = isComponent(cursor) && namesUpdates(cursor)
  return (record, time) => ({
    type: 'upsert',
    key: buildKey(record, keyPaths),
    record,
    ...(followsUpdates && time !== null && { upstreamUpdatedAt: toInstant(time) }),
  })
}

/** A record without a time of the cursor may belong to the range. */
function isWithin(time: bigint | null, { from, to }: TimeRange = {}): boolean {
  return time === null || ((from === undefined || time >= toMicros(from)) && (to === undefined || time < toMicros(to)))
}

/** A cursor on the time of creation does not see changes. */
function namesUpdates({ cursor_field: field }: Component): boolean {
  return /updat|modif|chang|edit|last_?(?:seen|activity)/i.test(String(field))
}

function toSlice({ partition, extra }: PartitionValue): Slice {
  return { partition, extra, window: {} }
}

/** The paths of the key; null if the manifest has none. */
function readKey(
  { primary_key: declared }: Component,
  given: readonly string[] | undefined,
): readonly (readonly string[])[] | null {
  if (given !== undefined && given.length > 0) return given.map((field) => field.split('.'))
  if (typeof declared === 'string') return declared === '' ? null : [[declared]]
  if (!Array.isArray(declared) || declared.length === 0) return null
  return declared.map((part) => (Array.isArray(part) ? texts(part) : [String(part)]))
}

/** Without a key, equal records are one row, and a changed record replaces the old one by the sweep. */
function buildKey(record: JsonObject, paths: readonly (readonly string[])[] | null): string {
  if (paths === null) return hash('sha256', canonical(record))
  const parts = paths.map((path) => formatPart(getAt(record, path)))
  if (parts.length === 1) return parts[0] ?? ''
  return parts.includes('') ? '' : JSON.stringify(parts)
}

/** A value that cannot be a key becomes the empty key, which the engine quarantines. */
function formatPart(value: JsonValue | undefined): string {
  if (typeof value === 'boolean') return String(value)
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint' ? String(value) : ''
}
