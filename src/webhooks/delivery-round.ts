import type { Delivery, DeliveryReport, FeedPage, Webhook, WebhookProgress } from '../contract/index.ts'
import type { DeliveryOutcome } from './send.ts'

/**
 * One round of deliveries and its result. Changes of one key are sent in order: after a failure the later changes of the
 * key wait, while other keys continue.
 *
 *   log ──▶ sent ──2xx──▶ done
 *            │ else
 *            ▼
 *         waiting ──2xx──▶ done          10 attempts over about 3 days
 *            │ out of attempts
 *            ├── others succeeded meanwhile ──▶ failed
 *            └── none succeeded ──▶ the webhook is disabled, and its deliveries stay waiting
 */

/** Delays after the first, second … attempt. */
const RETRY_DELAYS_MS = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400].map((seconds) => seconds * 1_000)
export const ATTEMPTS_MAX = RETRY_DELAYS_MS.length + 1
/** Consecutive failing deliveries after which the receiver counts as down and is only probed. */
export const FAILURE_STREAK_MAX = 5
const DOWN_DELAYS_MS = [30, 60, 300, 900, 3_600].map((seconds) => seconds * 1_000)
const RETRY_AFTER_MAX_MS = 86_400_000
/** With this many pending deliveries, the log is not read further for this webhook. */
export const PENDING_MAX = 100
/** This many failed deliveries indicate that the receiver cannot process the messages. */
export const FAILED_MAX = 1_000
/** Not due by itself: becomes due after its predecessor of the same key. */
const AFTER_PREDECESSOR = Number.MAX_SAFE_INTEGER

/** Deliveries of one key, in order. */
export type DeliveryChain = readonly Delivery[]

export class DeliveryRound {
  readonly chains: readonly DeliveryChain[]
  readonly #progress: { -readonly [K in keyof WebhookProgress]: WebhookProgress[K] }
  readonly #jitter: () => number
  readonly #stored: ReadonlySet<number>
  readonly #delivered: number[] = []
  readonly #retained = new Map<number, Delivery>()
  readonly #isProbe: boolean
  #failed: number
  #failuresInRound = 0

