import type { Consumer, Store } from '../contract/index.ts'

/** Limits for the age of the oldest unprocessed change. */
const HEALTHY_MS = 300_000
const WARNING_MS = 1_800_000
const SCAN_ENTRIES_MAX = 50_000
const SCANS_MAX = 20

export type LagStatus = 'healthy' | 'warning' | 'critical'

export async function computeConsumerLag(
  store: Store,
  consumer: Consumer,
  now: number,
): Promise<{ behind: number; lagSeconds: number; status: LagStatus }> {
  const { headSequence, oldest } = await findOldestUnread(store, consumer)
  const lagMs = oldest === null ? 0 : Math.max(0, now - oldest)
  return {
    behind: Math.max(0, headSequence - consumer.sequence),
    lagSeconds: Math.floor(lagMs / 1_000),
    status: lagMs <= HEALTHY_MS ? 'healthy' : lagMs <= WARNING_MS ? 'warning' : 'critical',
  }
}

/** Returns the commit time of the oldest unprocessed change. */
async function findOldestUnread(
  store: Store,
  { sequence, databases }: Consumer,
): Promise<{ headSequence: number; oldest: number | null }> {
  for (let [after, scans] = [sequence, 1]; ; scans++) {
    const page = await store.feed({
      after,
      limit: 1,
      scanMax: SCAN_ENTRIES_MAX,
      ...(databases !== null && { databases }),
    })
    const [entry] = page.entries
    if (entry !== undefined || page.scannedSequence >= page.headSequence)
      return { headSequence: page.headSequence, oldest: entry?.committedAt ?? null }
    // The scan limit was reached within other databases: a remaining change is at most this old.
    if (scans === SCANS_MAX) return { headSequence: page.headSequence, oldest: page.scannedCommittedAt }
    after = page.scannedSequence
  }
}
