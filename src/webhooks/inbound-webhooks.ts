import { randomBytes } from 'node:crypto'
import {
  isSyncError,
  SyncError,
  type Change,
  type Clock,
  type JsonValue,
  type Log,
  type Ports,
  type Secrets,
  type Store,
} from '../contract/index.ts'
import { createChildLog } from '../telemetry/child-log.ts'
import { runCycle } from '../engine/cycle.ts'
import type { CycleOptions } from '../engine/cycle-options.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { parseJson } from '../values/json.ts'
import { WebhookRefused, type InboundDelivery, type VerifiedMessage, type WebhookVerifier } from './verify/verify.ts'

/** A verified message. */
export interface WebhookEvent {
  readonly id: string
  readonly headers: InboundDelivery['headers']
  readonly rawBody: Uint8Array
  /** The body as JSON; null if it is not JSON. */
  readonly body: JsonValue
}

/** The services that `execute` of a webhook may use. */
export interface WebhookContext {
  readonly clock: Clock
  readonly log: Log
  readonly secrets: Secrets
  readonly fetch: CycleOptions['fetch']
}

/** The result of a message: changes to commit, a sync to trigger, or neither. */
export interface WebhookResult {
  readonly changes?: readonly Change[]
  readonly trigger?: string
}

/** Turns a verified vendor message into changes and triggers. */
export type ExecuteWebhook = (
  event: WebhookEvent,
  context: WebhookContext,
) => WebhookResult | void | Promise<WebhookResult | void>

export interface DeclaredWebhook {
  readonly worker: string
  readonly name: string
  readonly verify: WebhookVerifier
  /** Whether the message is relevant; others are acknowledged and dropped. */
  readonly wants?: ((event: WebhookEvent) => boolean) | undefined
  readonly execute: ExecuteWebhook
  /** Acknowledge once the message is stored, and process it afterwards. */
  readonly later?: boolean | undefined
  /**
   * How its changes are committed: as a sync of its own. Null for a webhook without a database, which can only
   * trigger.
   */
  readonly plan: SyncPlan | null
  /** Syncs that it may trigger. */
  readonly syncs: readonly string[]
}

export interface InboundWebhooksOptions {
  readonly store: Store
  readonly ports: Ports
  readonly secrets: Secrets
  /** Secrets that verify messages. */
  readonly verificationSecrets: Secrets
  readonly fetch: CycleOptions['fetch']
  readonly holder: string
  readonly isDead?: (holder: string) => boolean
  readonly webhooks: readonly DeclaredWebhook[]
}

/**
 * kept: it will be processed. ignored: it is filtered out. unknown: there is no such webhook. refused: the sender
 * should not retry. failed: the sender should retry later.
 */
export type ReceiveResult = 'accepted' | 'kept' | 'ignored' | 'duplicate' | 'unknown' | 'refused' | 'failed'

export interface ReceiveOptions {
  /** The id of the HTTP request. */
  readonly requestId?: string | undefined
  /**
   * The address names a tenant: until the signature is verified, the response must not reveal whether the tenant
   * exists or is configured.
   */
  readonly isTenantAddressed?: boolean
}

/** A claim that is not settled within this time belongs to a crashed process. */
const CLAIM_TTL_MS = 60_000
const DEDUPE_MS = 30 * 24 * 3_600_000
/** A stored message is retried after CLAIM_TTL_MS, repeatedly, up to this age. */
const RETRY_AGE_MAX_MS = 3 * 24 * 3_600_000
const RETRY_BATCH_SIZE = 50
/** Credentials of the sender, not needed after verification. */
const DROPPED_HEADERS = new Set(['authorization', 'cookie'])
/** Wait while another process commits a message of the same webhook. */
const LEASE_WAIT_MS = 100
const LEASE_WAITS_MAX = 100

/**
 * Receives webhooks of vendors for one tenant: verifies each message, claims it once, and commits its changes as a
 * cycle of one page. A message is settled after the commit; after a crash in between it is committed again, which is
 * idempotent.
 */
export class InboundWebhooks {
  readonly #options: InboundWebhooksOptions
  /** The last task of each webhook: its sync has one lease, so its messages are committed one after the other. */
  readonly #tails = new Map<string, Promise<unknown>>()
  readonly #pending = new Set<Promise<void>>()
  #cycles = 0

  constructor(options: InboundWebhooksOptions) {
    this.#options = options
  }

