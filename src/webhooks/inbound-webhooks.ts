import { randomBytes } from 'node:crypto'
import { isSyncError, SyncError, type Change, type Clock, type JsonValue, type Log, type Ports, type Secrets, type Store } from '../contract/index.ts'
import { createChildLog } from '../telemetry/child-log.ts'
import { runCycle } from '../engine/cycle.ts'
import type { CycleOptions } from '../engine/cycle-options.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { parseJson } from '../values/json.ts'
import { WebhookRefused, type InboundDelivery, type VerifiedMessage, type WebhookVerifier } from './verify/verify.ts'

/** A message that is what it claims to be. */
export interface WebhookEvent {
  readonly id: string
  readonly headers: InboundDelivery['headers']
  readonly rawBody: Uint8Array
  /** The body as JSON; null when it is none. */
  readonly body: JsonValue
}

export interface WebhookContext {
  readonly clock: Clock
  readonly log: Log
  readonly secrets: Secrets
  readonly fetch: CycleOptions['fetch']
}

/** What a message comes to: changes to land, a sync to run now, or nothing. */
export interface WebhookResult {
  readonly changes?: readonly Change[]
  readonly trigger?: string
}

export type ExecuteWebhook = (event: WebhookEvent, context: WebhookContext) => WebhookResult | void | Promise<WebhookResult | void>

export interface DeclaredWebhook {
  readonly worker: string
  readonly name: string
  readonly verify: WebhookVerifier
  /** Whether a message is of interest at all; one that is not is answered and forgotten. */
  readonly wants?: ((event: WebhookEvent) => boolean) | undefined
  readonly execute: ExecuteWebhook
  /** Answer as soon as the message is kept, and act on it after. */
  readonly later?: boolean | undefined
  /** How its changes land: as a sync of its own. Null for one that has no database and can only trigger. */
  readonly plan: SyncPlan | null
  /** Those it may trigger. */
  readonly syncs: readonly string[]
}

export interface InboundWebhooksOptions {
  readonly store: Store
  readonly ports: Ports
  readonly secrets: Secrets
  /** What messages are checked with. */
  readonly verificationSecrets: Secrets
  readonly fetch: CycleOptions['fetch']
  readonly holder: string
  readonly isDead?: (holder: string) => boolean
  readonly webhooks: readonly DeclaredWebhook[]
}

/** kept: it will be acted on. ignored: it is not wanted. unknown: there is no such webhook. refused: the sender need not come again. failed: it should, later. */
export type ReceiveResult = 'accepted' | 'kept' | 'ignored' | 'duplicate' | 'unknown' | 'refused' | 'failed'

export interface ReceiveOptions {
  /** The id of the request that brought the message. */
  readonly requestId?: string | undefined
  /** The address names a tenant: until the signature is proven, the answer must not depend on whether the tenant exists or is set up. */
  readonly isTenantAddressed?: boolean
}

/** Whoever took a message and has not settled it after this has died. */
const CLAIM_TTL_MS = 60_000
const DEDUPE_MS = 30 * 24 * 3_600_000
/** What was kept is tried again after BUSY_MS, and again, for so long. */
const RETRY_AGE_MAX_MS = 3 * 24 * 3_600_000
const RETRY_BATCH_SIZE = 50
/** They prove who sends, and are nobody's business after that. */
const DROPPED_HEADERS = new Set(['authorization', 'cookie'])
/** While another process lands a message of the same webhook. */
const LEASE_WAIT_MS = 100
const LEASE_WAITS_MAX = 100

/**
 * Takes the messages of vendors for one tenant: checks them, takes each once, and lands what they tell through the one door, as a cycle of
 * one page. A message is settled after it has landed; a crash in between makes it land twice, which changes nothing.
 */
export class InboundWebhooks {
  readonly #options: InboundWebhooksOptions
  /** The last of each webhook: its sync has one lease, so its messages land one after the other. */
  readonly #tails = new Map<string, Promise<unknown>>()
  readonly #pending = new Set<Promise<void>>()
  #cycles = 0

  constructor(options: InboundWebhooksOptions) {
    this.#options = options
  }

