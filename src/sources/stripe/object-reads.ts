import { hashText } from '../../strategies/kit/hash.ts'

/**
 * Objects that the delta read in their current version. A later event of such an object may be older than the version that was
 * read, depending on its time:
 *
 *   before `since`         older: the log already had a later event when the object was read
 *   from `since`, `until`  ambiguous: the object is read again
 *   after `until`          newer: the log did not have the event long after the object was read
 */
export interface ObjectReadBatch {
  /** One hash of fixed length per object; null if there are too many to keep, so that any object may be among them. */
  readonly marks: string | null
  /** The second of the newest event that was visible before the first of them was read. */
  readonly since: number
  /** The local clock when the last of them was read. Used to measure elapsed time only. */
  readonly atMs: number
  /** Set once the log was read long enough after `atMs`. */
  readonly until?: number
}

/** Longer than the visibility delay of an event plus the clock skew between two runners. */
export const SETTLE_AFTER_MS = 30_000
const MARKS_MAX = 1_500
const READ_BATCHES_MAX = 12
const MARK_CHARS = 10

/** The batches of one state, each with the objects of one section of the log. */
export class ObjectReads {
  readonly #batches: ReadonlyArray<{ readonly batch: ObjectReadBatch; readonly marks: ReadonlySet<string> }>

  constructor(batches: readonly ObjectReadBatch[]) {
    this.#batches = batches.map((batch) => ({ batch, marks: new Set(splitMarks(batch.marks ?? '')) }))
  }

  /** The object was read after an event of this second. */
  isSuperseded(id: string, second: number): boolean {
    return this.#batches.some(({ batch, marks }) => second < batch.since && marks.has(hashObjectId(id)))
  }

  /** The object may have been read before or after an event of this second. */
  isAmbiguous(id: string, second: number): boolean {
    return this.#batches.some(
      ({ batch: { until, marks: kept }, marks }) =>
        (until === undefined || second <= until) && (kept === null || marks.has(hashObjectId(id))),
    )
  }
}

/** Whether reading the newest event can settle one of the batches. */
export function canSettle(batches: readonly ObjectReadBatch[], nowMs: number): boolean {
  return batches.some(({ until, atMs }) => until === undefined && nowMs - atMs >= SETTLE_AFTER_MS)
}

/** `requestedAt` is the local clock before the log was requested; `newest` is the second of its newest event. */
export function settleReads(
  batches: readonly ObjectReadBatch[],
  requestedAt: number,
  newest: number,
): ObjectReadBatch[] {
  return batches.map((batch) =>
    batch.until === undefined && requestedAt - batch.atMs >= SETTLE_AFTER_MS ? { ...batch, until: newest } : batch,
  )
}

/** Adds objects that were read after an event of the second `since` was visible. */
export function addReads(
  batches: readonly ObjectReadBatch[],
  ids: readonly string[],
  since: number,
  atMs: number,
): ObjectReadBatch[] {
  const same = batches.find((batch) => batch.since === since && batch.until === undefined)
  const added = { marks: encodeMarks(ids), since, atMs }
  const others = batches.filter((batch) => batch !== same)
  const [first, second, ...rest] = [...others, same === undefined ? added : mergeBatches(same, added)]
  const isOverLimit = rest.length + 2 > READ_BATCHES_MAX && first !== undefined && second !== undefined
  const kept = isOverLimit
    ? [mergeBatches(first, second), ...rest]
    : [first, second, ...rest].filter((batch) => batch !== undefined)
  const marks = kept.reduce((sum, batch) => sum + (batch.marks?.length ?? 0), 0)
  const newest = kept.at(-1)
  return newest === undefined || marks <= MARKS_MAX * MARK_CHARS
    ? kept
    : [...kept.slice(0, -1), { ...newest, marks: null }]
}

function mergeBatches(a: ObjectReadBatch, b: ObjectReadBatch): ObjectReadBatch {
  const until = a.until === undefined || b.until === undefined ? undefined : Math.max(a.until, b.until)
  return {
    marks:
      a.marks === null || b.marks === null
        ? null
        : [...new Set([...splitMarks(a.marks), ...splitMarks(b.marks)])].join(''),
    since: Math.min(a.since, b.since),
    atMs: Math.max(a.atMs, b.atMs),
    ...(until !== undefined && { until }),
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
