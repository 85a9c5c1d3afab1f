import { describe, expect, test } from 'vitest'
import type { Delivery, Webhook } from '../../src/contract/index.ts'
import { messageId } from '../../src/webhooks/message.ts'
import { ATTEMPTS_MAX, DEAD_MAX, Round } from '../../src/webhooks/round.ts'
import type { Outcome } from '../../src/webhooks/send.ts'

const FAILED: Outcome = { kind: 'failed', status: 500, answer: null, retryAfterMs: null }
const DELIVERED: Outcome = { kind: 'delivered', status: 200, answer: null, retryAfterMs: null }
const NOW = Date.UTC(2026, 0, 1)
const HOUR_MS = 3_600_000

describe('Z33 how often and how long', () => {
  test('Z33 ten tries over about three days; then, when nothing else got through, the webhook is disabled and the delivery stays', () => {
    const { at, webhook, delivery } = exhaust(() => false)
    expect(delivery).toMatchObject({ attempts: ATTEMPTS_MAX, dead: false })
    expect(ATTEMPTS_MAX).toBe(10)
    expect((at - NOW) / HOUR_MS).toBeGreaterThan(60)
    expect((at - NOW) / HOUR_MS).toBeLessThan(100)
    expect(webhook.disabled).toBe('Nothing got through since 2026-01-01T00:00:00.000Z, in 10 tries.')
  })

  test('Z33 when others get through meanwhile, only the delivery is given up: a dead letter', () => {
    const { webhook, delivery } = exhaust(() => true)
    expect(webhook.disabled).toBe(null)
    expect(delivery).toMatchObject({ attempts: 10, dead: true, lastStatus: 500 })
  })

  test('Z33 waits differ by chance, by a fifth at most', () => {
    const waits = [0, 0.5, 0.999].map((chance) => {
      const round = roundOf({ fresh: [deliveryOf(1)], jitter: () => chance })
      round.settle(deliveryOf(1), [], FAILED, NOW, NOW)
      return round.note.kept[0]!.nextAt - NOW
    })
    expect(waits).toEqual([4_000, 5_000, 5_998])
  })

  test('Z33 Retry-After is honoured up to a day', () => {
    const waits = [60_000, 900 * HOUR_MS].map((retryAfterMs) => {
      const round = roundOf({ fresh: [deliveryOf(1)] })
      round.settle(deliveryOf(1), [], { ...FAILED, status: 429, retryAfterMs }, NOW, NOW)
      expect(round.isOver).toBe(true)
      return [round.note.standing.retryAt! - NOW, round.note.kept[0]!.nextAt - NOW]
    })
    expect(waits).toEqual([[60_000, 60_000], [24 * HOUR_MS, 24 * HOUR_MS]])
  })

  test('too many dead letters disable the webhook, so that they do not pile up for ever', () => {
    const last = deliveryOf(1, { attempts: 9, firstAt: NOW - 1 })
    const disabled = [DEAD_MAX - 2, DEAD_MAX - 1].map((dead) => {
      const round = roundOf({ waiting: [last], webhook: { succeededAt: NOW, dead } })
      round.settle(last, [], FAILED, NOW, NOW)
      return round.note.standing.disabled
    })
    expect(disabled).toEqual([null, '1000 messages were given up.'])
  })

  test('after a dead letter the next of its key goes', () => {
    const [head, next] = [deliveryOf(1, { attempts: 9, firstAt: NOW - 1 }), deliveryOf(2)]
    const round = roundOf({ waiting: [head], fresh: [next], webhook: { succeededAt: NOW } })
    expect(round.settle(head, [next], FAILED, NOW, NOW)).toBe(false)
    expect(round.note.kept.map(({ sequence, dead, nextAt }) => [sequence, dead, nextAt <= NOW])).toEqual([[1, true, false], [2, false, true]])
  })

  test('what is behind one that failed is not due by itself: the webhook rests until the first one is', () => {
    const round = roundOf({ fresh: [deliveryOf(1), deliveryOf(2)] })
    round.settle(deliveryOf(1), [deliveryOf(2)], FAILED, NOW, NOW)
    const [first, second] = round.note.kept
    expect(Math.min(first!.nextAt, second!.nextAt)).toBe(first!.nextAt)
    expect(first!.nextAt).toBeGreaterThan(NOW)
  })

  test('what is behind one that waits is never sent before it', () => {
    const waiting = [deliveryOf(1, { attempts: 1, nextAt: NOW + 1 }), deliveryOf(2, { nextAt: NOW - 1 })]
    const round = roundOf({ waiting, fresh: [deliveryOf(3), deliveryOf(4, { key: 'other' })] })
    expect(round.chains.map((chain) => chain.map(({ sequence }) => sequence))).toEqual([[4]])
    expect(round.note.kept.map(({ sequence }) => sequence)).toEqual([3])
  })
})

test('Z30 the id of a message is made of tenant, time and place, and of nothing else', () => {
  const entry = { sequence: 7, committedAt: NOW }
  const ids = [messageId('default', entry), messageId('acme', entry), messageId('default', { ...entry, sequence: 8 }), messageId('default', { ...entry, committedAt: NOW + 1 })]
  expect(new Set(ids).size).toBe(4)
  expect(messageId('default', { ...entry })).toBe(ids[0])
  for (const id of ids) expect(id).toMatch(/^msg_[\w-]{27}$/)
})

/** Tries one delivery until it is over; another key may get through after every failure. */
function exhaust(othersGetThrough: () => boolean): { at: number; webhook: Round['note']['standing']; delivery: Delivery } {
  let [at, delivery, webhook] = [NOW, deliveryOf(1), webhookOf()]
  for (let attempt = 0; attempt < 50; attempt++) {
    const round = roundOf({ ...(attempt === 0 ? { fresh: [delivery] } : { waiting: [delivery] }), now: at, webhook })
    expect(round.chains).toEqual([[delivery]])
    if (othersGetThrough()) round.settle(deliveryOf(9), [], DELIVERED, at, at)
    round.settle(delivery, [], FAILED, at, at)
    const { standing, kept } = round.note
    delivery = kept[0]!
    webhook = { ...webhook, ...standing }
    if (delivery.dead || standing.disabled !== null) return { at, webhook: standing, delivery }
    at = delivery.nextAt
  }
  throw new Error('it never ends')
}

function roundOf({ webhook = {}, ...options }: { waiting?: Delivery[]; fresh?: Delivery[]; webhook?: Partial<Webhook>; now?: number; jitter?: () => number }): Round {
  return new Round({ waiting: [], fresh: [], page: null, now: NOW, jitter: () => 0.5, ...options, webhook: { ...webhookOf(), ...webhook } })
}

function webhookOf(): Webhook {
  return {
    id: 'w', url: 'https://example.com', databases: null, actions: null, allow: [], secrets: '[]', createdAt: 1, position: 0, floor: 0, streak: 0, retryAt: null,
    succeededAt: null, failedAt: null, lastStatus: null, lastAnswer: null, disabled: null, waiting: 0, dead: 0, dueAt: null, heldBy: null,
  }
}

function deliveryOf(sequence: number, overrides: Partial<Delivery> = {}): Delivery {
  return { sequence, messageId: `msg_${sequence}`, database: 'things', key: 'k', body: '{}', attempts: 0, firstAt: null, nextAt: NOW, dead: false, lastStatus: null, lastAnswer: null, ...overrides }
}
