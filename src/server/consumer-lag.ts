import type { Consumer, Store } from '../contract/index.ts'

/** How old the oldest change may be that a consumer has not done. */
const HEALTHY_MS = 300_000
const WARNING_MS = 1_800_000
const LOOK_SCAN_MAX = 50_000
const LOOKS_MAX = 20

export type LagStatus = 'healthy' | 'warning' | 'critical'

/** How far behind a consumer is. */
export async function lagOf(store: Store, consumer: Consumer, now: number): Promise<{ behind: number; lagSeconds: number; status: LagStatus }> {
  const { position, oldest } = await firstUndone(store, consumer)
  const lagMs = oldest === null ? 0 : Math.max(0, now - oldest)
  return {
    behind: Math.max(0, position - consumer.sequence), lagSeconds: Math.floor(lagMs / 1_000),
    status: lagMs <= HEALTHY_MS ? 'healthy' : lagMs <= WARNING_MS ? 'warning' : 'critical',
  }
}

/** When the oldest change was committed that the consumer has not done. */
async function firstUndone(store: Store, { sequence, databases }: Consumer): Promise<{ position: number; oldest: number | null }> {
  for (let [after, looks] = [sequence, 1]; ; looks++) {
    const page = await store.feed({ after, limit: 1, scanMax: LOOK_SCAN_MAX, ...(databases !== null && { databases }) })
    const [entry] = page.entries
    if (entry !== undefined || page.scanned >= page.position) return { position: page.position, oldest: entry?.committedAt ?? null }
    // So much of other databases: what is further on is at most this old.
    if (looks === LOOKS_MAX) return { position: page.position, oldest: page.scannedCommittedAt }
    after = page.scanned
  }
}
