import {
  SyncError,
  type ImportedState,
  type JsonObject,
  type JsonValue,
  type PartitionWrite,
} from '../../contract/index.ts'
import { formatIso } from '../../strategies/kit/instants.ts'
import type { PartitionedState } from '../../strategies/partitioned.ts'
import { didYouMean } from '../../values/did-you-mean.ts'
import { instantToMs, parseInstantOrDate } from '../../values/instant.ts'
import { toPython } from './jinja/interpolation.ts'
import { parseTime } from './jinja/macros.ts'
import { print } from './jinja/printing.ts'
import { TemplateError } from './jinja/values.ts'
import { isRecord, textOf, texts, type Component } from './manifest/component.ts'
import { isPartitioned, toPartition } from './partitions/list-partitions.ts'
import type { ChangesState } from './read-changes.ts'

/** A stream of a manifest whose state is taken over. */
export interface ImportTarget {
  readonly name: string
  readonly component: Component
}

type AirbyteState = ChangesState | PartitionedState

/**
 * The state of a connection as Airbyte stores it, in one of its forms:
 *
 *   legacy      { "orders": { "updated_at": "…" } }
 *   per stream  [{ "type": "STREAM", "stream": { "stream_descriptor": { "name": "orders" }, "stream_state": {…} } }]
 *   global      { "type": "GLOBAL", "global": { "stream_states": [{ "stream_descriptor": {…}, "stream_state": {…} }] } }
 *
 * also as its API returns it (`streamState`, `globalState`), and in messages of type STATE. A time is read again from one
 * unit before it, as after a cycle of this engine, and state of parents is not needed, because parents are always listed.
 */
export function importConnectionState(
  document: JsonValue,
  { name, component }: ImportTarget,
  named = name,
): ImportedState<AirbyteState> {
  const found = findStream(listStreams(document, '$'), named)
  return readStreamState({ component, stream: named }, found.state, found.place)
}

interface StreamPlace {
  readonly name: string
  readonly state: JsonValue | undefined
  /** A path of JSON, for errors. */
  readonly place: string
}

function findStream(streams: readonly StreamPlace[], name: string): StreamPlace {
  const matches = streams.filter((stream) => stream.name === name)
  // A later message replaces an earlier one.
  const found = matches.at(-1)
  if (found !== undefined) return found
  const known = [...new Set(streams.map((stream) => stream.name))]
  throw invalidState(
    `The file has no state of stream "${name}". Its streams are ${known.join(', ') || 'none'}.${didYouMean(name, known)} Name one with --stream.`,
  )
}

function listStreams(document: JsonValue | undefined, place: string): StreamPlace[] {
  if (Array.isArray(document)) return document.flatMap((item, index) => listStreams(item, `${place}[${index}]`))
  if (!isRecord(document)) throw invalidState(`${place}: it is not the state of an Airbyte connection.`)
  const { type, stateType } = document
  if (type === 'STATE') return listStreams(document.state, `${place}.state`)
  if (type === 'STREAM') return [readDescribed(document.stream, `${place}.stream`)]
  if (type === 'GLOBAL') return readGlobal(document.global, `${place}.global`)
  if (type === 'LEGACY') return readLegacy(document.data, `${place}.data`)
  if (stateType === 'stream') return readList(document.streamState, `${place}.streamState`)
  if (stateType === 'global') return readGlobal(document.globalState, `${place}.globalState`)
  if (stateType === 'legacy') return readLegacy(document.state, `${place}.state`)
  if (typeof type === 'string' || typeof stateType === 'string')
    throw invalidState(`${place}: ${type === undefined ? '`stateType`' : '`type`'} is not a kind of Airbyte state.`)
  return readLegacy(document, place)
}

function readGlobal(value: JsonValue | undefined, place: string): StreamPlace[] {
  if (!isRecord(value)) throw invalidState(`${place}: it is not an object.`)
  const name = value.stream_states === undefined ? 'streamStates' : 'stream_states'
  return readList(value[name], `${place}.${name}`)
}

function readList(value: JsonValue | undefined, place: string): StreamPlace[] {
  if (!Array.isArray(value)) throw invalidState(`${place}: it is not a list.`)
  return value.map((item, index) => readDescribed(item, `${place}[${index}]`))
}