  async receive(worker: string, name: string, delivery: InboundDelivery, options: ReceiveOptions = {}): Promise<ReceiveResult> {
    const { ports: { clock }, store } = this.#options
    const webhook = this.#find(worker, name)
    if (webhook === undefined) return 'unknown'
    const proof = await this.#verify(webhook, delivery, this.#options.verificationSecrets, options)
    if (typeof proof === 'string') return proof
    const { id } = proof
    const log = createChildLog(this.#webhookLog(webhook), { requestId: options.requestId })
    const event = toWebhookEvent(id, delivery)
    try {
      if (webhook.wants?.(event) === false) return 'ignored'
    } catch (error) {
      log.error('a webhook failed', { reason: errorMessage(error) })
      return 'failed'
    }
    const message = { source: webhookSource(webhook), id }
    const now = clock.now()
    const payload = webhook.later === true ? { payload: serializePayload(event, now) } : {}
    const taken = await store.claimInbound(message, { at: now, claimTtlMs: CLAIM_TTL_MS, purgeBefore: now - DEDUPE_MS, ...payload }).catch((error: unknown) => {
      if (isSyncError(error) && error.code === 'TENANT_ERASED') return 'erased' as const
      throw error
    })
    if (taken === 'erased') return 'unknown'
    // One that is kept is in good hands, whoever has it.
    if (taken !== 'new') return taken === 'done' || webhook.later === true ? 'duplicate' : 'failed'
    if (webhook.later === true) {
      this.#executeLater(webhook, event)
      return 'kept'
    }
    try {
      await this.#enqueue(message.source, () => this.#execute(webhook, event))
    } catch (error) {
      log.error('a webhook failed', { reason: errorMessage(error) })
      await store.settleInbound(message, { done: false, at: clock.now() })
      return isRefusal(error) ? 'refused' : 'failed'
    }
    await store.settleInbound(message, { done: true, at: clock.now() })
    return 'accepted'
  }

  /**
   * The answer to a message for a tenant that does not exist. The signature is checked against a decoy, so that status, body
   * and work are those of a message for an existing tenant that is not signed for it.
   */
  async refuse(worker: string, name: string, delivery: InboundDelivery, { requestId }: ReceiveOptions = {}): Promise<ReceiveResult> {
    const webhook = this.#find(worker, name)
    if (webhook === undefined) return 'unknown'
    await this.#verify(webhook, delivery, NO_SECRETS, { requestId, isTenantAddressed: true })
    return 'refused'
  }

  #find(worker: string, name: string): DeclaredWebhook | undefined {
    return this.#options.webhooks.find((known) => known.worker === worker && known.name === name)
  }

  async #verify(webhook: DeclaredWebhook, delivery: InboundDelivery, proofs: Secrets, { requestId, isTenantAddressed: isAddressed = false }: ReceiveOptions): Promise<VerifiedMessage | 'refused' | 'failed'> {
    const { ports: { clock, log: root } } = this.#options
    const log = createChildLog(proofs === NO_SECRETS ? root : this.#webhookLog(webhook), { requestId })
    const secrets = isAddressed ? withDecoy(proofs, (reason) => log.error('a webhook could not be checked', { reason })) : proofs
    try {
      return await webhook.verify(delivery, { now: clock.now(), secrets })
    } catch (error) {
      if (isRefusal(error)) log.warn('a webhook was refused', { reason: error.message })
      else log.error('a webhook could not be checked', { reason: errorMessage(error) })
      return isRefusal(error) || isAddressed ? 'refused' : 'failed'
    }
  }

  /** Takes up what was kept and not done: by a process that died, or because it failed. */
  async retryStored(): Promise<void> {
    const { ports: { log }, store, webhooks } = this.#options
    try {
      for (const webhook of webhooks) if (webhook.later === true) await this.#retryWebhook(webhook)
    } catch (error) {
      createChildLog(log, { tenant: store.tenant }).warn('kept webhooks could not be looked at', { reason: errorMessage(error) })
    }
  }

  /** Until what is under way has ended. */
  async drain(): Promise<void> {
    await Promise.all(this.#pending)
  }

  async #retryWebhook(webhook: DeclaredWebhook): Promise<void> {
    const { ports: { clock }, store } = this.#options
    const source = webhookSource(webhook)
    for (const { id, payload } of await store.pendingInbound({ source, before: clock.now() - CLAIM_TTL_MS, limit: RETRY_BATCH_SIZE })) {
      const now = clock.now()
      if ((await store.claimInbound({ source, id }, { at: now, claimTtlMs: CLAIM_TTL_MS, purgeBefore: now - DEDUPE_MS })) !== 'new') continue
      const { event, keptAt } = parsePayload(id, payload)
      if (now - keptAt <= RETRY_AGE_MAX_MS) this.#executeLater(webhook, event)
      else {
        this.#webhookLog(webhook).error('a kept webhook was given up', { id })
        await store.settleInbound({ source, id }, { done: true, at: now })
      }
    }
  }