  async receive(
    worker: string,
    name: string,
    delivery: InboundDelivery,
    options: ReceiveOptions = {},
  ): Promise<ReceiveResult> {
    const {
      ports: { clock },
      store,
    } = this.#options
    const webhook = this.#find(worker, name)
    if (webhook === undefined) return 'unknown'
    const verified = await this.#verify(webhook, delivery, this.#options.verificationSecrets, options)
    if (typeof verified === 'string') return verified
    const { id } = verified
    const log = createChildLog(this.#webhookLog(webhook), { requestId: options.requestId })
    const event = toWebhookEvent(id, delivery)
    try {
      if (webhook.wants?.(event) === false) return 'ignored'
    } catch (error) {
      log.error('webhook failed', { reason: errorMessage(error) })
      return 'failed'
    }
    const message = { source: webhookSource(webhook), id }
    const now = clock.now()
    const payload = webhook.later === true ? { payload: serializePayload(event, now) } : {}
    const claim = await store
      .claimInbound(message, { at: now, claimTtlMs: CLAIM_TTL_MS, purgeBefore: now - DEDUPE_MS, ...payload })
      .catch((error: unknown) => {
        if (isSyncError(error) && error.code === 'TENANT_ERASED') return 'erased' as const
        throw error
      })
    if (claim === 'erased') return 'unknown'
    // A stored message is processed by the process that claimed it, or retried.
    if (claim !== 'new') return claim === 'done' || webhook.later === true ? 'duplicate' : 'failed'
    if (webhook.later === true) {
      this.#executeLater(webhook, event)
      return 'kept'
    }
    try {
      await this.#enqueue(message.source, () => this.#execute(webhook, event))
    } catch (error) {
      log.error('webhook failed', { reason: errorMessage(error) })
      await store.settleInbound(message, { done: false, at: clock.now() })
      return isRefusal(error) ? 'refused' : 'failed'
    }
    await store.settleInbound(message, { done: true, at: clock.now() })
    return 'accepted'
  }

  /**
   * Responds to a message for a tenant that does not exist. The signature is verified against a decoy, so that status,
   * body and work equal those of a wrongly signed message for an existing tenant.
   */
  async refuse(
    worker: string,
    name: string,
    delivery: InboundDelivery,
    { requestId }: ReceiveOptions = {},
  ): Promise<ReceiveResult> {
    const webhook = this.#find(worker, name)
    if (webhook === undefined) return 'unknown'
    await this.#verify(webhook, delivery, NO_SECRETS, { requestId, isTenantAddressed: true })
    return 'refused'
  }

  #find(worker: string, name: string): DeclaredWebhook | undefined {
    return this.#options.webhooks.find((known) => known.worker === worker && known.name === name)
  }

