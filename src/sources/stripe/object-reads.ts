import { hashText } from '../../strategies/kit/hash.ts'

/**
 * Objects that the delta read as they were then. A later event of such an object may be older than what was read, until
 * the log is known to be past the reading:
 *
 *   before `since`         older: the log had already shown a later event when the object was read
 *   from `since`, `until`  not known: the object is read again
 *   after `until`          newer: the log did not show the event long after the object was read
 */
export interface ObjectReadBatch {
  /** One mark of fixed length per object; null when there are too many to keep, and any object may be one of them. */
  readonly marks: string | null
  /** The second of the newest event that was visible before the first of them was read. */
  readonly since: number
  /** Our clock when the last of them was read. It only tells how long ago that was. */
  readonly atMs: number
  /** Known once the log was read long enough after that. */
  readonly until?: number
}

/** Longer than an event may take to show, with the difference between the clocks of two runners. */
export const SETTLE_AFTER_MS = 30_000
const MARKS_MAX = 1_500
const READ_BATCHES_MAX = 12
const MARK_CHARS = 10

/** The readings of one state, each with the objects of one stretch of the log. */
export class ObjectReads {
  readonly #batches: ReadonlyArray<{ readonly reading: ObjectReadBatch; readonly marks: ReadonlySet<string> }>

  constructor(readings: readonly ObjectReadBatch[]) {
    this.#batches = readings.map((reading) => ({ reading, marks: new Set(splitMarks(reading.marks ?? '')) }))
  }

  /** The object was read after an event of this second had happened. */
  isSuperseded(id: string, second: number): boolean {
    return this.#batches.some(({ reading, marks }) => second < reading.since && marks.has(hashObjectId(id)))
  }

  /** The object may have been read before or after an event of this second. */
  isAmbiguous(id: string, second: number): boolean {
    return this.#batches.some(({ reading: { until, marks: kept }, marks }) => (until === undefined || second <= until) && (kept === null || marks.has(hashObjectId(id))))
  }
}

/** Whether a look at the newest event settles one of the readings. */
export function canSettle(readings: readonly ObjectReadBatch[], nowMs: number): boolean {
  return readings.some(({ until, atMs }) => until === undefined && nowMs - atMs >= SETTLE_AFTER_MS)
}

/** `askedAt`: our clock before the log was asked for; `newest`: the second of the newest event it showed. */
export function settleReads(readings: readonly ObjectReadBatch[], askedAt: number, newest: number): ObjectReadBatch[] {
  return readings.map((reading) => (reading.until === undefined && askedAt - reading.atMs >= SETTLE_AFTER_MS ? { ...reading, until: newest } : reading))
}

/** Adds what was read after an event of the second `since` was visible. */
export function addReads(readings: readonly ObjectReadBatch[], ids: readonly string[], since: number, atMs: number): ObjectReadBatch[] {
  const same = readings.find((reading) => reading.since === since && reading.until === undefined)
  const added = { marks: encodeMarks(ids), since, atMs }
  const others = readings.filter((reading) => reading !== same)
  const [first, second, ...rest] = [...others, same === undefined ? added : mergeBatches(same, added)]
  const kept = rest.length + 2 > READ_BATCHES_MAX ? [mergeBatches(first!, second!), ...rest] : [first, second, ...rest].filter((reading) => reading !== undefined)
  const marks = kept.reduce((sum, reading) => sum + (reading.marks?.length ?? 0), 0)
  return marks <= MARKS_MAX * MARK_CHARS ? kept : [...kept.slice(0, -1), { ...kept.at(-1)!, marks: null }]
}

function mergeBatches(a: ObjectReadBatch, b: ObjectReadBatch): ObjectReadBatch {
  const until = a.until === undefined || b.until === undefined ? undefined : Math.max(a.until, b.until)
  return {
    marks: a.marks === null || b.marks === null ? null : [...new Set([...splitMarks(a.marks), ...splitMarks(b.marks)])].join(''),
    since: Math.min(a.since, b.since), atMs: Math.max(a.atMs, b.atMs), ...(until !== undefined && { until }),
  }
}

function encodeMarks(ids: readonly string[]): string {
  return [...new Set(ids.map(hashObjectId))].join('')
}

function hashObjectId(id: string): string {
  return hashText(id).toString(36).padStart(MARK_CHARS, '0')
}

function splitMarks(marks: string): string[] {
  return marks.match(/.{10}/g) ?? []
}
