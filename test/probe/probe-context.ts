import type { SyncContext } from '../../src/contract/index.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { NO_PARTITIONS } from '../../src/values/partition-overlay.ts'

const silent = (): void => {}

/** A context that sends its requests to the network, or to the given fetch. */
export function createProbeContext(given: Partial<SyncContext> = {}): SyncContext {
  return {
    fetch: (input, init) => fetch(input, init),
    clock: systemClock,
    random: systemRandom,
    signal: new AbortController().signal,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    pacer: { wait: async () => {} },
    secrets: { get: () => 'token' },
    cycle: { id: 0, mode: 'incremental', startedAt: systemClock.now(), page: 1 },
    partitions: NO_PARTITIONS,
    ...given,
  }
}
