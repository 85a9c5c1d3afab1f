import { Deliverer, type DelivererOptions } from './deliverer.ts'

/**
 * Delivers for many tenants. Tenants are polled one after the other, so that a thousand of them cause no more
 * concurrent queries than one.
 */
export class TenantDeliverers {
  readonly #options: DelivererOptions
  readonly #deliverers = new Map<string, Deliverer>()
  readonly #stopping = new AbortController()
  #loop: Promise<void> = Promise.resolve()

  constructor(options: DelivererOptions) {
    this.#options = options
    this.add(options.store.tenant)
  }

  add(tenant: string): void {
    const { store } = this.#options
    if (!this.#deliverers.has(tenant))
      this.#deliverers.set(
        tenant,
        new Deliverer({ ...this.#options, store: tenant === store.tenant ? store : store.forTenant(tenant) }),
      )
  }

  start(): void {
    this.#loop = this.#runLoop()
  }

  async stop(options: { graceMs?: number } = {}): Promise<void> {
    this.#stopping.abort(new Error('the deliverers are stopping'))
    await this.#loop
    await Promise.all([...this.#deliverers.values()].map((deliverer) => deliverer.stop(options)))
  }

  async #runLoop(): Promise<void> {
    const {
      ports: { clock },
      pollMs = 1_000,
    } = this.#options
    while (!this.#stopping.signal.aborted) {
      for (const deliverer of this.#deliverers.values()) if (!this.#stopping.signal.aborted) await deliverer.poll()
      await clock.sleep(pollMs, this.#stopping.signal).catch(() => {})
    }
  }
}
