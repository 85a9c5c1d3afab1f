import type { Delivery, DeliveryNote, FeedPage, Webhook, WebhookStanding } from '../contract/index.ts'
import type { Outcome } from './send.ts'

/**
 * What one round delivers, and what is noted of it. Changes of one key go one after the other; what fails waits, and what
 * comes later of its key waits behind it, so that the order of a key is kept and other keys go on.
 *
 *   log ──▶ sent ──2xx──▶ done
 *            │ else
 *            ▼
 *         waiting ──2xx──▶ done          10 tries over about 3 days
 *            │ out of tries
 *            ├── others got through meanwhile ──▶ dead
 *            └── nothing did ──▶ the webhook is disabled, and all of it stays as it is
 */

/** Waits after the first, second … try. */
const WAITS_MS = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400].map((seconds) => seconds * 1_000)
export const ATTEMPTS_MAX = WAITS_MS.length + 1
/** Different deliveries that fail in a row before the receiver counts as down, and is only asked now and then. */
export const STREAK_MAX = 5
const DOWN_WAITS_MS = [30, 60, 300, 900, 3_600].map((seconds) => seconds * 1_000)
const RETRY_AFTER_MAX_MS = 86_400_000
/** Once so many wait, the log is not read on for this webhook. */
export const WAITING_MAX = 100
/** So many dead letters say that the receiver and we do not understand each other. */
export const DEAD_MAX = 1_000
/** Not due by itself: whoever is before it in its key takes it along. */
const BEHIND = Number.MAX_SAFE_INTEGER

/** Deliveries of one key, in order. */
export type Chain = readonly Delivery[]

export class Round {
  readonly chains: readonly Chain[]
  readonly #standing: { -readonly [K in keyof WebhookStanding]: WebhookStanding[K] }
  readonly #jitter: () => number
  readonly #stored: ReadonlySet<number>
  readonly #delivered: number[] = []
  readonly #kept = new Map<number, Delivery>()
  readonly #isProbe: boolean
  #dead: number
  #failed = 0

  constructor({ webhook, waiting, fresh, page, now, jitter }: RoundOptions) {
    const { position, floor, streak, retryAt, succeededAt, failedAt, lastStatus, lastAnswer, disabled } = webhook
    this.#standing = { position, floor, streak, retryAt, succeededAt, failedAt, lastStatus, lastAnswer, disabled }
    this.#jitter = jitter
    this.#stored = new Set(waiting.map(({ sequence }) => sequence))
    this.#isProbe = streak >= STREAK_MAX
    this.#dead = webhook.dead
    if (page !== null) {
      this.#standing.position = page.scanned
      if (page.scanned >= page.floor) this.#standing.floor = page.floor
    }
    const all = chainsOf([...waiting, ...fresh])
    const due = all.filter(([head]) => head!.nextAt <= now)
    this.chains = this.#isProbe ? due.toSorted(([a], [b]) => a!.attempts - b!.attempts).slice(0, 1) : due
    for (const chain of all) if (!this.chains.includes(chain)) this.#keep(chain.filter((delivery) => !this.#stored.has(delivery.sequence)), due.includes(chain) ? now : BEHIND)
  }

  /** Nothing more is to be sent in this round. */
  get isOver(): boolean {
    const { disabled, retryAt, streak } = this.#standing
    return disabled !== null || (!this.#isProbe && streak >= STREAK_MAX) || (retryAt !== null && this.#failed > 0)
  }

  /** Whether the chain goes on with the next. */
  settle(delivery: Delivery, rest: Chain, outcome: Outcome, startedAt: number, now: number): boolean {
    const standing = this.#standing
    standing.lastStatus = outcome.status
    standing.lastAnswer = outcome.answer
    if (outcome.kind === 'delivered') {
      standing.succeededAt = now
      standing.streak = 0
      if (this.#failed === 0) standing.retryAt = null
      if (this.#stored.has(delivery.sequence)) this.#delivered.push(delivery.sequence)
      return true
    }
    this.#failed++
    standing.failedAt = now
    const attempts = delivery.attempts + 1
    const firstAt = delivery.firstAt ?? startedAt
    // Many that fail at once say no more than a few do; only time that passes makes the waits longer.
    if (this.#isProbe) standing.streak++
    else if (attempts === 1) standing.streak = Math.min(standing.streak + 1, STREAK_MAX)
    if (standing.streak >= STREAK_MAX) this.#waitUntil(now + this.#spread(DOWN_WAITS_MS[Math.min(standing.streak - STREAK_MAX, DOWN_WAITS_MS.length - 1)]!))
    if (outcome.retryAfterMs !== null) this.#waitUntil(now + Math.min(outcome.retryAfterMs, RETRY_AFTER_MAX_MS))
    if (outcome.kind === 'gone') standing.disabled ??= 'The receiver answered 410: it wants no more.'
    const isOut = attempts >= ATTEMPTS_MAX
    const nothingElse = standing.succeededAt === null || standing.succeededAt < firstAt
    if (isOut && nothingElse) standing.disabled ??= `Nothing got through since ${new Date(firstAt).toISOString()}, in ${attempts} tries.`
    const dead = isOut && !nothingElse
    if (dead && ++this.#dead >= DEAD_MAX) standing.disabled ??= `${DEAD_MAX} messages were given up.`
    const waitMs = Math.max(this.#spread(WAITS_MS[Math.min(attempts, WAITS_MS.length) - 1]!), outcome.retryAfterMs === null ? 0 : Math.min(outcome.retryAfterMs, RETRY_AFTER_MAX_MS))
    this.#kept.set(delivery.sequence, { ...delivery, attempts, firstAt, nextAt: now + waitMs, dead, lastStatus: outcome.status, lastAnswer: outcome.answer })
    this.#keep(rest, dead ? now : BEHIND)
    return false
  }

  /** The rest of a chain whose head is gone, when the round ends early. */
  leave(rest: Chain, now: number): void {
    this.#keep(rest.slice(0, 1), now)
    this.#keep(rest.slice(1), BEHIND)
  }

  /** A log that was compacted further than this webhook has read. */
  static gapIn(webhook: Webhook, page: FeedPage): boolean {
    return webhook.position < page.floor && webhook.floor !== page.floor
  }

  get note(): DeliveryNote {
    return { standing: this.#standing, delivered: this.#delivered, kept: [...this.#kept.values()] }
  }

  #keep(rest: Chain, nextAt: number): void {
    for (const delivery of rest) this.#kept.set(delivery.sequence, { ...delivery, nextAt })
  }

  #waitUntil(at: number): void {
    this.#standing.retryAt = Math.max(this.#standing.retryAt ?? 0, at)
  }

  /** A fifth less or more, so that receivers are not asked by everybody at once. */
  #spread(ms: number): number {
    return Math.round(ms * (0.8 + 0.4 * this.#jitter()))
  }
}

function chainsOf(deliveries: readonly Delivery[]): Chain[] {
  const chains = new Map<string, Delivery[]>()
  for (const delivery of deliveries) {
    const name = JSON.stringify([delivery.database, delivery.key])
    const chain = chains.get(name)
    if (chain === undefined) chains.set(name, [delivery])
    else chain.push(delivery)
  }
  return [...chains.values()]
}

export interface RoundOptions {
  readonly webhook: Webhook
  readonly waiting: readonly Delivery[]
  /** Wanted changes of the page. */
  readonly fresh: readonly Delivery[]
  readonly page: FeedPage | null
  readonly now: number
  readonly jitter: () => number
}
