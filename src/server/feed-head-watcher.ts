import type { Clock, Store } from '../contract/index.ts'

const POLL_MS = 200

/** Notifies waiting readers when the feed's head advances. One poll per tenant serves all of them. */
export class FeedHeadWatcher {
  readonly #clock: Clock
  readonly #stopping: AbortSignal
  readonly #tenants = new Map<string, TenantListeners>()

  constructor(clock: Clock, stopping: AbortSignal) {
    this.#clock = clock
    this.#stopping = stopping
  }

  /** Resolves when the head is beyond `after`, the time is over, the signal is aborted or the server stops. */
  async waitBeyond(store: Store, after: number, ms: number, signal: AbortSignal): Promise<void> {
    const tenant = this.#tenants.get(store.tenant) ?? this.#startPolling(store)
    const ended = new AbortController()
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        tenant.listeners.delete(onHead)
        for (const other of [signal, this.#stopping]) other.removeEventListener('abort', finish)
        ended.abort()
        resolve()
      }
      const onHead = (headSequence: number): void => {
        if (headSequence > after) finish()
      }
      tenant.listeners.add(onHead)
      for (const other of [signal, this.#stopping]) other.addEventListener('abort', finish)
      if (signal.aborted || this.#stopping.aborted) finish()
      this.#clock
        .sleep(ms, ended.signal)
        .then(() => finish())
        .catch(() => {})
    })
  }

  #startPolling(store: Store): TenantListeners {
    const tenant: TenantListeners = { listeners: new Set() }
    this.#tenants.set(store.tenant, tenant)
    void this.#poll(store, tenant)
    return tenant
  }

  async #poll(store: Store, tenant: TenantListeners): Promise<void> {
    // The caller adds its listener synchronously, so there is at least one.
    do {
      // An unreachable store is polled again; readers get the error when they read.
      const headSequence = await store.headSequence().catch(() => 0)
      for (const listener of tenant.listeners) listener(headSequence)
      await this.#clock.sleep(POLL_MS, this.#stopping).catch(() => {})
    } while (tenant.listeners.size > 0 && !this.#stopping.aborted)
    this.#tenants.delete(store.tenant)
  }
}

interface TenantListeners {
  readonly listeners: Set<(headSequence: number) => void>
}