function readDescribed(value: JsonValue | undefined, place: string): StreamPlace {
  const item = isRecord(value) ? value : {}
  const descriptor = item.stream_descriptor ?? item.streamDescriptor
  const name = isRecord(descriptor) ? descriptor.name : undefined
  if (typeof name !== 'string') throw invalidState(`${place}: it does not name its stream.`)
  const field = item.stream_state === undefined && item.streamState !== undefined ? 'streamState' : 'stream_state'
  return { name, state: item[field], place: `${place}.${field}` }
}

function readLegacy(value: JsonValue | undefined, place: string): StreamPlace[] {
  if (!isRecord(value)) throw invalidState(`${place}: it is not an object.`)
  return Object.entries(value).map(([name, state]) => ({ name, state, place: `${place}.${name}` }))
}

interface StreamFacts {
  readonly stream: string
  readonly component: Component
}

function readStreamState(facts: StreamFacts, state: JsonValue | undefined, place: string): ImportedState<AirbyteState> {
  if (!isRecord(state) || Object.keys(state).length === 0)
    throw invalidState(
      `Stream "${facts.stream}", ${place}: it has no state, so the next cycle reads everything anyway.`,
    )
  return isPartitioned(facts.component) ? readPartitions(facts, state, place) : readWhole(facts, state, place)
}

function readWhole(facts: StreamFacts, state: JsonObject, place: string): ImportedState<ChangesState> {
  if (Array.isArray(state.states))
    throw invalidState(
      `Stream "${facts.stream}", ${place}.states: the manifest does not split the stream in partitions.`,
    )
  // Streams that had partitions once keep the wrapper.
  const isWrapped = isRecord(state.state)
  const cursor = isWrapped ? (state.state as JsonObject) : state
  return { state: { since: String(readCursor(facts, cursor, isWrapped ? `${place}.state` : place)) } }
}

/** Per partition, with or without a global cursor, or a global cursor alone. */
function readPartitions(facts: StreamFacts, state: JsonObject, place: string): ImportedState<PartitionedState> {
  const { states, state: global, use_global_cursor: isGlobal, lookback_window: lookback } = state
  const hasStates = Array.isArray(states) && states.length > 0
  if (isRecord(global) && (isGlobal === true || !hasStates)) {
    const micros =
      readCursor(facts, global, `${place}.state`) - readLookback(facts, lookback, `${place}.lookback_window`)
    // Which partitions Airbyte had read is unknown, so it holds for all that exist now.
    return { state: { imported: formatIso(Number(micros / 1_000n)) } }
  }
  if (states === undefined && global === undefined) return readLegacyPartitions(facts, state, place)
  if (!hasStates) throw invalidState(`Stream "${facts.stream}", ${place}.states: it is not a list of partitions.`)
  const partitions = new Map<string, PartitionWrite>()
  for (const [index, item] of states.entries()) {
    const at = `${place}.states[${index}]`
    if (!isRecord(item) || !isRecord(item.partition) || !isRecord(item.cursor))
      throw invalidState(`Stream "${facts.stream}", ${at}: it is not a partition with a cursor.`)
    addPartition(partitions, item.partition, readCursor(facts, item.cursor, `${at}.cursor`))
  }
  return { state: {}, partitions: [...partitions.values()] }
}

/** Before partitions had states of their own form: an object by the value of the partition. */
function readLegacyPartitions(facts: StreamFacts, state: JsonObject, place: string): ImportedState<PartitionedState> {
  const field = partitionField(facts.component)
  const entries = Object.entries(state)
  if (field === null || !entries.every(([, cursor]) => isRecord(cursor)))
    throw invalidState(`Stream "${facts.stream}", ${place}: it has neither \`states\` nor \`state\`.`)
  const partitions = new Map<string, PartitionWrite>()
  for (const [value, cursor] of entries) {
    const micros = readCursor(facts, cursor as JsonObject, `${place}[${JSON.stringify(value)}]`)
    // The type of the value is lost in a name, and both types are partitions of their own.
    for (const typed of /^-?(?:0|[1-9]\d{0,14})$/.test(value) ? [value, Number(value)] : [value])
      addPartition(
        partitions,
        field.isParent ? { [field.name]: typed, parent_slice: {} } : { [field.name]: typed },
        micros,
      )
  }
  return { state: {}, partitions: [...partitions.values()] }
}

