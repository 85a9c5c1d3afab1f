import type { ConnectionSummary, Ports, Store } from '../contract/index.ts'

export interface ConnectionWatcherOptions {
  readonly store: Store
  readonly ports: Ports
  /** The connections of a tenant were added, removed or changed. The list is complete. */
  readonly onChange: (tenant: string, connections: readonly ConnectionSummary[]) => void
}

const POLL_MS = 1_000
/** While notifications arrive. */
const CONNECTED_POLL_MS = 15_000
const PAGE = 1_000

/**
 * Reports the tenants whose connections changed, with one query for all tenants of the store. The cost of a poll does
 * not depend on their number.
 */
export class ConnectionWatcher {
  readonly #options: ConnectionWatcherOptions
  #changeToken: string | null = null
  #isConnected = false
  #isChanged = false
  #wake: AbortController | null = null

  constructor(options: ConnectionWatcherOptions) {
    this.#options = options
  }

  /** Reports everything that changed since the last poll; everything at first. */
  async poll(): Promise<void> {
    const { store, onChange } = this.#options
    for (let hasMore = true; hasMore;) {
      const changes = await store.connectionChanges({ since: this.#changeToken, limit: PAGE })
      for (const { tenant, connections } of changes.tenants) onChange(tenant, connections)
      this.#changeToken = changes.changeToken
      hasMore = changes.hasMore
    }
  }

  /** Polls until stopped, at once after a notification. */
  async run(stopping: AbortSignal): Promise<void> {
    const { store, ports } = this.#options
    const subscription = store.subscribe({
      tenants: [],
      onChange: () => {},
      onConnectionsChange: () => this.#wakeUp(),
      onConnected: (isConnected) => {
        this.#isConnected = isConnected
        this.#wakeUp()
      },
    })
    while (!stopping.aborted) {
      if (!this.#isChanged) await this.#sleep(stopping)
      if (stopping.aborted) break
      this.#isChanged = false
      try {
        await this.poll()
      } catch (error) {
        ports.log.warn('connections could not be listed', {
          reason: error instanceof Error ? error.message : String(error),
        })
      }
    }
    await subscription.close()
  }

  #wakeUp(): void {
    this.#isChanged = true
    this.#wake?.abort(new Error('connections changed'))
  }

  async #sleep(stopping: AbortSignal): Promise<void> {
    this.#wake = new AbortController()
    const signal = AbortSignal.any([stopping, this.#wake.signal])
    await this.#options.ports.clock.sleep(this.#isConnected ? CONNECTED_POLL_MS : POLL_MS, signal).catch(() => {})
    this.#wake = null
  }
}
