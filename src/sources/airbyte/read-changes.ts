import type { Change, JsonObject, Page, SyncContext } from '../../contract/index.ts'
import { lowerHorizon, measureRequest, pinHorizon } from '../../strategies/kit/horizon.ts'
import { stateRejectedError } from '../../strategies/kit/strategy-errors.ts'
import type { DatetimeCursor } from './cursor/datetime-cursor.ts'
import type { Component } from './manifest/component.ts'
import { cursorOf } from './read-page.ts'
import { readSlice, toMicros, type Position } from './read-slice.ts'
import type { Run, Slice } from './requests/run.ts'
import type { Session } from './requests/send.ts'
import { PyDateTime } from './jinja/datetime.ts'

/** The state of a stream, or of one of its partitions, that is read by its cursor. Times are microseconds as text. */
export interface ChangesState extends JsonObject {
  /** The newest time of the cursor that was committed. Absent before the first record. */
  since?: string
  /** Within a cycle: its horizon, its position, and the newest time so far. */
  untilMs?: number
  position?: Position
  newest?: string
  /** The window had no record on the pages before. */
  isEmpty?: true
  /** The window was empty once, and is requested again. */
  isRepeated?: true
  /** An answer of this cycle was ignored, so the cursor stays. */
  isSkipped?: true
}

export interface ChangesReader {
  readonly stream: Component
  readonly lagMs: number
  /** Canonical; see AirbyteStreamOptions. */
  readonly since: string | undefined
  toChange(record: JsonObject, time: bigint | null, context: SyncContext): Change
  /** Whether the cursor moves with every change of a record. Only then can a tidemark be stated. */
  readonly followsUpdates: boolean
}

/**
 * Reads the changes of one slice since its state. The cursor moves to the newest record, never past the horizon, so a
 * record that becomes visible late is within the next cycle's first window or its lookback. A window without records
 * is requested twice: a wrong empty answer would skip it.
 */
export async function readChanges(
  { stream, lagMs, since, toChange, followsUpdates }: ChangesReader,
  slice: Slice,
  state: ChangesState | undefined,
  run: Run,
  session: Session,
): Promise<Page<ChangesState>> {
  const { context } = run
  checkState(state)
  const cursor = cursorOf(stream, run)
  if (cursor === null) throw stateRejectedError('airbyte', 'the stream has no cursor')
  const pinnedMs = pinHorizon('airbyte', context.cycle, lagMs, state?.untilMs)
  const end = cursor.end(BigInt(context.cycle.startedAt) * 1_000n)
  const first = since !== undefined && toMicros(since) > cursor.start ? toMicros(since) : cursor.start
  const start = state?.since === undefined ? first : cursor.startAfter(BigInt(state.since))
  const { answer, tookMs } = await measureRequest(context, () =>
    readSlice(stream, slice, state?.position, { start, end }, run, session),
  )
  const untilMs = lowerHorizon(pinnedMs, lagMs, answer, tookMs)
  const times = answer.records.map((record) => cursor.timeOf(record))
  const newest = times.reduce<bigint | null>(
    (latest, time) => (time !== null && (latest === null || time > latest) ? time : latest),
    state?.newest === undefined ? null : BigInt(state.newest),
  )
  const changes = answer.records.map((record, index) => toChange(record, times[index] ?? null, context))
  const kept: ChangesState = {
    ...(state?.since !== undefined && { since: state.since }),
    untilMs,
    ...(newest !== null && { newest: String(newest) }),
    ...((state?.isSkipped === true || answer.isIgnored) && { isSkipped: true as const }),
  }
  if (answer.isReset) return { changes, hasMore: true, nextState: restart(kept, cursor, start, newest) }
  const isEmpty = (state?.position?.token === undefined || state.isEmpty === true) && changes.length === 0
  if (answer.endsWindow && isEmpty && state?.isRepeated !== true) {
    const position = state?.position?.from === undefined ? undefined : { from: state.position.from }
    return { changes, hasMore: true, nextState: { ...kept, ...(position && { position }), isRepeated: true } }
  }
  if (answer.next !== undefined) {
    const repeats = !answer.endsWindow && state?.isRepeated === true
    const flags = {
      ...(isEmpty && !answer.endsWindow && { isEmpty: true as const }),
      ...(repeats && { isRepeated: true as const }),
    }
    return { changes, hasMore: true, nextState: { ...kept, position: answer.next, ...flags } }
  }
  return finish(kept, changes, cursor, { end, newest, untilMs, followsUpdates })
}

function finish(
  { since, isSkipped }: ChangesState,
  changes: Change[],
  cursor: DatetimeCursor,
  facts: { end: bigint; newest: bigint | null; untilMs: number; followsUpdates: boolean },
): Page<ChangesState> {
  const horizon = BigInt(facts.untilMs) * 1_000n
  const reached = facts.newest === null ? null : facts.newest < horizon ? facts.newest : horizon
  // A newer record does not show that the ignored window before it had none.
  if (isSkipped === true)
    return { changes, hasMore: false, nextState: since === undefined ? {} : { since }, tidemark: null }
  const before = since === undefined ? null : BigInt(since)
  const next = reached === null || (before !== null && before > reached) ? before : reached
  const covered = cursor.covered(facts.end)
  const tidemark = covered < horizon ? covered : horizon
  return {
    changes,
    hasMore: false,
    nextState: next === null ? {} : { since: String(next) },
    tidemark: facts.followsUpdates ? toInstant(tidemark) : null,
  }
}

/** A source that limits the depth of its pages continues from the newest record; others start the window again. */
function restart(kept: ChangesState, cursor: DatetimeCursor, start: bigint, newest: bigint | null): ChangesState {
  const from = newest !== null && newest > start && !cursor.isDataFeed ? newest : start
  return { ...kept, position: { from: String(from) } }
}

export function toInstant(micros: bigint): string {
  return `${PyDateTime.fromEpoch(micros).isoformat().replace('+00:00', '')}Z`
}

function checkState(state: ChangesState | undefined): void {
  const times = [state?.since, state?.newest, state?.position?.from]
  const isValid = times.every((time) => time === undefined || (typeof time === 'string' && /^-?\d{1,18}$/.test(time)))
  if (!isValid) throw stateRejectedError('airbyte', 'a time is not a number of microseconds')
}
