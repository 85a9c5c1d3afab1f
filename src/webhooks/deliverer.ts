import { NO_SPAN, type Delivery, type FeedPage, type Log, type Ports, type Store, type Webhook, type WebhookClaim } from '../contract/index.ts'
import { childLog } from '../engine/child-log.ts'
import { PAGE_BYTES_MAX } from '../feed/read-page.ts'
import { requestAttributes, secondsBetween } from '../engine/request-attributes.ts'
import type { ResourceTypes } from '../feed/resource-type.ts'
import { deliveryOf } from './message.ts'
import { Round, STREAK_MAX, WAITING_MAX, type Chain } from './round.ts'
import { secretsOf } from './secrets.ts'
import type { Outcome, Send } from './send.ts'
import { signatureHeaders } from './sign.ts'

export interface DelivererOptions {
  readonly store: Store
  readonly ports: Ports
  readonly send: Send
  /** Different for every process. */
  readonly holder: string
  readonly isDead?: (holder: string) => boolean
  /** How often the store is asked whether there is something to deliver; every second unless said otherwise. */
  readonly pollMs?: number
  readonly claimTtlMs?: number
  readonly resourceTypes?: ResourceTypes
}

const BATCH = 50
/** Messages on their way to one receiver at once. */
const AT_ONCE = 8
const SCAN_MAX = 50_000

/**
 * Delivers what the log holds to every webhook, in one process or in many on one store: whoever has the claim of a webhook
 * delivers to it. Each goes at its own pace, so that a slow receiver holds up no other.
 *
 * The place in the log moves when a round is over and not before: after a crash the round is sent again, with the same ids.
 */
export class Deliverer {
  readonly #options: DelivererOptions
  readonly #busy = new Map<string, Promise<void>>()
  readonly #stopping = new AbortController()
  /** Ends what is still on its way. */
  readonly #ending = new AbortController()
  #loop: Promise<void> = Promise.resolve()

  readonly #log: Log

  constructor(options: DelivererOptions) {
    this.#options = options
    this.#log = childLog(options.ports.log, { tenant: options.store.tenant })
  }

  start(): void {
    this.#loop = this.#keepLooking()
  }

  /** Begins whatever is due; for whoever looks after many of these in turn, and starts none. */
  async look(): Promise<void> {
    try {
      await this.#lookAround()
    } catch (error) {
      this.#log.warn('the webhooks could not be looked at', { reason: messageOf(error) })
    }
  }

