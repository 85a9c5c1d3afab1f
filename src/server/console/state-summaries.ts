import type { CheckpointSummary, SyncStatusRow, Store } from '../../contract/index.ts'
import { redactState, type RedactedState } from '../../redaction/redact-state.ts'
import { parseFrontier, type Frontier } from '../../runner/coverage.ts'

/** The part of a state that may be shown. */
export interface StateSummary {
  readonly state: RedactedState | null
  readonly frontier: Frontier | null
}

export const EMPTY_SUMMARY: StateSummary = { state: null, frontier: null }
const SUMMARIES_MAX = 100_000

/**
 * The query for all syncs excludes states. This reads a state when its checkpoint has changed, and caches the summary.
 */
export class StateSummaryCache {
  readonly #summaries = new Map<string, { fingerprint: string; summary: StateSummary }>()

  async get(store: Store, { worker, sync, checkpoint }: SyncStatusRow): Promise<StateSummary> {
    if (checkpoint.version === 0 && checkpoint.inflight === null) return EMPTY_SUMMARY
    const name = [store.tenant, worker, sync].join('\n')
    const known = this.#summaries.get(name)
    if (known?.fingerprint === fingerprintState(checkpoint)) return known.summary
    const { committed, inflight } = await store.readCheckpoint({ worker, sync })
    const summary = { state: redactState(committed), frontier: parseFrontier(inflight?.state ?? committed) }
    if (this.#summaries.size >= SUMMARIES_MAX) this.#summaries.clear()
    this.#summaries.set(name, { fingerprint: fingerprintState(checkpoint), summary })
    return summary
  }
}

function fingerprintState({ version, inflight }: CheckpointSummary): string {
  return `${version}/${inflight?.cycle}/${inflight?.page}`
}
