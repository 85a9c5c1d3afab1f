import type { CycleRecord } from '../../contract/index.ts'
import type { ActivityDocument } from './documents.ts'

const STEPS = 60
const SPAN_MIN_MS = 3 * 60_000
const SPAN_MAX_MS = 24 * 3_600_000

/**
 * Computes committed rows, failures and lag over time from cycle records. `follows` selects the syncs whose lag
 * counts.
 */
export function computeActivity(
  cycles: readonly CycleRecord[],
  now: number,
  follows: (cycle: CycleRecord) => boolean,
): ActivityDocument {
  const oldest = cycles.reduce((least, { startedAt }) => Math.min(least, startedAt), now)
  const stepMs = Math.ceil(Math.min(SPAN_MAX_MS, Math.max(SPAN_MIN_MS, now - oldest)) / STEPS / 1_000) * 1_000
  // Aligned to whole steps, so that a chart does not shift between two requests.
  const from = (Math.floor(now / stepMs) - STEPS + 1) * stepMs
  const rows = Array.from({ length: STEPS }, () => 0)
  const errors = Array.from({ length: STEPS }, () => 0)
  for (const cycle of cycles) {
    spreadRows(cycle, now, from, stepMs, rows)
    const at = Math.floor(((cycle.endedAt ?? now) - from) / stepMs)
    if (cycle.error !== null && at in errors) errors[at] = (errors[at] ?? 0) + 1
  }
  return {
    from: new Date(from).toISOString(),
    stepMs,
    rows: rows.map(Math.round),
    errors,
    lagMs: computeLags(cycles.filter(follows), now, from, stepMs),
  }
}

/** Distributes the rows evenly over the cycle's duration, because commit times of single pages are not recorded. */
function spreadRows(
  { startedAt, endedAt, counts }: CycleRecord,
  now: number,
  from: number,
  stepMs: number,
  rows: number[],
): void {
  const landed = counts.created + counts.updated + counts.deleted + counts.swept
  const [begin, end] = [startedAt, Math.max(startedAt + 1, endedAt ?? now)]
  for (let at = Math.max(0, Math.floor((begin - from) / stepMs)); at < STEPS && from + at * stepMs < end; at++) {
    const within = Math.min(end, from + (at + 1) * stepMs) - Math.max(begin, from + at * stepMs)
    rows[at] = (rows[at] ?? 0) + (landed * within) / (end - begin)
  }
}

function computeLags(cycles: readonly CycleRecord[], now: number, from: number, stepMs: number): (number | null)[] {
  const complete = cycles
    .flatMap(({ stopReason, worker, sync, startedAt, endedAt }) =>
      stopReason === 'complete' && endedAt !== null ? [{ name: `${worker}/${sync}`, startedAt, endedAt }] : [],
    )
    .toSorted((a, b) => a.endedAt - b.endedAt)
  const since = new Map<string, number>()
  let next = 0
  return Array.from({ length: STEPS }, (_, step) => {
    const end = Math.min(now, from + (step + 1) * stepMs)
    for (let cycle = complete[next]; cycle !== undefined && cycle.endedAt <= end; cycle = complete[++next])
      since.set(cycle.name, cycle.startedAt)
    return since.size === 0 ? null : Math.max(...[...since.values()].map((at) => Math.max(0, end - at)))
  })
}
