import { describe, expect, test } from 'vitest'
import type { Delivery, Webhook } from '../../src/contract/index.ts'
import { computeMessageId } from '../../src/webhooks/message.ts'
import { ATTEMPTS_MAX, FAILED_MAX, DeliveryRound } from '../../src/webhooks/delivery-round.ts'
import type { DeliveryOutcome } from '../../src/webhooks/send.ts'

const FAILED: DeliveryOutcome = { kind: 'failed', status: 500, response: null, retryAfterMs: null }
const DELIVERED: DeliveryOutcome = { kind: 'delivered', status: 200, response: null, retryAfterMs: null }
const NOW = Date.UTC(2026, 0, 1)
const HOUR_MS = 3_600_000

describe('Z33 attempts and delays', () => {
  test('Z33 ten attempts over about three days; then, if none succeeded, the webhook is disabled and the delivery stays', () => {
    const { at, webhook, delivery } = exhaust(() => false)
    expect(delivery).toMatchObject({ attempts: ATTEMPTS_MAX, failed: false })
    expect(ATTEMPTS_MAX).toBe(10)
    expect((at - NOW) / HOUR_MS).toBeGreaterThan(60)
    expect((at - NOW) / HOUR_MS).toBeLessThan(100)
    expect(webhook.disabledReason).toBe('No delivery succeeded since 2026-01-01T00:00:00.000Z, after 10 attempts.')
  })

  test('Z33 if others succeed meanwhile, only the delivery is failed', () => {
    const { webhook, delivery } = exhaust(() => true)
    expect(webhook.disabledReason).toBe(null)
    expect(delivery).toMatchObject({ attempts: 10, failed: true, lastStatus: 500 })
  })

  test('Z33 delays have a jitter of at most a fifth', () => {
    const waits = [0, 0.5, 0.999].map((chance) => {
      const round = roundOf({ newDeliveries: [deliveryOf(1)], jitter: () => chance })
      round.recordOutcome(deliveryOf(1), [], FAILED, NOW, NOW)
      return round.summary.undelivered[0]!.nextAt - NOW
    })
    expect(waits).toEqual([4_000, 5_000, 5_998])
  })

  test('Z33 Retry-After is respected up to a day', () => {
    const waits = [60_000, 900 * HOUR_MS].map((retryAfterMs) => {
      const round = roundOf({ newDeliveries: [deliveryOf(1)] })
      round.recordOutcome(deliveryOf(1), [], { ...FAILED, status: 429, retryAfterMs }, NOW, NOW)
      expect(round.isOver).toBe(true)
      return [round.summary.progress.retryAt! - NOW, round.summary.undelivered[0]!.nextAt - NOW]
    })
    expect(waits).toEqual([
      [60_000, 60_000],
      [24 * HOUR_MS, 24 * HOUR_MS],
    ])
  })

  test('too many failed deliveries disable the webhook, so that they do not accumulate', () => {
    const last = deliveryOf(1, { attempts: 9, firstAt: NOW - 1 })
    const disabled = [FAILED_MAX - 2, FAILED_MAX - 1].map((failed) => {
      const round = roundOf({ pending: [last], webhook: { succeededAt: NOW, failed } })
      round.recordOutcome(last, [], FAILED, NOW, NOW)
      return round.summary.progress.disabledReason
    })
    expect(disabled).toEqual([null, '1000 messages could not be delivered.'])
  })

  test('after a failed delivery the next delivery of its key is sent', () => {
    const [head, next] = [deliveryOf(1, { attempts: 9, firstAt: NOW - 1 }), deliveryOf(2)]
    const round = roundOf({ pending: [head], newDeliveries: [next], webhook: { succeededAt: NOW } })
    expect(round.recordOutcome(head, [next], FAILED, NOW, NOW)).toBe(false)
    expect(round.summary.undelivered.map(({ sequence, failed, nextAt }) => [sequence, failed, nextAt <= NOW])).toEqual([
      [1, true, false],
      [2, false, true],
    ])
  })

  test('a delivery behind a failed one is not due by itself: the webhook waits for the first one', () => {
    const round = roundOf({ newDeliveries: [deliveryOf(1), deliveryOf(2)] })
    round.recordOutcome(deliveryOf(1), [deliveryOf(2)], FAILED, NOW, NOW)
    const [first, second] = round.summary.undelivered
    expect(Math.min(first!.nextAt, second!.nextAt)).toBe(first!.nextAt)
    expect(first!.nextAt).toBeGreaterThan(NOW)
  })

  test('a delivery behind a waiting one is never sent before it', () => {
    const waiting = [deliveryOf(1, { attempts: 1, nextAt: NOW + 1 }), deliveryOf(2, { nextAt: NOW - 1 })]
    const round = roundOf({ pending: waiting, newDeliveries: [deliveryOf(3), deliveryOf(4, { key: 'other' })] })
    expect(round.chains.map((chain) => chain.map(({ sequence }) => sequence))).toEqual([[4]])
    expect(round.summary.undelivered.map(({ sequence }) => sequence)).toEqual([3])
  })
})

