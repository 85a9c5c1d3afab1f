import type { CycleTotals, Store, SyncRef } from '../../contract/index.ts'
import type { ActivityDocument, ActivityRange } from './documents.ts'

const HOUR_MS = 3_600_000

/** Steps that divide a day, so that they begin at round times. */
const RANGES: Readonly<Record<ActivityRange, { readonly stepMs: number; readonly steps: number }>> = {
  '1h': { stepMs: 60_000, steps: 60 },
  '24h': { stepMs: HOUR_MS / 4, steps: 96 },
  '7d': { stepMs: 2 * HOUR_MS, steps: 84 },
}

/** How long the totals of all syncs are used again: a long range reads many records, and changes slowly. */
const CACHE_MS: Readonly<Record<ActivityRange, number>> = { '1h': 4_000, '24h': 60_000, '7d': 600_000 }

interface CachedActivity {
  readonly at: number
  readonly activity: Promise<ActivityDocument>
}

const caches = new WeakMap<object, Map<string, CachedActivity>>()

/** The activity of all syncs of a tenant. Concurrent callers share one read. */
export async function readTenantActivity(
  context: object,
  store: Store,
  range: ActivityRange,
  now: number,
): Promise<ActivityDocument> {
  const cache = caches.get(context) ?? new Map<string, CachedActivity>()
  caches.set(context, cache)
  const key = `${store.tenant}\n${range}`
  let known = cache.get(key)
  if (known === undefined || now - known.at >= CACHE_MS[range] || now < known.at) {
    const activity = readTotals(store, null, range, now).then(({ window, totals }) => toActivity(window, totals, null))
    // A failed read is repeated.
    activity.catch(() => cache.delete(key))
    cache.set(key, (known = { at: now, activity }))
  }
  return await known.activity
}

/** The activity of one sync, with its lag. */
export async function readSyncActivity(
  store: Store,
  ref: SyncRef,
  range: ActivityRange,
  now: number,
): Promise<ActivityDocument> {
  const { window, totals } = await readTotals(store, ref, range, now)
  const earlier = await store.cycles(ref)
  const before = earlier.find(
    ({ stopReason, endedAt }) => stopReason === 'complete' && endedAt !== null && endedAt < window.from,
  )
  return toActivity(window, totals, computeLags(window, totals, before?.startedAt ?? null, now))
}

interface Window {
  readonly from: number
  readonly stepMs: number
  readonly steps: number
}

async function readTotals(
  store: Store,
  ref: SyncRef | null,
  range: ActivityRange,
  now: number,
): Promise<{ window: Window; totals: readonly CycleTotals[] }> {
  const { stepMs, steps } = RANGES[range]
  // Aligned to whole steps, so that a chart does not shift between two requests.
  const window = { from: (Math.floor(now / stepMs) - steps + 1) * stepMs, stepMs, steps }
  return { window, totals: await store.cycleTotals({ ref, ...window, at: now }) }
}

function toActivity(
  { from, stepMs, steps }: Window,
  totals: readonly CycleTotals[],
  lagMs: ActivityDocument['lagMs'],
): ActivityDocument {
  const byStep = new Map(totals.map((total) => [total.step, total]))
  const list = (member: 'rows' | 'cycles' | 'failed' | 'waitedMs' | 'retries'): number[] =>
    Array.from({ length: steps }, (_, step) => byStep.get(step)?.[member] ?? 0)
  return {
    from: new Date(from).toISOString(),
    stepMs,
    rows: list('rows'),
    cycles: list('cycles'),
    failed: list('failed'),
    waitedMs: list('waitedMs'),
    retries: list('retries'),
    lagMs,
  }
}

/** The lag at the end of each step: the time since the start of the last complete cycle; null before the first. */
function computeLags(
  { from, stepMs, steps }: Window,
  totals: readonly CycleTotals[],
  before: number | null,
  now: number,
): (number | null)[] {
  const starts = new Map(totals.map(({ step, completeSince }) => [step, completeSince]))
  let since = before
  return Array.from({ length: steps }, (_, step) => {
    since = starts.get(step) ?? since
    return since === null ? null : Math.max(0, Math.min(now, from + (step + 1) * stepMs) - since)
  })
}
