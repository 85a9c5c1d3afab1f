import { randomBytes } from 'node:crypto'
import { isSyncError, SyncError, type Change, type Clock, type JsonValue, type Log, type Ports, type Secrets, type Store } from '../contract/index.ts'
import { childLog } from '../engine/child-log.ts'
import { runCycle } from '../engine/cycle.ts'
import type { CycleOptions } from '../engine/cycle-options.ts'
import type { SyncPlan } from '../engine/sync-plan.ts'
import { parseJson } from '../values/json.ts'
import { WebhookRefused, type InboundDelivery, type Verified, type Verify } from './verify/verify.ts'

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
  readonly verify: Verify
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

export interface InboundOptions {
  readonly store: Store
  readonly ports: Ports
  readonly secrets: Secrets
  /** What messages are checked with. */
  readonly proofs: Secrets
  readonly fetch: CycleOptions['fetch']
  readonly holder: string
  readonly isDead?: (holder: string) => boolean
  readonly webhooks: readonly DeclaredWebhook[]
}

/** kept: it will be acted on. ignored: it is not wanted. unknown: there is no such webhook. refused: the sender need not come again. failed: it should, later. */
export type Reception = 'accepted' | 'kept' | 'ignored' | 'duplicate' | 'unknown' | 'refused' | 'failed'

export interface ProveOptions {
  /** The id of the request that brought the message. */
  readonly requestId?: string | undefined
  /** The address names a tenant: until the signature is proven, the answer must not depend on whether the tenant exists or is set up. */
  readonly isAddressed?: boolean
}

/** Whoever took a message and has not settled it after this has died. */
const BUSY_MS = 60_000
const REMEMBER_MS = 30 * 24 * 3_600_000
/** What was kept is tried again after BUSY_MS, and again, for so long. */
const KEEP_MS = 3 * 24 * 3_600_000
const KEPT_BATCH = 50
/** They prove who sends, and are nobody's business after that. */
const NOT_KEPT = new Set(['authorization', 'cookie'])
/** While another process lands a message of the same webhook. */
const HELD_WAIT_MS = 100
const HELD_WAITS_MAX = 100

/**
 * Takes the messages of vendors for one tenant: checks them, takes each once, and lands what they tell through the one door, as a cycle of
 * one page. A message is settled after it has landed; a crash in between makes it land twice, which changes nothing.
 */
export class InboundWebhooks {
  readonly #options: InboundOptions
  /** The last of each webhook: its sync has one lease, so its messages land one after the other. */
  readonly #tails = new Map<string, Promise<unknown>>()
  readonly #acting = new Set<Promise<void>>()
  #cycles = 0

  constructor(options: InboundOptions) {
    this.#options = options
  }

