import type { Ports, SyncContext } from '../../contract/index.ts'
import { createFetch, type Fetch } from '../../platform/fetch.ts'
import { NO_PARTITIONS } from '../../values/partition-overlay.ts'
import type { ResolvedProvider } from '../resolve-provider.ts'

/** A user waits for the answer. */
const LIMITS = { headersTimeoutMs: 20_000, bodyIdleMs: 10_000, bodyBytesMax: 1_048_576, wireBytesMax: 1_048_576 }

/**
 * Requests to vendors. A host may come from a user or from the vendor's answer, so only public addresses are connected
 * to, except for a provider whose base URL the program chose.
 */
export class VendorContexts {
  readonly #ports: Ports
  readonly #publicFetch: Fetch
  readonly #anyFetch: Fetch

  constructor(
    ports: Ports,
    publicFetch = createFetch({ ...LIMITS, publicOnly: true }),
    anyFetch = createFetch(LIMITS),
  ) {
    this.#ports = ports
    this.#publicFetch = publicFetch
    this.#anyFetch = anyFetch
  }

  create({ baseUrl }: ResolvedProvider, signal: AbortSignal): SyncContext {
    const { clock, random, log } = this.#ports
    return {
      fetch: baseUrl === null ? this.#publicFetch : this.#anyFetch,
      clock,
      random,
      log,
      signal,
      pacer: { wait: async () => {} },
      // Every secret of the flow is passed as a value.
      secrets: {
        get: (name) => {
          throw new Error(`The connect flow reads no secret ${name}.`)
        },
      },
      partitions: NO_PARTITIONS,
      cycle: { id: 0, mode: 'incremental', startedAt: clock.now(), page: 0 },
    }
  }
}
