import type { Clock, Ports, Store } from '../contract/index.ts'

/** At the most; what is kept for less is looked after as often as that. */
const COMPACT_INTERVAL_MS = 3_600_000
/** Of the log in one transaction, for which the tenant's commits wait; between two they have at least as long, and this. */
const SCAN_MAX = 2_000
const COMPACT_PAUSE_MS = 50

/**
 * Compacts the log, and the record of cycles with it, of what is older than so long, every hour or sooner, until stopped. Whoever reads from further back is told that
 * its place has expired; rows are not touched.
 */
export async function compactLogPeriodically(store: Store, { clock, log }: Ports, keepMs: number, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    try {
      const { removed, cycles } = await compactBefore(store, clock, clock.now() - keepMs, stopping)
      if (removed + cycles > 0) log.info('the log was compacted', { tenant: store.tenant, removed, cycles })
    } catch (error) {
      if (!stopping.aborted) log.warn('the log could not be compacted', { tenant: store.tenant, reason: error instanceof Error ? error.message : String(error) })
    }
    await clock.sleep(Math.min(COMPACT_INTERVAL_MS, keepMs), stopping).catch(() => {})
  }
}

async function compactBefore(store: Store, clock: Clock, before: number, stopping: AbortSignal): Promise<{ removed: number; cycles: number }> {
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