  /** No new message is sent; those on their way are waited for, and then left: they are sent again by whoever comes next. */
  async stop({ graceMs = 10_000 }: { graceMs?: number } = {}): Promise<void> {
    this.#stopping.abort(new Error('the deliverer stops'))
    const patience = new AbortController()
    const lost = this.#options.ports.clock.sleep(graceMs, patience.signal).then(() => this.#ending.abort(new Error('the deliverer stops'))).catch(() => {})
    await this.#loop
    await Promise.all(this.#busy.values())
    patience.abort(new Error('all have ended'))
    await lost
  }

  async #keepLooking(): Promise<void> {
    const { ports: { clock }, pollMs = 1_000 } = this.#options
    while (!this.#stopping.signal.aborted) {
      await this.look()
      await clock.sleep(pollMs, this.#stopping.signal).catch(() => {})
    }
  }

  async #lookAround(): Promise<void> {
    const { store, ports: { clock } } = this.#options
    const webhooks = await store.webhooks()
    if (webhooks.length === 0) return
    const position = await store.position()
    for (const webhook of webhooks) {
      if (this.#busy.has(webhook.id) || !isDue(webhook, position, clock.now())) continue
      const work = this.#deliver(webhook).catch((error: unknown) => this.#logOf(webhook).warn('a webhook could not be served', { reason: messageOf(error) }))
      this.#busy.set(webhook.id, work.finally(() => this.#busy.delete(webhook.id)))
    }
  }

  /** Round after round, while there is something to do. */
  async #deliver({ id, heldBy }: Webhook): Promise<void> {
    const { store, ports: { clock }, holder, isDead, claimTtlMs = 60_000 } = this.#options
    const evict = heldBy !== null && isDead?.(heldBy) === true ? { evict: heldBy } : {}
    const claim = await store.claimWebhook(id, { holder, ttlMs: claimTtlMs, at: clock.now(), ...evict })
    if (claim === null) return
    const cut = new AbortController()
    const leave = (): void => cut.abort(new Error('the deliverer stops'))
    this.#ending.signal.addEventListener('abort', leave)
    const keeping = this.#keepClaim(claim, claimTtlMs, cut)
    try {
      let webhook: Webhook | null = claim.webhook
      while (webhook !== null && !this.#stopping.signal.aborted && !cut.signal.aborted) webhook = await this.#round(webhook, claim, cut.signal)
    } finally {
      this.#ending.signal.removeEventListener('abort', leave)
      keeping.abort(new Error('the round is over'))
      await store.releaseWebhook(claim)
    }
  }

  /** Where the webhook stands after it; null when there is nothing more to do for now. */
  async #round(webhook: Webhook, claim: WebhookClaim, cut: AbortSignal): Promise<Webhook | null> {
    const { store, ports: { clock, random } } = this.#options
    const now = clock.now()
    if (webhook.disabled !== null || (webhook.retryAt ?? 0) > now) return null
    const waiting = await store.deliveries({ webhook: webhook.id, dead: false, limit: WAITING_MAX + BATCH })
    const page = await this.#readOn(webhook, waiting, now)
    if (page !== null && Round.gapIn(webhook, page)) return await this.#disable(webhook, claim, 'The log was compacted further than this webhook had read. `tidemark webhooks replay <id> --all` begins anew.')
    const fresh = (page?.entries ?? []).filter(({ action }) => webhook.actions === null || webhook.actions.includes(action)).map((entry) => deliveryOf(store.tenant, entry, now, this.#options.resourceTypes))
    const round = new Round({ webhook, waiting, fresh, page, now, jitter: () => random.next() })
    if (round.chains.length === 0 && (page === null || page.scanned === webhook.position)) return null

    const queue = [...round.chains]
    await Promise.all(Array.from({ length: AT_ONCE }, async () => {
      for (let chain = queue.shift(); chain !== undefined; chain = queue.shift()) await this.#sendChain(webhook, claim, round, chain, cut)
    }))
    const { note } = round
    if (!(await store.noteDeliveries(claim, note))) return null
    if (note.standing.disabled !== null) this.#logOf(webhook).error('a webhook was disabled', { reason: note.standing.disabled })
    return { ...webhook, ...note.standing, dead: webhook.dead + note.kept.filter(({ dead }) => dead).length }
  }

  async #readOn(webhook: Webhook, waiting: readonly Delivery[], now: number): Promise<FeedPage | null> {
    const isDown = webhook.streak >= STREAK_MAX
    if (waiting.length >= WAITING_MAX || (isDown && waiting.some(({ nextAt }) => nextAt <= now))) return null
    return await this.#options.store.feed({ after: webhook.position, limit: isDown ? 1 : BATCH, scanMax: SCAN_MAX, bytesMax: PAGE_BYTES_MAX, ...(webhook.databases !== null && { databases: webhook.databases }) })
  }

  async #sendChain(webhook: Webhook, claim: WebhookClaim, round: Round, chain: Chain, cut: AbortSignal): Promise<void> {
    const { store, ports: { clock } } = this.#options
    for (const [at, delivery] of chain.entries()) {
      const startedAt = clock.now()
      if (round.isOver || this.#stopping.signal.aborted || cut.aborted) return round.leave(chain.slice(at), startedAt)
      // Read for every message: a rotation, an edit or a pause holds from the moment it is acknowledged.
      const secrets = await store.webhookSecrets(claim)
      if (secrets === null) return round.leave(chain.slice(at), startedAt)
      const outcome = await this.#send({ ...webhook, secrets }, delivery, startedAt, cut)
      // Cut off by ourselves: nobody can say whether it arrived, and it is no fault of the receiver.
      if (outcome.status === null && cut.aborted) return round.leave(chain.slice(at), clock.now())
      if (!round.settle(delivery, chain.slice(at + 1), outcome, startedAt, clock.now())) return
    }
  }

  /** One try, as it is seen from outside. */
  async #send(webhook: Webhook, { messageId, body, attempts }: Delivery, startedAt: number, cut: AbortSignal): Promise<Outcome> {
    const { store, ports: { clock, tracer, meter }, send } = this.#options
    const attempt = attempts + 1
    const span = tracer?.start('delivery', {
      'tidemark.tenant': store.tenant, 'tidemark.webhook': webhook.id, 'tidemark.attempt': attempt, 'tidemark.request_id': messageId, ...requestAttributes(webhook.url, 'POST'),
    }, null) ?? NO_SPAN
    const secrets = secretsOf(webhook.secrets, startedAt).map(({ secret }) => secret)
    return span.within(async () => {
      const outcome = await send({ url: webhook.url, allow: webhook.allow, body, headers: { ...span.headers, ...signatureHeaders(secrets, messageId, startedAt, body) }, signal: cut })
      const { kind, status } = outcome
      meter?.note('deliveryDuration', secondsBetween(startedAt, clock.now()), { 'tidemark.outcome': kind })
      const tell = kind === 'delivered' ? 'debug' : 'info'
      this.#logOf(webhook)[tell](kind === 'delivered' ? 'a message was delivered' : 'a message was not delivered', { requestId: messageId, attempt, status })
      span.set({ 'tidemark.outcome': kind, 'http.response.status_code': status ?? undefined })
      span.end(kind === 'delivered' ? null : String(status ?? 'no_answer'))
      return outcome
    })
  }

  #logOf({ id }: Webhook): Log {
    return childLog(this.#log, { webhook: id })
  }

  async #disable(webhook: Webhook, claim: WebhookClaim, reason: string): Promise<null> {
    this.#logOf(webhook).error('a webhook was disabled', { reason })
    await this.#options.store.noteDeliveries(claim, { standing: { ...webhook, disabled: reason }, delivered: [], kept: [] })
    return null
  }

  #keepClaim(claim: WebhookClaim, ttlMs: number, cut: AbortController): AbortController {
    const { store, ports: { clock } } = this.#options
    const ending = new AbortController()
    const keep = async (): Promise<void> => {
      for (let renewedAt = clock.now(); ; ) {
        await clock.sleep(ttlMs / 3, ending.signal)
        const at = clock.now()
        const kept = await store.renewWebhook(claim, { ttlMs, at }).catch(() => null)
        if (kept === true) renewedAt = at
        if (kept === false || clock.now() - renewedAt >= ttlMs) return cut.abort(new Error('the claim was lost'))
      }
    }
    keep().catch(() => {})
    return ending
  }
}

function isDue({ disabled, retryAt, position, waiting, dueAt }: Webhook, newest: number, now: number): boolean {
  if (disabled !== null || (retryAt ?? 0) > now) return false
  return (dueAt !== null && dueAt <= now) || (position < newest && waiting < WAITING_MAX)
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