  async #verify(
    webhook: DeclaredWebhook,
    delivery: InboundDelivery,
    verificationSecrets: Secrets,
    { requestId, isTenantAddressed = false }: ReceiveOptions,
  ): Promise<VerifiedMessage | 'refused' | 'failed'> {
    const {
      ports: { clock, log: root },
    } = this.#options
    const log = createChildLog(verificationSecrets === NO_SECRETS ? root : this.#webhookLog(webhook), { requestId })
    const secrets = isTenantAddressed
      ? withDecoy(verificationSecrets, (reason) => log.error('webhook could not be verified', { reason }))
      : verificationSecrets
    try {
      return await webhook.verify(delivery, { now: clock.now(), secrets })
    } catch (error) {
      if (isRefusal(error)) log.warn('webhook refused', { reason: error.message })
      else log.error('webhook could not be verified', { reason: errorMessage(error) })
      return isRefusal(error) || isTenantAddressed ? 'refused' : 'failed'
    }
  }

  /** Retries stored messages that were not processed, because a process crashed or failed. */
  async retryStored(): Promise<void> {
    const {
      ports: { log },
      store,
      webhooks,
    } = this.#options
    try {
      for (const webhook of webhooks) if (webhook.later === true) await this.#retryWebhook(webhook)
    } catch (error) {
      createChildLog(log, { tenant: store.tenant }).warn('stored webhooks could not be read', {
        reason: errorMessage(error),
      })
    }
  }

  /** Resolves when all messages in progress have ended. */
  async drain(): Promise<void> {
    await Promise.all(this.#pending)
  }

  async #retryWebhook(webhook: DeclaredWebhook): Promise<void> {
    const {
      ports: { clock },
      store,
    } = this.#options
    const source = webhookSource(webhook)
    for (const { id, payload } of await store.pendingInbound({
      source,
      before: clock.now() - CLAIM_TTL_MS,
      limit: RETRY_BATCH_SIZE,
    })) {
      const now = clock.now()
      if (
        (await store.claimInbound(
          { source, id },
          { at: now, claimTtlMs: CLAIM_TTL_MS, purgeBefore: now - DEDUPE_MS },
        )) !== 'new'
      )
        continue
      const { event, keptAt } = parsePayload(id, payload)
      if (now - keptAt <= RETRY_AGE_MAX_MS) this.#executeLater(webhook, event)
      else {
        this.#webhookLog(webhook).error('stored webhook discarded after too many retries', { id })
        await store.settleInbound({ source, id }, { done: true, at: now })
      }
    }
  }

  #executeLater(webhook: DeclaredWebhook, event: WebhookEvent): void {
    const {
      ports: { clock },
      store,
    } = this.#options
    const source = webhookSource(webhook)
    const task = this.#enqueue(source, async () => {
      await this.#execute(webhook, event)
      await store.settleInbound({ source, id: event.id }, { done: true, at: clock.now() })
    }).catch((error: unknown) => this.#webhookLog(webhook).error('webhook failed', { reason: errorMessage(error) }))
    this.#pending.add(task)
    void task.finally(() => this.#pending.delete(task))
  }

  async #execute(webhook: DeclaredWebhook, event: WebhookEvent): Promise<void> {
    const {
      ports: { clock },
      secrets,
      fetch,
      store,
    } = this.#options
    const { changes = [], trigger } =
      (await webhook.execute(event, { clock, log: this.#webhookLog(webhook), secrets, fetch })) ?? {}
    if (changes.length > 0) await this.#land(webhook, changes)
    if (trigger === undefined) return
    if (!webhook.syncs.includes(trigger))
      throw new SyncError(
        'SYNC_UNKNOWN',
        `Webhook "${webhook.name}" triggers ${JSON.stringify(trigger)}, which worker "${webhook.worker}" does not declare.`,
      )
    await store.signalSync(
      { worker: webhook.worker, sync: trigger },
      { kind: 'trigger', actor: `webhook:${webhook.name}`, at: clock.now() },
    )
  }

  async #land({ name, plan }: DeclaredWebhook, changes: readonly Change[]): Promise<void> {
    if (plan === null) throw new SyncError('WEBHOOK_INVALID', `Webhook "${name}" returned changes but has no database.`)
    const { store, ports, fetch, secrets, holder, isDead } = this.#options
    const execute: SyncPlan['execute'] = async (state) => ({
      changes: [...changes],
      hasMore: false,
      nextState: state ?? {},
    })
    for (let waits = 0; waits < LEASE_WAITS_MAX; waits++) {
      const { stopReason, error } = await runCycle(
        { ...plan, execute },
        {
          store,
          ports,
          fetch,
          secrets,
          holder: `${holder}#${++this.#cycles}`,
          trigger: 'webhook',
          ...(isDead !== undefined && { isHolderGone: isDead }),
        },
      )
      if (stopReason === 'complete') return
      if (stopReason !== 'held')
        throw error === null
          ? new SyncError('CANCELLED', `The changes of webhook "${name}" were not committed: ${stopReason}.`)
          : new SyncError(error.code, error.message)
      await ports.clock.sleep(LEASE_WAIT_MS)
    }
    throw new SyncError('LEASE_HELD', `Another process held the lease of webhook "${name}" for too long.`)
  }

  #webhookLog({ worker, name }: DeclaredWebhook): Log {
    const {
      ports: { log },
      store: { tenant },
    } = this.#options
    return createChildLog(log, { tenant, worker, webhook: name })
  }

  #enqueue(source: string, task: () => Promise<void>): Promise<void> {
    const result = (this.#tails.get(source) ?? Promise.resolve()).then(task)
    this.#tails.set(
      source,
      result.catch(() => {}),
    )
    return result
  }
}

/** No message is signed with it. */
const DECOY_SECRET = `whsec_${randomBytes(32).toString('base64')}`

const NO_SECRETS: Secrets = {
  get(name) {
    throw new SyncError('SECRET_MISSING', `The tenant does not exist, so it has no secret ${name}.`)
  },
}

/** Replaces a missing secret, so that verification takes the same work with and without it. */
function withDecoy(secrets: Secrets, onMissing: (reason: string) => void): Secrets {
  return {
    get(name) {
      try {
        return secrets.get(name)
      } catch (error) {
        onMissing(errorMessage(error))
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
  return JSON.stringify({
    keptAt,
    headers: Object.entries(headers).filter(([name]) => !DROPPED_HEADERS.has(name)),
    body: Buffer.from(rawBody).toString('base64'),
  })
}

function parsePayload(id: string, payload: string): { event: WebhookEvent; keptAt: number } {
  const { keptAt, headers, body } = JSON.parse(payload) as {
    keptAt: number
    headers: Array<[string, string]>
    body: string
  }
  return {
    keptAt,
    event: toWebhookEvent(id, { headers: Object.fromEntries(headers), rawBody: Buffer.from(body, 'base64') }),
  }
}

function parseBody(rawBody: Uint8Array): JsonValue {
  try {
    return parseJson(Buffer.from(rawBody).toString())
  } catch {
    return null
  }
}

/** Compares the name, not the class: a worker may have its own copy of this package. */
function isRefusal(error: unknown): error is WebhookRefused {
  return error instanceof Error && error.name === 'WebhookRefused'
}

function errorMessage(error: unknown): string {
  return isSyncError(error) || error instanceof Error ? error.message : String(error)
}