  constructor({ webhook, pending, newDeliveries, page, now, jitter }: DeliveryRoundOptions) {
    const { sequence, floor, failureStreak, retryAt, succeededAt, failedAt, lastStatus, lastResponse, disabledReason } =
      webhook
    this.#progress = {
      sequence,
      floor,
      failureStreak,
      retryAt,
      succeededAt,
      failedAt,
      lastStatus,
      lastResponse,
      disabledReason,
    }
    this.#jitter = jitter
    this.#stored = new Set(pending.map((delivery) => delivery.sequence))
    this.#isProbe = failureStreak >= FAILURE_STREAK_MAX
    this.#failed = webhook.failed
    if (page !== null) {
      this.#progress.sequence = page.scannedSequence
      if (page.scannedSequence >= page.floor) this.#progress.floor = page.floor
    }
    const all = groupByKey([...pending, ...newDeliveries])
    const due = all.filter(([head]) => head !== undefined && head.nextAt <= now)
    this.chains = this.#isProbe ? due.toSorted(([a], [b]) => (a?.attempts ?? 0) - (b?.attempts ?? 0)).slice(0, 1) : due
    for (const chain of all)
      if (!this.chains.includes(chain))
        this.#retain(
          chain.filter((delivery) => !this.#stored.has(delivery.sequence)),
          due.includes(chain) ? now : AFTER_PREDECESSOR,
        )
  }

  /** The round sends nothing more. */
  get isOver(): boolean {
    const { disabledReason, retryAt, failureStreak } = this.#progress
    return (
      disabledReason !== null ||
      (!this.#isProbe && failureStreak >= FAILURE_STREAK_MAX) ||
      (retryAt !== null && this.#failuresInRound > 0)
    )
  }

  /** Returns whether the chain continues. */
  recordOutcome(
    delivery: Delivery,
    rest: DeliveryChain,
    outcome: DeliveryOutcome,
    startedAt: number,
    now: number,
  ): boolean {
    const progress = this.#progress
    progress.lastStatus = outcome.status
    progress.lastResponse = outcome.response
    if (outcome.kind === 'delivered') {
      progress.succeededAt = now
      progress.failureStreak = 0
      if (this.#failuresInRound === 0) progress.retryAt = null
      if (this.#stored.has(delivery.sequence)) this.#delivered.push(delivery.sequence)
      return true
    }
    this.#failuresInRound++
    progress.failedAt = now
    const attempts = delivery.attempts + 1
    const firstAt = delivery.firstAt ?? startedAt
    // Many simultaneous failures count like a few; only elapsed time makes the delays longer.
    if (this.#isProbe) progress.failureStreak++
    else if (attempts === 1) progress.failureStreak = Math.min(progress.failureStreak + 1, FAILURE_STREAK_MAX)
    if (progress.failureStreak >= FAILURE_STREAK_MAX)
      this.#waitUntil(now + this.#applyJitter(delayAt(DOWN_DELAYS_MS, progress.failureStreak - FAILURE_STREAK_MAX)))
    if (outcome.retryAfterMs !== null) this.#waitUntil(now + Math.min(outcome.retryAfterMs, RETRY_AFTER_MAX_MS))
    if (outcome.kind === 'gone') progress.disabledReason ??= 'The receiver responded with 410 (Gone).'
    const isExhausted = attempts >= ATTEMPTS_MAX
    const noneSucceeded = progress.succeededAt === null || progress.succeededAt < firstAt
    if (isExhausted && noneSucceeded)
      progress.disabledReason ??= `No delivery succeeded since ${new Date(firstAt).toISOString()}, after ${attempts} attempts.`
    const failed = isExhausted && !noneSucceeded
    if (failed && ++this.#failed >= FAILED_MAX)
      progress.disabledReason ??= `${FAILED_MAX} messages could not be delivered.`
    const waitMs = Math.max(
      this.#applyJitter(delayAt(RETRY_DELAYS_MS, attempts - 1)),
      outcome.retryAfterMs === null ? 0 : Math.min(outcome.retryAfterMs, RETRY_AFTER_MAX_MS),
    )
    this.#retained.set(delivery.sequence, {
      ...delivery,
      attempts,
      firstAt,
      nextAt: now + waitMs,
      failed,
      lastStatus: outcome.status,
      lastResponse: outcome.response,
    })
    this.#retain(rest, failed ? now : AFTER_PREDECESSOR)
    return false
  }

  /** Keeps the rest of a chain when the round ends early. */
  postpone(rest: DeliveryChain, now: number): void {
    this.#retain(rest.slice(0, 1), now)
    this.#retain(rest.slice(1), AFTER_PREDECESSOR)
  }

  /** Whether the log was compacted beyond the webhook's position. */
  static hasGap(webhook: Webhook, page: FeedPage): boolean {
    return webhook.sequence < page.floor && webhook.floor !== page.floor
  }

  get summary(): DeliveryReport {
    return { progress: this.#progress, delivered: this.#delivered, undelivered: [...this.#retained.values()] }
  }

  #retain(rest: DeliveryChain, nextAt: number): void {
    for (const delivery of rest) this.#retained.set(delivery.sequence, { ...delivery, nextAt })
  }

  #waitUntil(at: number): void {
    this.#progress.retryAt = Math.max(this.#progress.retryAt ?? 0, at)
  }

  /** ±20 %, so that processes do not all call a receiver at once. */
  #applyJitter(ms: number): number {
    return Math.round(ms * (0.8 + 0.4 * this.#jitter()))
  }
}

/** The delay at the index, or the last one. */
function delayAt(delays: readonly number[], index: number): number {
  return delays[index] ?? delays.at(-1) ?? 0
}

function groupByKey(deliveries: readonly Delivery[]): DeliveryChain[] {
  const chains = new Map<string, Delivery[]>()
  for (const delivery of deliveries) {
    const name = JSON.stringify([delivery.database, delivery.key])
    const chain = chains.get(name)
    if (chain === undefined) chains.set(name, [delivery])
    else chain.push(delivery)
  }
  return [...chains.values()]
}

export interface DeliveryRoundOptions {
  readonly webhook: Webhook
  readonly pending: readonly Delivery[]
  /** Changes of the page that match the filter. */
  readonly newDeliveries: readonly Delivery[]
  readonly page: FeedPage | null
  readonly now: number
  readonly jitter: () => number
}
