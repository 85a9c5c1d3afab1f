import {
  NOOP_SPAN,
  type Delivery,
  type FeedPage,
  type Log,
  type Ports,
  type Store,
  type Webhook,
  type WebhookClaim,
} from '../contract/index.ts'
import { createChildLog } from '../telemetry/child-log.ts'
import { PAGE_BYTES_MAX } from '../feed/read-feed-page.ts'
import { buildRequestAttributes, computeElapsedSeconds } from '../telemetry/request-attributes.ts'
import type { ResourceTypes } from '../feed/resource-type.ts'
import { createDelivery } from './message.ts'
import { DeliveryRound, FAILURE_STREAK_MAX, PENDING_MAX, type DeliveryChain } from './delivery-round.ts'
import { parseActiveSecrets } from './secrets.ts'
import type { DeliveryOutcome, WebhookSender } from './send.ts'
import { createSignatureHeaders } from './sign.ts'

export interface DelivererOptions {
  readonly store: Store
  readonly ports: Ports
  readonly send: WebhookSender
  /** Unique per process. */
  readonly holder: string
  readonly isDead?: (holder: string) => boolean
  /** Interval at which the store is polled for due deliveries; defaults to one second. */
  readonly pollMs?: number
  readonly claimTtlMs?: number
  readonly resourceTypes?: ResourceTypes
}

const BATCH_SIZE = 50
/** Concurrent messages to one receiver. */
const CONCURRENCY = 8
const SCAN_MAX = 50_000

/**
 * Delivers log entries to every webhook, in one or many processes on one store: the process that claims a webhook delivers
 * to it. Webhooks are independent, so a slow receiver does not delay others.
 *
 * The sequence advances only at the end of a round: after a crash the round is sent again with the same ids, so delivery
 * is at least once.
 */
export class Deliverer {
  readonly #options: DelivererOptions
  readonly #active = new Map<string, Promise<void>>()
  readonly #stopping = new AbortController()
  /** Aborts messages in flight. */
  readonly #aborting = new AbortController()
  #loop: Promise<void> = Promise.resolve()

  readonly #log: Log

  constructor(options: DelivererOptions) {
    this.#options = options
    this.#log = createChildLog(options.ports.log, { tenant: options.store.tenant })
  }

  start(): void {
    this.#loop = this.#runLoop()
  }

  /** Starts due deliveries once; for a caller that polls many deliverers in turn. */
  async poll(): Promise<void> {
    try {
      await this.#startDue()
    } catch (error) {
      this.#log.warn('webhooks could not be read', { reason: errorMessage(error) })
    }
  }

