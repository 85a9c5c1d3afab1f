import { SyncError, type JsonObject, type JsonValue } from '../../../contract/index.ts'
import { PyDateTime } from '../jinja/datetime.ts'
import { addDuration, parseDuration, PyDuration, PyTimeDelta } from '../jinja/duration.ts'
import { formatTime, parseTime } from '../jinja/macros.ts'
import { negate } from '../jinja/operators.ts'
import { print } from '../jinja/printing.ts'
import { TemplateError } from '../jinja/values.ts'
import { isComponent, textOf, texts, type Component } from '../manifest/component.ts'
import { getAt } from '../records/extract.ts'
import { injectOption, type RequestParts } from '../requests/request-parts.ts'
import type { Run } from '../requests/run.ts'
import { toPython } from '../jinja/interpolation.ts'

type Duration = PyTimeDelta | PyDuration

const DAY_MICROS = 86_400_000_000n

/** A `DatetimeBasedCursor`. Times are microseconds since the epoch. */
export class DatetimeCursor {
  readonly #component: Component
  readonly #run: Run
  readonly #format: string
  readonly #step: Duration | null
  readonly #granularity: Duration | null
  readonly #lookback: Duration | null

  constructor(component: Component, run: Run) {
    this.#component = component
    this.#run = run
    this.#format = textOf(component.datetime_format) ?? '%Y-%m-%dT%H:%M:%S.%f%z'
    this.#step = this.#readDuration(component.step)
    this.#granularity = this.#readDuration(component.cursor_granularity)
    this.#lookback = this.#readDuration(component.lookback_window)
  }

  get field(): string[] {
    return this.#run.text(this.#component.cursor_field, this.#component).split('.')
  }

  /** Reads newest first, and ends at the first record that is older than the cursor. */
  get isDataFeed(): boolean {
    return this.#component.is_data_feed === true
  }

  get start(): bigint {
    return this.#readTime(this.#component.start_datetime)
  }

  /** The end of the cycle: the configured end, or the time given. */
  end(now: bigint): bigint {
    const { end_datetime: end } = this.#component
    if (end === undefined || end === null) return now
    const configured = this.#readTime(end)
    return configured < now ? configured : now
  }

  /**
   * Where a cycle starts after one that read up to `since`. One unit earlier than in Airbyte: a source whose lower bound
   * is exclusive would otherwise omit records of that time.
   */
  startAfter(since: bigint): bigint {
    const earlier = this.#lookback === null ? since : shift(since, negate(this.#lookback))
    const start = this.start
    const overlapping = this.#isCoarse ? earlier : earlier - this.#unit
    return overlapping < start ? start : overlapping
  }

  /** The end of the window that starts at `from`. */
  windowEnd(from: bigint, end: bigint): bigint {
    if (this.#step === null) return end
    const next = shift(from, this.#step)
    return next < end && next > from ? next : end
  }

  /**
   * The end of a window as the request has it. Airbyte subtracts the granularity, so a record between the two windows
   * is in neither if its time is finer. Here windows touch, and a record in both is resolved by its key. With a
   * granularity of days the whole last day belongs to a window, and windows do not overlap.
   */
  shownEnd(to: bigint, end: bigint): bigint {
    if (to >= end || this.#granularity === null || !this.#isCoarse) return to
    return shift(to, negate(this.#granularity))
  }

  /** The values of a window for templates. */
  window(from: bigint, to: bigint): JsonObject {
    const { partition_field_start: first, partition_field_end: last } = this.#component
    return {
      [this.#run.text(first ?? 'start_time', this.#component)]: this.format(from),
      [this.#run.text(last ?? 'end_time', this.#component)]: this.format(to),
    }
  }

  addOptions(parts: RequestParts, window: JsonObject): void {
    const [from, to] = Object.values(window)
    const { start_time_option: first, end_time_option: last } = this.#component
    if (isComponent(first) && from !== undefined) injectOption(parts, first, toPython(from), this.#run)
    if (isComponent(last) && to !== undefined) injectOption(parts, last, toPython(to), this.#run)
  }

  format(micros: bigint): string {
    return formatTime(PyDateTime.fromEpoch(micros), this.#format)
  }

  /** The last time that a request up to `to` has covered, whether or not its upper bound is inclusive. */
  covered(to: bigint): bigint {
    return this.parse(this.format(to)) - 1n
  }

  parse(text: string): bigint {
    return parseTime(text, this.#format).epoch
  }

  /** The cursor's time of a record; null if it has none or it has another format. */
  timeOf(record: JsonObject): bigint | null {
    const value = getAt(record, this.field)
    if (value === undefined || value === null || value === '') return null
    const text = print(toPython(value))
    for (const format of [...texts(this.#component.cursor_datetime_formats), this.#format]) {
      try {
        return parseTime(text, format).epoch
      } catch (error) {
        if (!(error instanceof TemplateError)) throw error
      }
    }
    return null
  }

  get #isCoarse(): boolean {
    return this.#unit >= DAY_MICROS
  }

  /** The granularity, or the smallest difference that the format shows. */
  get #unit(): bigint {
    const declared = this.#granularity
    if (declared instanceof PyDuration) return DAY_MICROS
    const shown = smallestUnit(this.#format)
    return declared !== null && declared.micros > shown ? declared.micros : shown
  }

  #readDuration(field: JsonValue | undefined): Duration | null {
    if (field === undefined || field === null || field === '') return null
    const text = this.#run.text(field, this.#component)
    return text === '' || text === 'None' ? null : this.#guard(() => parseDuration(text))
  }

  /** A text, or a `MinMaxDatetime`. */
  #readTime(field: JsonValue | undefined): bigint {
    const limits = isComponent(field) ? field : null
    const owner = limits ?? this.#component
    const declared = textOf(limits?.datetime_format) ?? ''
    const format = declared === '' ? this.#format : declared
    const read = (value: JsonValue | undefined): bigint | null => {
      if (value === undefined || value === null) return null
      const text = this.#run.text(value, owner)
      return text === '' ? null : this.#guard(() => parseTime(text, format).epoch)
    }
    const time = read(limits === null ? field : limits.datetime)
    if (time === null)
      throw new SyncError(
        'SYNC_INVALID',
        `Stream "${this.#run.stream}": its start or end time is empty. Set it in \`settings\`.`,
      )
    const [min, max] = [read(limits?.min_datetime), read(limits?.max_datetime)]
    const raised = min !== null && min > time ? min : time
    return max !== null && max < raised ? max : raised
  }

  #guard<Result>(read: () => Result): Result {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error
      throw new SyncError(
        'SYNC_INVALID',
        `Stream "${this.#run.stream}", DatetimeBasedCursor: ${error.message}. Check the times in \`settings\`.`,
      )
    }
  }
}

function shift(micros: bigint, duration: Duration): bigint {
  return addDuration(PyDateTime.fromEpoch(micros), duration).epoch
}

function smallestUnit(format: string): bigint {
  if (/%f|epoch_microseconds|s_as_float/.test(format)) return 1n
  if (/%ms|%_ms/.test(format)) return 1_000n
  if (/%S|%s|%T|%X|%c/.test(format)) return 1_000_000n
  if (/%M/.test(format)) return 60_000_000n
  return /%H|%I/.test(format) ? 3_600_000_000n : DAY_MICROS
}
