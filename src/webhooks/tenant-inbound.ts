import type { Secrets } from '../contract/index.ts'
import { InboundWebhooks, type InboundOptions, type Reception } from './inbound.ts'
import type { InboundDelivery } from './verify/verify.ts'

export interface TenantInboundOptions extends Omit<InboundOptions, 'secrets' | 'proofs'> {
  readonly secretsOf: (tenant: string) => Secrets
  /** Those of this tenant alone. */
  readonly ownSecretsOf: (tenant: string) => Secrets
}

const LOOK_MS = 5_000

/**
 * Takes the messages of vendors for many tenants, each at an address of its own. What was kept is looked after for one tenant
 * after the other, so that a thousand of them ask no more at once than one does.
 */
export class TenantInbound {
  readonly #options: TenantInboundOptions
  readonly #tenants = new Map<string, InboundWebhooks>()
  readonly #stopping = new AbortController()
  #loop: Promise<void> = Promise.resolve()

  constructor(options: TenantInboundOptions) {
    this.#options = options
    this.add(options.store.tenant)
  }

  add(tenant: string): void {
    if (this.#tenants.has(tenant)) return
    const { store, secretsOf, ownSecretsOf, ...rest } = this.#options
    const isFirst = tenant === store.tenant
    this.#tenants.set(tenant, new InboundWebhooks({
      ...rest, store: isFirst ? store : store.forTenant(tenant), secrets: secretsOf(tenant),
      // With a secret that is everybody's, any tenant could sign for any other.
      proofs: isFirst ? secretsOf(tenant) : ownSecretsOf(tenant),
    }))
  }

  /** A tenant of null is the one that the process was started for. */
  async receive(tenant: string | null, worker: string, name: string, delivery: InboundDelivery, requestId?: string): Promise<Reception> {
    const own = this.#tenants.get(this.#options.store.tenant)!
    if (tenant === null) return own.receive(worker, name, delivery, { requestId })
    const inbound = this.#tenants.get(tenant)
    return inbound === undefined ? own.refuse(worker, name, delivery, { requestId }) : inbound.receive(worker, name, delivery, { requestId, isAddressed: true })
  }

  start(): void {
    if (this.#options.webhooks.some(({ later }) => later === true)) this.#loop = this.#keepLooking()
  }

  /** What is under way ends; what is kept stays for whoever comes next. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the webhooks stop'))
    await this.#loop
    await Promise.all([...this.#tenants.values()].map((inbound) => inbound.settle()))
  }

  async #keepLooking(): Promise<void> {
    const { ports: { clock } } = this.#options
    while (!this.#stopping.signal.aborted) {
      for (const inbound of this.#tenants.values()) if (!this.#stopping.signal.aborted) await inbound.look()
      await clock.sleep(LOOK_MS, this.#stopping.signal).catch(() => {})
    }
  }
}