  /** Sends no new message and waits for those in flight, then aborts them: the next holder sends them again. */
  async stop({ graceMs = 10_000 }: { graceMs?: number } = {}): Promise<void> {
    this.#stopping.abort(new Error('the deliverer is stopping'))
    const graceOver = new AbortController()
    const timeout = this.#options.ports.clock
      .sleep(graceMs, graceOver.signal)
      .then(() => this.#aborting.abort(new Error('the deliverer is stopping')))
      .catch(() => {})
    await this.#loop
    await Promise.all(this.#active.values())
    graceOver.abort(new Error('all deliveries have ended'))
    await timeout
  }

  async #runLoop(): Promise<void> {
    const {
      ports: { clock },
      pollMs = 1_000,
    } = this.#options
    while (!this.#stopping.signal.aborted) {
      await this.poll()
      await clock.sleep(pollMs, this.#stopping.signal).catch(() => {})
    }
  }

  async #startDue(): Promise<void> {
    const {
      store,
      ports: { clock },
    } = this.#options
    const webhooks = await store.webhooks()
    if (webhooks.length === 0) return
    const headSequence = await store.headSequence()
    for (const webhook of webhooks) {
      if (this.#active.has(webhook.id) || !isDue(webhook, headSequence, clock.now())) continue
      const work = this.#deliver(webhook).catch((error: unknown) =>
        this.#webhookLog(webhook).warn('webhook delivery failed', { reason: errorMessage(error) }),
      )
      this.#active.set(
        webhook.id,
        work.finally(() => this.#active.delete(webhook.id)),
      )
    }
  }

  /** Runs rounds while there is work. */
  async #deliver({ id, heldBy }: Webhook): Promise<void> {
    const {
      store,
      ports: { clock },
      holder,
      isDead,
      claimTtlMs = 60_000,
    } = this.#options
    const evict = heldBy !== null && isDead?.(heldBy) === true ? { evictHolder: heldBy } : {}
    const claim = await store.claimWebhook(id, { holder, ttlMs: claimTtlMs, at: clock.now(), ...evict })
    if (claim === null) return
    const aborting = new AbortController()
    const onAbort = (): void => aborting.abort(new Error('the deliverer is stopping'))
    this.#aborting.signal.addEventListener('abort', onAbort)
    const heartbeat = this.#heartbeatClaim(claim, claimTtlMs, aborting)
    try {
      let webhook: Webhook | null = claim.webhook
      while (webhook !== null && !this.#stopping.signal.aborted && !aborting.signal.aborted)
        webhook = await this.#runRound(webhook, claim, aborting.signal)
    } finally {
      this.#aborting.signal.removeEventListener('abort', onAbort)
      heartbeat.abort(new Error('the round is over'))
      await store.releaseWebhook(claim)
    }
  }

  /** Returns the webhook after the round; null if there is nothing more to do now. */
  async #runRound(webhook: Webhook, claim: WebhookClaim, aborting: AbortSignal): Promise<Webhook | null> {
    const {
      store,
      ports: { clock, random },
    } = this.#options
    const now = clock.now()
    if (webhook.disabledReason !== null || (webhook.retryAt ?? 0) > now) return null
    const pending = await store.deliveries({ webhook: webhook.id, failed: false, limit: PENDING_MAX + BATCH_SIZE })
    const page = await this.#readNextPage(webhook, pending, now)
    if (page !== null && DeliveryRound.hasGap(webhook, page))
      return await this.#disable(
        webhook,
        claim,
        'The log was compacted beyond the position of this webhook. Run `tidemark webhooks replay <id> --all` to start again.',
      )
    const newDeliveries = (page?.entries ?? [])
      .filter(({ action }) => webhook.actions === null || webhook.actions.includes(action))
      .map((entry) => createDelivery(store.tenant, entry, now, this.#options.resourceTypes))
    const round = new DeliveryRound({ webhook, pending, newDeliveries, page, now, jitter: () => random.next() })
    if (round.chains.length === 0 && (page === null || page.scannedSequence === webhook.sequence)) return null

    const queue = [...round.chains]
    await Promise.all(
      Array.from({ length: CONCURRENCY }, async () => {
        for (let chain = queue.shift(); chain !== undefined; chain = queue.shift())
          await this.#sendChain(webhook, claim, round, chain, aborting)
      }),
    )
    const { summary } = round
    if (!(await store.recordDeliveries(claim, summary))) return null
    if (summary.progress.disabledReason !== null)
      this.#webhookLog(webhook).error('webhook disabled', { reason: summary.progress.disabledReason })
    return {
      ...webhook,
      ...summary.progress,
      failed: webhook.failed + summary.undelivered.filter(({ failed }) => failed).length,
    }
  }

  async #readNextPage(webhook: Webhook, pending: readonly Delivery[], now: number): Promise<FeedPage | null> {
    const isDown = webhook.failureStreak >= FAILURE_STREAK_MAX
    if (pending.length >= PENDING_MAX || (isDown && pending.some(({ nextAt }) => nextAt <= now))) return null
    return await this.#options.store.feed({
      after: webhook.sequence,
      limit: isDown ? 1 : BATCH_SIZE,
      scanMax: SCAN_MAX,
      bytesMax: PAGE_BYTES_MAX,
      ...(webhook.databases !== null && { databases: webhook.databases }),
    })
  }

  async #sendChain(
    webhook: Webhook,
    claim: WebhookClaim,
    round: DeliveryRound,
    chain: DeliveryChain,
    aborting: AbortSignal,
  ): Promise<void> {
    const {
      store,
      ports: { clock },
    } = this.#options
    for (const [at, delivery] of chain.entries()) {
      const startedAt = clock.now()
      if (round.isOver || this.#stopping.signal.aborted || aborting.aborted)
        return round.postpone(chain.slice(at), startedAt)
      // Read for every message: a rotation, edit or pause applies from the time it is acknowledged.
      const secrets = await store.webhookSecrets(claim)
      if (secrets === null) return round.postpone(chain.slice(at), startedAt)
      const outcome = await this.#send({ ...webhook, secrets }, delivery, startedAt, aborting)
      // Aborted by this process: the outcome is unknown, and the receiver is not at fault.
      if (outcome.status === null && aborting.aborted) return round.postpone(chain.slice(at), clock.now())
      if (!round.recordOutcome(delivery, chain.slice(at + 1), outcome, startedAt, clock.now())) return
    }
  }

  /** Sends one attempt, with span, metric and log. */
  async #send(
    webhook: Webhook,
    { messageId, body, attempts }: Delivery,
    startedAt: number,
    aborting: AbortSignal,
  ): Promise<DeliveryOutcome> {
    const {
      store,
      ports: { clock, tracer, meter },
      send,
    } = this.#options
    const attempt = attempts + 1
    const span =
      tracer?.start(
        'delivery',
        {
          'tidemark.tenant': store.tenant,
          'tidemark.webhook': webhook.id,
          'tidemark.attempt': attempt,
          'tidemark.request_id': messageId,
          ...buildRequestAttributes(webhook.url, 'POST'),
        },
        null,
      ) ?? NOOP_SPAN
    const secrets = parseActiveSecrets(webhook.secrets, startedAt).map(({ secret }) => secret)
    return span.within(async () => {
      const outcome = await send({
        url: webhook.url,
        allow: webhook.allow,
        body,
        headers: { ...span.headers, ...createSignatureHeaders(secrets, messageId, startedAt, body) },
        signal: aborting,
      })
      const { kind, status } = outcome
      meter?.record('deliveryDuration', computeElapsedSeconds(startedAt, clock.now()), { 'tidemark.outcome': kind })
      const level = kind === 'delivered' ? 'debug' : 'info'
      this.#webhookLog(webhook)[level](
        kind === 'delivered' ? 'webhook message delivered' : 'webhook message not delivered',
        { requestId: messageId, attempt, status },
      )
      span.setAttributes({ 'tidemark.outcome': kind, 'http.response.status_code': status ?? undefined })
      span.end(kind === 'delivered' ? null : String(status ?? 'no_response'))
      return outcome
    })
  }

  #webhookLog({ id }: Webhook): Log {
    return createChildLog(this.#log, { webhook: id })
  }

  async #disable(webhook: Webhook, claim: WebhookClaim, reason: string): Promise<null> {
    this.#webhookLog(webhook).error('webhook disabled', { reason })
    await this.#options.store.recordDeliveries(claim, {
      progress: { ...webhook, disabledReason: reason },
      delivered: [],
      undelivered: [],
    })
    return null
  }

  #heartbeatClaim(claim: WebhookClaim, ttlMs: number, aborting: AbortController): AbortController {
    const {
      store,
      ports: { clock },
    } = this.#options
    const ending = new AbortController()
    const renew = async (): Promise<void> => {
      for (let renewedAt = clock.now(); ;) {
        await clock.sleep(ttlMs / 3, ending.signal)
        const at = clock.now()
        const isRenewed = await store.renewWebhook(claim, { ttlMs, at }).catch(() => null)
        if (isRenewed === true) renewedAt = at
        if (isRenewed === false || clock.now() - renewedAt >= ttlMs)
          return aborting.abort(new Error('the claim was lost'))
      }
    }
    renew().catch(() => {})
    return ending
  }
}

function isDue(
  { disabledReason, retryAt, sequence, waiting, dueAt }: Webhook,
  headSequence: number,
  now: number,
): boolean {
  if (disabledReason !== null || (retryAt ?? 0) > now) return false
  return (dueAt !== null && dueAt <= now) || (sequence < headSequence && waiting < PENDING_MAX)
}

function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
