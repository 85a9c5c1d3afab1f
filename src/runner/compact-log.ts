import type { Clock, Ports, Store } from '../contract/index.ts'

/** Upper bound; a shorter retention is also the interval. */
const COMPACT_INTERVAL_MS = 3_600_000
/**
 * The tenant's commits wait for a compaction transaction. It scans at most this many entries, and the pause between
 * two is at least as long as the last transaction took.
 */
const SCAN_MAX = 2_000
const COMPACT_PAUSE_MS = 50

/**
 * Compacts the log and the cycle records older than `keepMs`, at least hourly, until stopped. Cursors that point
 * before the compacted range expire; rows are not touched.
 */
export async function compactLogPeriodically(
  store: Store,
  { clock, log }: Ports,
  keepMs: number,
  stopping: AbortSignal,
): Promise<void> {
  while (!stopping.aborted) {
    try {
      const { removed, cycles } = await compactBefore(store, clock, clock.now() - keepMs, stopping)
      if (removed + cycles > 0) log.info('log compacted', { tenant: store.tenant, removed, cycles })
    } catch (error) {
      if (!stopping.aborted)
        log.warn('log compaction failed', {
          tenant: store.tenant,
          reason: error instanceof Error ? error.message : String(error),
        })
    }
    await clock.sleep(Math.min(COMPACT_INTERVAL_MS, keepMs), stopping).catch(() => {})
  }
}

async function compactBefore(
  store: Store,
  clock: Clock,
  before: number,
  stopping: AbortSignal,
): Promise<{ removed: number; cycles: number }> {
  let [removed, cycles] = [0, 0]
  for (;;) {
    const startedAt = clock.now()
    const step = await store.compact({ before, scanMax: SCAN_MAX, at: startedAt })
    removed += step.removedEntries
    cycles += step.removedCycles
    if (!step.hasMore) return { removed, cycles }
    await clock.sleep(COMPACT_PAUSE_MS + clock.now() - startedAt, stopping)
  }
}
