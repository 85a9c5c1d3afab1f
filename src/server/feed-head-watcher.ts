import type { Clock, Store } from '../contract/index.ts'

const POLL_MS = 200

/** Tells whoever waits at the head of a feed that it moved. One look per tenant serves all who wait there. */
export class FeedHeadWatcher {
  readonly #clock: Clock
  readonly #stopping: AbortSignal
  readonly #tenants = new Map<string, TenantListeners>()

  constructor(clock: Clock, stopping: AbortSignal) {
    this.#clock = clock
    this.#stopping = stopping
  }

  /** Until the newest sequence is beyond `after`, the time is over, the signal is aborted or the server stops. */
  async waitBeyond(store: Store, after: number, ms: number, signal: AbortSignal): Promise<void> {
    const waiting = this.#tenants.get(store.tenant) ?? this.#startPolling(store)
    const ended = new AbortController()
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        waiting.listeners.delete(look)
        for (const other of [signal, this.#stopping]) other.removeEventListener('abort', finish)
        ended.abort()
        resolve()
      }
      const look = (position: number): void => {
        if (position > after) finish()
      }
      waiting.listeners.add(look)
      for (const other of [signal, this.#stopping]) other.addEventListener('abort', finish)
      if (signal.aborted || this.#stopping.aborted) finish()
      this.#clock.sleep(ms, ended.signal).then(() => finish()).catch(() => {})
    })
  }

  #startPolling(store: Store): TenantListeners {
    const waiting: TenantListeners = { listeners: new Set() }
    this.#tenants.set(store.tenant, waiting)
    void this.#poll(store, waiting)
    return waiting
  }

  async #poll(store: Store, waiting: TenantListeners): Promise<void> {
    // The one who called it joins in the same turn, so that there is a listener.
    do {
      // A store that cannot be asked is asked again; whoever waits finds out when it reads.
      const position = await store.headSequence().catch(() => 0)
      for (const listener of waiting.listeners) listener(position)
      await this.#clock.sleep(POLL_MS, this.#stopping).catch(() => {})
    } while (waiting.listeners.size > 0 && !this.#stopping.aborted)
    this.#tenants.delete(store.tenant)
  }
}

interface TenantListeners {
  readonly listeners: Set<(position: number) => void>
}