test('Z30 the id of a message depends on tenant, time and sequence only', () => {
  const entry = { sequence: 7, committedAt: NOW }
  const ids = [
    computeMessageId('default', entry),
    computeMessageId('acme', entry),
    computeMessageId('default', { ...entry, sequence: 8 }),
    computeMessageId('default', { ...entry, committedAt: NOW + 1 }),
  ]
  expect(new Set(ids).size).toBe(4)
  expect(computeMessageId('default', { ...entry })).toBe(ids[0])
  for (const id of ids) expect(id).toMatch(/^msg_[\w-]{27}$/)
})

/** Attempts one delivery until it ends; another key may succeed after every failure. */
function exhaust(othersGetThrough: () => boolean): {
  at: number
  webhook: DeliveryRound['summary']['progress']
  delivery: Delivery
} {
  let [at, delivery, webhook] = [NOW, deliveryOf(1), webhookOf()]
  for (let attempt = 0; attempt < 50; attempt++) {
    const round = roundOf({
      ...(attempt === 0 ? { newDeliveries: [delivery] } : { pending: [delivery] }),
      now: at,
      webhook,
    })
    expect(round.chains).toEqual([[delivery]])
    if (othersGetThrough()) round.recordOutcome(deliveryOf(9), [], DELIVERED, at, at)
    round.recordOutcome(delivery, [], FAILED, at, at)
    const { progress: standing, undelivered: kept } = round.summary
    delivery = kept[0]!
    webhook = { ...webhook, ...standing }
    if (delivery.failed || standing.disabledReason !== null) return { at, webhook: standing, delivery }
    at = delivery.nextAt
  }
  throw new Error('it never ends')
}

function roundOf({
  webhook = {},
  ...options
}: {
  pending?: Delivery[]
  newDeliveries?: Delivery[]
  webhook?: Partial<Webhook>
  now?: number
  jitter?: () => number
}): DeliveryRound {
  return new DeliveryRound({
    pending: [],
    newDeliveries: [],
    page: null,
    now: NOW,
    jitter: () => 0.5,
    ...options,
    webhook: { ...webhookOf(), ...webhook },
  })
}

function webhookOf(): Webhook {
  return {
    id: 'w',
    url: 'https://example.com',
    databases: null,
    actions: null,
    allow: [],
    secrets: '[]',
    createdAt: 1,
    sequence: 0,
    floor: 0,
    failureStreak: 0,
    retryAt: null,
    succeededAt: null,
    failedAt: null,
    lastStatus: null,
    lastResponse: null,
    disabledReason: null,
    waiting: 0,
    failed: 0,
    dueAt: null,
    heldBy: null,
  }
}

function deliveryOf(sequence: number, overrides: Partial<Delivery> = {}): Delivery {
  return {
    sequence,
    messageId: `msg_${sequence}`,
    database: 'things',
    key: 'k',
    body: '{}',
    attempts: 0,
    firstAt: null,
    nextAt: NOW,
    failed: false,
    lastStatus: null,
    lastResponse: null,
    ...overrides,
  }
}