function addPartition(partitions: Map<string, PartitionWrite>, partition: JsonObject, micros: bigint): void {
  const { key, value } = toPartition({ partition, extra: {} })
  const since = String(micros)
  partitions.set(key, { key, state: { value, listed: 0, done: 0, state: { since } } })
}

function partitionField({ retriever }: Component): { readonly name: string; readonly isParent: boolean } | null {
  const { partition_router: router } = retriever as Component
  const only = Array.isArray(router) ? (router.length === 1 ? router[0] : undefined) : router
  if (!isRecord(only)) return null
  const parents = Array.isArray(only.parent_stream_configs) ? only.parent_stream_configs : []
  const [parent] = parents
  const name = textOf(parents.length === 1 && isRecord(parent) ? parent.partition_field : only.cursor_field)
  return name === undefined || name.includes('{{') ? null : { name, isParent: parents.length === 1 }
}

/** Seconds that a cycle of Airbyte took: records that appeared meanwhile are before its cursor. */
function readLookback({ stream }: StreamFacts, value: JsonValue | undefined, place: string): bigint {
  if (value === undefined || value === null) return 0n
  if (typeof value !== 'number' || !Number.isFinite(value) || value < 0)
    throw invalidState(`Stream "${stream}", ${place}: it is not a number of seconds.`)
  return BigInt(Math.ceil(value)) * 1_000_000n
}

/** The time of a cursor in microseconds. */
function readCursor(facts: StreamFacts, cursor: JsonObject, place: string): bigint {
  if (Array.isArray(cursor.slices)) return readSlices(facts, cursor.slices, `${place}.slices`)
  const declared = textOf((facts.component.incremental_sync as Component).cursor_field) ?? ''
  // A template depends on the settings; then the state has no other field.
  const [only, ...others] = Object.keys(cursor)
  const field = declared.includes('{{') && only !== undefined && others.length === 0 ? only : declared
  if (!Object.hasOwn(cursor, field))
    throw invalidState(
      `Stream "${facts.stream}", ${place}: it has no field \`${field}\`. Its fields are ${Object.keys(cursor).join(', ') || 'none'}.`,
    )
  return readTime(facts, cursor[field], `${place}.${field}`)
}

/** Ranges that were read at the same time: everything before the end of the first one is read. */
function readSlices(facts: StreamFacts, slices: readonly (JsonValue | undefined)[], place: string): bigint {
  const ends = slices.map((slice, index) => {
    const at = `${place}[${index}]`
    if (!isRecord(slice)) throw invalidState(`Stream "${facts.stream}", ${at}: it is not a range.`)
    const start = readTime(facts, slice.start, `${at}.start`)
    const newest = slice.most_recent_cursor_value
    const end = readTime(facts, slice.end, `${at}.end`)
    const seen =
      newest === undefined || newest === null ? end : readTime(facts, newest, `${at}.most_recent_cursor_value`)
    return { start, end: seen < end ? seen : end }
  })
  const first = ends.toSorted((a, b) => (a.start < b.start ? -1 : a.start > b.start ? 1 : 0))[0]
  if (first === undefined) throw invalidState(`Stream "${facts.stream}", ${place}: it is empty.`)
  return first.end
}

function readTime({ stream, component }: StreamFacts, value: JsonValue | undefined, place: string): bigint {
  const { datetime_format: format, cursor_datetime_formats: others } = component.incremental_sync as Component
  const formats = [textOf(format) ?? DEFAULT_FORMAT, ...texts(others), DEFAULT_FORMAT]
  const isTime = typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint'
  const text = isTime ? print(toPython(value)) : ''
  for (const candidate of text === '' ? [] : formats)
    try {
      return parseTime(text, candidate).epoch
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error
    }
  const micros = text === '' ? null : parseIso(text)
  if (micros !== null) return micros
  // Without the value, which may be data.
  throw invalidState(`Stream "${stream}", ${place}: it is not a time in the format ${formats[0] ?? ''}.`)
}

const DEFAULT_FORMAT = '%Y-%m-%dT%H:%M:%S.%f%z'

function parseIso(text: string): bigint | null {
  const instant = parseInstantOrDate(/^\d{4}-\d{2}-\d{2}T[\d:.]+$/.test(text) ? `${text}Z` : text)
  return instant === null ? null : BigInt(instantToMs(instant)) * 1_000n
}

function invalidState(message: string): SyncError {
  return new SyncError('ARGUMENT_INVALID', message)
}