  #executeLater(webhook: DeclaredWebhook, event: WebhookEvent): void {
    const { ports: { clock }, store } = this.#options
    const source = webhookSource(webhook)
    const act = this.#enqueue(source, async () => {
      await this.#execute(webhook, event)
      await store.settleInbound({ source, id: event.id }, { done: true, at: clock.now() })
    }).catch((error: unknown) => this.#webhookLog(webhook).error('a webhook failed', { reason: errorMessage(error) }))
    this.#pending.add(act)
    void act.finally(() => this.#pending.delete(act))
  }

  async #execute(webhook: DeclaredWebhook, event: WebhookEvent): Promise<void> {
    const { ports: { clock }, secrets, fetch, store } = this.#options
    const { changes = [], trigger } = (await webhook.execute(event, { clock, log: this.#webhookLog(webhook), secrets, fetch })) ?? {}
    if (changes.length > 0) await this.#land(webhook, changes)
    if (trigger === undefined) return
    if (!webhook.syncs.includes(trigger)) throw new SyncError('SYNC_UNKNOWN', `Webhook "${webhook.name}" triggers ${JSON.stringify(trigger)}, which worker "${webhook.worker}" has not declared.`)
    await store.signalSync({ worker: webhook.worker, sync: trigger }, { kind: 'trigger', actor: `webhook:${webhook.name}`, at: clock.now() })
  }

  async #land({ name, plan }: DeclaredWebhook, changes: readonly Change[]): Promise<void> {
    if (plan === null) throw new SyncError('WEBHOOK_INVALID', `Webhook "${name}" returned changes and has no database.`)
    const { store, ports, fetch, secrets, holder, isDead } = this.#options
    const execute: SyncPlan['execute'] = async (state) => ({ changes: [...changes], hasMore: false, nextState: state ?? {} })
    for (let waits = 0; waits < LEASE_WAITS_MAX; waits++) {
      const { stopReason, error } = await runCycle({ ...plan, execute }, {
        store, ports, fetch, secrets, holder: `${holder}#${++this.#cycles}`, trigger: 'webhook', ...(isDead !== undefined && { isHolderGone: isDead }),
      })
      if (stopReason === 'complete') return
      if (stopReason !== 'held') throw error === null ? new SyncError('CANCELLED', `The changes of webhook "${name}" did not land: ${stopReason}.`) : new SyncError(error.code, error.message)
      await ports.clock.sleep(LEASE_WAIT_MS)
    }
    throw new SyncError('LEASE_HELD', `Webhook "${name}" was held by another process for too long.`)
  }

  #webhookLog({ worker, name }: DeclaredWebhook): Log {
    const { ports: { log }, store: { tenant } } = this.#options
    return createChildLog(log, { tenant, worker, webhook: name })
  }

  #enqueue(source: string, act: () => Promise<void>): Promise<void> {
    const turn = (this.#tails.get(source) ?? Promise.resolve()).then(act)
    this.#tails.set(source, turn.catch(() => {}))
    return turn
  }
}

/** No message is signed with it. */
const DECOY_SECRET = `whsec_${randomBytes(32).toString('base64')}`

const NO_SECRETS: Secrets = {
  get(name) {
    throw new SyncError('SECRET_MISSING', `There is no such tenant, and so no secret ${name}.`)
  },
}

/** A missing secret is replaced, so that checking a message takes the same work with and without it. */
function withDecoy(secrets: Secrets, missing: (reason: string) => void): Secrets {
  return {
    get(name) {
      try {
        return secrets.get(name)
      } catch (error) {
        missing(errorMessage(error))
        return DECOY_SECRET
      }
    },
  }
}

function webhookSource({ worker, name }: Pick<DeclaredWebhook, 'worker' | 'name'>): string {
  return `${worker}/${name}`
}

function toWebhookEvent(id: string, { headers, rawBody }: Pick<InboundDelivery, 'headers' | 'rawBody'>): WebhookEvent {
  return { id, headers, rawBody, body: parseBody(rawBody) }
}

function serializePayload({ headers, rawBody }: WebhookEvent, keptAt: number): string {
  return JSON.stringify({ keptAt, headers: Object.entries(headers).filter(([name]) => !DROPPED_HEADERS.has(name)), body: Buffer.from(rawBody).toString('base64') })
}

function parsePayload(id: string, payload: string): { event: WebhookEvent; keptAt: number } {
  const { keptAt, headers, body } = JSON.parse(payload) as { keptAt: number; headers: Array<[string, string]>; body: string }
  return { keptAt, event: toWebhookEvent(id, { headers: Object.fromEntries(headers), rawBody: Buffer.from(body, 'base64') }) }
}

function parseBody(rawBody: Uint8Array): JsonValue {
  try {
    return parseJson(Buffer.from(rawBody).toString())
  } catch {
    return null
  }
}

/** By name, not by class: a worker may carry a copy of this package of its own. */
function isRefusal(error: unknown): error is WebhookRefused {
  return error instanceof Error && error.name === 'WebhookRefused'
}

function errorMessage(error: unknown): string {
  return isSyncError(error) || error instanceof Error ? error.message : String(error)
}
