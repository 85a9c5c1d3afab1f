import type { JsonObject, JsonValue, TimeRange } from '../../contract/index.ts'
import { instantToMs } from '../../values/instant.ts'
import type { DatetimeCursor } from './cursor/datetime-cursor.ts'
import type { Component } from './manifest/component.ts'
import { cursorOf, readPage } from './read-page.ts'
import type { Run, Slice } from './requests/run.ts'
import type { Session } from './requests/send.ts'

/** Where the next page of a slice is: the window of its cursor, and the token of its pagination. */
export interface Position extends JsonObject {
  from?: string
  token?: JsonValue
}

/** The times that the windows of a slice cover, in microseconds. */
export interface Bounds {
  readonly start: bigint
  readonly end: bigint
}

export interface SliceStep {
  readonly records: readonly JsonObject[]
  /** Undefined after the last page of the last window. */
  readonly next: Position | undefined
  /** Whether the page ends a window. */
  readonly endsWindow: boolean
  readonly isReset: boolean
  readonly isIgnored: boolean
  readonly serverTime: number | null
}

/** Reads one page of a slice, window by window. Every stream is read with it: alone, per partition and as a parent. */
export async function readSlice(
  stream: Component,
  slice: Slice,
  position: Position | undefined,
  bounds: Bounds | null,
  run: Run,
  session: Session,
): Promise<SliceStep> {
  const cursor = cursorOf(stream, run)
  if (cursor === null || bounds === null) {
    const page = await readPage(stream, slice, position?.token, run, session)
    const next = page.next === undefined ? undefined : { token: page.next }
    return { ...page, next, endsWindow: next === undefined }
  }
  const from = position?.from === undefined ? bounds.start : BigInt(position.from)
  const to = cursor.windowEnd(from, bounds.end)
  if (from > bounds.end)
    return { records: [], next: undefined, endsWindow: true, isReset: false, isIgnored: false, serverTime: null }
  const window = cursor.window(from, cursor.shownEnd(to, bounds.end))
  const page = await readPage(stream, { ...slice, window }, position?.token, run, session)
  const isOver = cursor.isDataFeed && isOlder(page.records.at(-1), from, cursor)
  if (page.next !== undefined && !isOver)
    return { ...page, next: { from: String(from), token: page.next }, endsWindow: false }
  return { ...page, next: to < bounds.end ? { from: String(to) } : undefined, endsWindow: true }
}

function isOlder(record: JsonObject | undefined, from: bigint, cursor: DatetimeCursor): boolean {
  const time = record === undefined ? null : cursor.timeOf(record)
  return time !== null && time < from
}

/** The range of a stream's cursor, or the part of it between two times; null if it has no cursor. */
export function wholeRange(stream: Component, run: Run, { from, to }: TimeRange = {}): Bounds | null {
  const cursor = cursorOf(stream, run)
  if (cursor === null) return null
  const [start, end] = [cursor.start, cursor.end(BigInt(run.context.cycle.startedAt) * 1_000n)]
  const [first, last] = [from === undefined ? start : toMicros(from), to === undefined ? end : toMicros(to)]
  return { start: first > start ? first : start, end: last < end ? last : end }
}

export function toMicros(canonical: string): bigint {
  return BigInt(instantToMs(canonical)) * 1_000n
}
