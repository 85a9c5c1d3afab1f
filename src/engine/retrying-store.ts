import {
  SyncError,
  type Checkpoint,
  type Commit,
  type CommitOutcome,
  type Ports,
  type Store,
} from '../contract/index.ts'
import { classifyError } from './classify-error.ts'
import { storeDelayMs } from './retry.ts'
import { noCounts, type CycleCounters } from './cycle-counters.ts'

const RETRIES_MAX = 6
const RETRIED_CODES: ReadonlySet<string> = new Set(['STORE_BUSY', 'COMMIT_UNKNOWN'])

/** A store with retries: a busy database is retried, a lost response is resolved, a lost lease is an error. */
export class RetryingStore {
  readonly #store: Store
  readonly #ports: Ports
  readonly #counters: CycleCounters

  constructor(store: Store, ports: Ports, counters: CycleCounters) {
    this.#store = store
    this.#ports = ports
    this.#counters = counters
  }

  /** Retries a bounded number of times; the page is not read again for it. */
  async call<T>(call: (store: Store) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await call(this.#store)
      } catch (thrown) {
        const error = classifyError(thrown)
        if (!RETRIED_CODES.has(error.code) || attempt > RETRIES_MAX) throw error
        const ms = storeDelayMs(attempt, this.#ports.random)
        this.#counters.addRetry(ms)
        this.#ports.meter?.record('waitDuration', ms / 1_000, { 'tidemark.reason': 'store' })
        await this.#ports.clock.sleep(ms)
      }
    }
  }

  /**
   * Exactly once: a commit whose response was lost is sent again. If the first one was committed, the registry already
   * has the resulting checkpoint and refuses the second. Only our own commit can have produced it, because no other
   * runner holds this epoch.
   */
  async commit(commit: Commit): Promise<Exclude<CommitOutcome, { kind: 'fenced' | 'conflict' }>> {
    const { sync } = commit.lease.ref
    let isResponseLost = false
    const outcome = await this.call(async (store) => {
      try {
        return await store.commit(commit)
      } catch (thrown) {
        const error = classifyError(thrown)
        isResponseLost ||= error.code === 'COMMIT_UNKNOWN'
        // If the retry itself fails, the outcome of the first commit is still unknown.
        if (isResponseLost && error.code !== 'STORE_BUSY')
          throw new SyncError('COMMIT_UNKNOWN', error.message, { cause: error })
        throw error
      }
    })
    if (outcome.kind === 'fenced') throw new SyncError('LEASE_LOST', `${sync}: another runner took over.`)
    if (outcome.kind !== 'conflict') return outcome
    if (isResponseLost && hasLanded(outcome.checkpoint, commit)) {
      const headSequence = await this.call((store) => store.headSequence())
      return {
        kind: 'landed',
        version: outcome.checkpoint.version,
        headSequence,
        counts: noCounts(),
        paused: outcome.checkpoint.paused,
      }
    }
    throw new SyncError(
      'VERSION_CONFLICT',
      `${sync}: the checkpoint is at version ${outcome.checkpoint.version}; this cycle expected version ${commit.version}.`,
    )
  }
}

function hasLanded(checkpoint: Checkpoint, { transition, version }: Commit): boolean {
  if (transition.kind === 'continue')
    return checkpoint.inflight?.cycle === transition.cycle && checkpoint.inflight.page === transition.page
  if (transition.kind === 'complete')
    return checkpoint.version === version + 1 && checkpoint.committedBy === transition.cycle
  if (transition.kind === 'set')
    return (
      checkpoint.version === version + 1 && checkpoint.committedBy === null && checkpoint.committed === transition.state
    )
  return checkpoint.inflight === null && checkpoint.version === version
}