  async receive(worker: string, name: string, delivery: InboundDelivery, options: ProveOptions = {}): Promise<Reception> {
    const { ports: { clock }, store } = this.#options
    const webhook = this.#find(worker, name)
    if (webhook === undefined) return 'unknown'
    const proof = await this.#prove(webhook, delivery, this.#options.proofs, options)
    if (typeof proof === 'string') return proof
    const { id } = proof
    const log = childLog(this.#logOf(webhook), { requestId: options.requestId })
    const event = eventOf(id, delivery)
    try {
      if (webhook.wants?.(event) === false) return 'ignored'
    } catch (error) {
      log.error('a webhook failed', { reason: reasonOf(error) })
      return 'failed'
    }
    const message = { source: sourceOf(webhook), id }
    const now = clock.now()
    const payload = webhook.later === true ? { payload: payloadOf(event, now) } : {}
    const taken = await store.claimInbound(message, { at: now, busyMs: BUSY_MS, forgetBefore: now - REMEMBER_MS, ...payload }).catch((error: unknown) => {
      if (isSyncError(error) && error.code === 'TENANT_ERASED') return 'erased' as const
      throw error
    })
    if (taken === 'erased') return 'unknown'
    // One that is kept is in good hands, whoever has it.
    if (taken !== 'new') return taken === 'done' || webhook.later === true ? 'duplicate' : 'failed'
    if (webhook.later === true) {
      this.#actLater(webhook, event)
      return 'kept'
    }
    try {
      await this.#inTurn(message.source, () => this.#act(webhook, event))
    } catch (error) {
      log.error('a webhook failed', { reason: reasonOf(error) })
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
  async refuse(worker: string, name: string, delivery: InboundDelivery, { requestId }: ProveOptions = {}): Promise<Reception> {
    const webhook = this.#find(worker, name)
    if (webhook === undefined) return 'unknown'
    await this.#prove(webhook, delivery, NO_SECRETS, { requestId, isAddressed: true })
    return 'refused'
  }

  #find(worker: string, name: string): DeclaredWebhook | undefined {
    return this.#options.webhooks.find((known) => known.worker === worker && known.name === name)
  }

  async #prove(webhook: DeclaredWebhook, delivery: InboundDelivery, proofs: Secrets, { requestId, isAddressed = false }: ProveOptions): Promise<Verified | 'refused' | 'failed'> {
    const { ports: { clock, log: root } } = this.#options
    const log = childLog(proofs === NO_SECRETS ? root : this.#logOf(webhook), { requestId })
    const secrets = isAddressed ? withDecoy(proofs, (reason) => log.error('a webhook could not be checked', { reason })) : proofs
    try {
      return await webhook.verify(delivery, { now: clock.now(), secrets })
    } catch (error) {
      if (isRefusal(error)) log.warn('a webhook was refused', { reason: error.message })
      else log.error('a webhook could not be checked', { reason: reasonOf(error) })
      return isRefusal(error) || isAddressed ? 'refused' : 'failed'
    }
  }

  /** Takes up what was kept and not done: by a process that died, or because it failed. */
  async look(): Promise<void> {
    const { ports: { log }, store, webhooks } = this.#options
    try {
      for (const webhook of webhooks) if (webhook.later === true) await this.#takeUp(webhook)
    } catch (error) {
      childLog(log, { tenant: store.tenant }).warn('kept webhooks could not be looked at', { reason: reasonOf(error) })
    }
  }

  /** Until what is under way has ended. */
  async settle(): Promise<void> {
    await Promise.all(this.#acting)
  }

  async #takeUp(webhook: DeclaredWebhook): Promise<void> {
    const { ports: { clock }, store } = this.#options
    const source = sourceOf(webhook)
    for (const { id, payload } of await store.keptInbound({ source, before: clock.now() - BUSY_MS, limit: KEPT_BATCH })) {
      const now = clock.now()
      if ((await store.claimInbound({ source, id }, { at: now, busyMs: BUSY_MS, forgetBefore: now - REMEMBER_MS })) !== 'new') continue
      const { event, keptAt } = eventIn(id, payload)
      if (now - keptAt <= KEEP_MS) this.#actLater(webhook, event)
      else {
        this.#logOf(webhook).error('a kept webhook was given up', { id })
        await store.settleInbound({ source, id }, { done: true, at: now })
      }
    }
  }

  #actLater(webhook: DeclaredWebhook, event: WebhookEvent): void {
    const { ports: { clock }, store } = this.#options
    const source = sourceOf(webhook)
    const act = this.#inTurn(source, async () => {
      await this.#act(webhook, event)
      await store.settleInbound({ source, id: event.id }, { done: true, at: clock.now() })
    }).catch((error: unknown) => this.#logOf(webhook).error('a webhook failed', { reason: reasonOf(error) }))
    this.#acting.add(act)
    void act.finally(() => this.#acting.delete(act))
  }

  async #act(webhook: DeclaredWebhook, event: WebhookEvent): Promise<void> {
    const { ports: { clock }, secrets, fetch, store } = this.#options
    const { changes = [], trigger } = (await webhook.execute(event, { clock, log: this.#logOf(webhook), secrets, fetch })) ?? {}
    if (changes.length > 0) await this.#land(webhook, changes)
    if (trigger === undefined) return
    if (!webhook.syncs.includes(trigger)) throw new SyncError('SYNC_UNKNOWN', `Webhook "${webhook.name}" triggers ${JSON.stringify(trigger)}, which worker "${webhook.worker}" has not declared.`)
    await store.signal({ worker: webhook.worker, sync: trigger }, { kind: 'trigger', actor: `webhook:${webhook.name}`, at: clock.now() })
  }

  async #land({ name, plan }: DeclaredWebhook, changes: readonly Change[]): Promise<void> {
    if (plan === null) throw new SyncError('WEBHOOK_INVALID', `Webhook "${name}" returned changes and has no database.`)
    const { store, ports, fetch, secrets, holder, isDead } = this.#options
    const execute: SyncPlan['execute'] = async (state) => ({ changes: [...changes], hasMore: false, nextState: state ?? {} })
    for (let waits = 0; waits < HELD_WAITS_MAX; waits++) {
      const { stopReason, error } = await runCycle({ ...plan, execute }, {
        store, ports, fetch, secrets, holder: `${holder}#${++this.#cycles}`, trigger: 'webhook', ...(isDead !== undefined && { isDead }),
      })
      if (stopReason === 'complete') return
      if (stopReason !== 'held') throw error === null ? new SyncError('CANCELLED', `The changes of webhook "${name}" did not land: ${stopReason}.`) : new SyncError(error.code, error.message)
      await ports.clock.sleep(HELD_WAIT_MS)
    }
    throw new SyncError('LEASE_HELD', `Webhook "${name}" was held by another process for too long.`)
  }

  #logOf({ worker, name }: DeclaredWebhook): Log {
    const { ports: { log }, store: { tenant } } = this.#options
    return childLog(log, { tenant, worker, webhook: name })
  }

  #inTurn(source: string, act: () => Promise<void>): Promise<void> {
    const turn = (this.#tails.get(source) ?? Promise.resolve()).then(act)
    this.#tails.set(source, turn.catch(() => {}))
    return turn
  }
}

/** No message is signed with it. */
const DECOY = `whsec_${randomBytes(32).toString('base64')}`

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
        missing(reasonOf(error))
        return DECOY
      }
    },
  }
}

function sourceOf({ worker, name }: Pick<DeclaredWebhook, 'worker' | 'name'>): string {
  return `${worker}/${name}`
}

function eventOf(id: string, { headers, rawBody }: Pick<InboundDelivery, 'headers' | 'rawBody'>): WebhookEvent {
  return { id, headers, rawBody, body: parsed(rawBody) }
}

function payloadOf({ headers, rawBody }: WebhookEvent, keptAt: number): string {
  return JSON.stringify({ keptAt, headers: Object.entries(headers).filter(([name]) => !NOT_KEPT.has(name)), body: Buffer.from(rawBody).toString('base64') })
}

function eventIn(id: string, payload: string): { event: WebhookEvent; keptAt: number } {
  const { keptAt, headers, body } = JSON.parse(payload) as { keptAt: number; headers: Array<[string, string]>; body: string }
  return { keptAt, event: eventOf(id, { headers: Object.fromEntries(headers), rawBody: Buffer.from(body, 'base64') }) }
}

function parsed(rawBody: Uint8Array): JsonValue {
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

function reasonOf(error: unknown): string {
  return isSyncError(error) || error instanceof Error ? error.message : String(error)
}
