import type { Secrets } from '../contract/index.ts'
import { InboundWebhooks, type InboundWebhooksOptions, type ReceiveResult } from './inbound-webhooks.ts'
import { required } from '../values/required.ts'
import type { InboundDelivery } from './verify/verify.ts'

export interface TenantInboundWebhooksOptions extends Omit<InboundWebhooksOptions, 'secrets' | 'verificationSecrets'> {
  readonly secretsOf: (tenant: string) => Secrets
  /** Secrets that belong to this tenant only. */
  readonly ownSecretsOf: (tenant: string) => Secrets
}

const RETRY_POLL_MS = 5_000

/**
 * Receives webhooks of vendors for many tenants, each at its own address. Stored messages are retried one tenant after
 * the other, so that a thousand tenants cause no more concurrent queries than one.
 */
export class TenantInboundWebhooks {
  readonly #options: TenantInboundWebhooksOptions
  readonly #tenants = new Map<string, InboundWebhooks>()
  readonly #stopping = new AbortController()
  #loop: Promise<void> = Promise.resolve()

  constructor(options: TenantInboundWebhooksOptions) {
    this.#options = options
    this.add(options.store.tenant)
  }

  add(tenant: string): void {
    if (this.#tenants.has(tenant)) return
    const { store, secretsOf, ownSecretsOf, ...rest } = this.#options
    const isFirst = tenant === store.tenant
    this.#tenants.set(
      tenant,
      new InboundWebhooks({
        ...rest,
        store: isFirst ? store : store.forTenant(tenant),
        secrets: secretsOf(tenant),
        // With a shared secret, any tenant could sign for any other.
        verificationSecrets: isFirst ? secretsOf(tenant) : ownSecretsOf(tenant),
      }),
    )
  }

  /** A null tenant is the one that the process was started for. */
  async receive(
    tenant: string | null,
    worker: string,
    name: string,
    delivery: InboundDelivery,
    requestId?: string,
  ): Promise<ReceiveResult> {
    const own = required(this.#tenants.get(this.#options.store.tenant), 'the tenant of the process')
    if (tenant === null) return own.receive(worker, name, delivery, { requestId })
    const inbound = this.#tenants.get(tenant)
    return inbound === undefined
      ? own.refuse(worker, name, delivery, { requestId })
      : inbound.receive(worker, name, delivery, { requestId, isTenantAddressed: true })
  }

  start(): void {
    if (this.#options.webhooks.some(({ later }) => later === true)) this.#loop = this.#runLoop()
  }

  /** Waits for messages in progress; stored ones remain for the next process. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the webhooks are stopping'))
    await this.#loop
    await Promise.all([...this.#tenants.values()].map((inbound) => inbound.drain()))
  }

  async #runLoop(): Promise<void> {
    const {
      ports: { clock },
    } = this.#options
    while (!this.#stopping.signal.aborted) {
      for (const inbound of this.#tenants.values()) if (!this.#stopping.signal.aborted) await inbound.retryStored()
      await clock.sleep(RETRY_POLL_MS, this.#stopping.signal).catch(() => {})
    }
  }
}
