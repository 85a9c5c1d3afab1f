import { describe, expect, test } from 'vitest'
import { SyncError } from '../../../src/contract/index.ts'
import {
  getCircuitState,
  recordFailure,
  isRateLimited,
  scoreHealth,
  recordSuccess,
  INITIAL_HEALTH,
  type ProviderHealth,
} from '../../../src/strategies/failover/circuit-breaker.ts'
import { createUnavailableError } from './provider-fixture.ts'

const MINUTE = 60_000
const after = (times: number, now = 0): ProviderHealth =>
  Array.from({ length: times }).reduce<ProviderHealth>(
    (health) => recordFailure(health, createUnavailableError(), now),
    INITIAL_HEALTH,
  )

describe('the circuit of a provider', () => {
  test('EX3 the third failure in a row opens it, five minutes make it half-open, a success closes it', () => {
    expect(getCircuitState(after(2), 0)).toBe('closed')
    expect(getCircuitState(after(3), 5 * MINUTE - 1)).toBe('open')
    expect(getCircuitState(after(3), 5 * MINUTE)).toBe('half-open')
    expect(getCircuitState(recordFailure(after(3), createUnavailableError(), 5 * MINUTE), 6 * MINUTE)).toBe('open')
    expect(getCircuitState(recordSuccess(after(3), 10), 5 * MINUTE)).toBe('closed')
    expect(getCircuitState(recordFailure(recordSuccess(after(2), 10), createUnavailableError(), 0), 0)).toBe('closed')
  })

  test('EX3 a clock that was set back does not keep it shut', () => {
    expect(getCircuitState(after(3, 10 * MINUTE), 0)).toBe('half-open')
    expect(isRateLimited({ ...INITIAL_HEALTH, waitUntil: 10 ** 12 }, 0)).toBe(false)
  })

  test('EX3 it survives a restart: all of it is JSON', () => {
    const kept = JSON.parse(JSON.stringify(after(3))) as ProviderHealth
    expect(getCircuitState(kept, MINUTE)).toBe('open')
  })

  test('EX3 a requested wait is not a failure, a timeout is', () => {
    const limited = recordFailure(INITIAL_HEALTH, new SyncError('RATE_LIMITED', 'slow', { retryAfterMs: 2_000 }), 100)
    expect(limited).toMatchObject({ failures: 0, waitUntil: 2_100 })
    expect([isRateLimited(limited, 2_099), isRateLimited(limited, 2_100)]).toEqual([true, false])
    expect(recordFailure(INITIAL_HEALTH, new SyncError('SOURCE_TIMEOUT', 'late'), 0).failures).toBe(1)
  })

  test('EX3 XD1 a provider that refuses without saying for how long is asked ever more slowly, until it answers', () => {
    const refusal = new SyncError('RATE_LIMITED', 'slow')
    let health = INITIAL_HEALTH
    const waits = Array.from({ length: 12 }, () => (health = recordFailure(health, refusal, 100)).waitUntil! - 100)
    expect(waits.slice(0, 5)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000])
    expect(waits.at(-1)).toBe(15 * 60_000)
    expect(recordFailure(recordSuccess(health, 10), refusal, 100).waitUntil).toBe(1_100)
  })

  test.each<[string, ProviderHealth, number]>([
    ['untried', INITIAL_HEALTH, 100],
    ['quick', { failures: 0, requests: 10, failed: 0, averageMs: 999 }, 120],
    ['neither quick nor slow', { failures: 0, requests: 10, failed: 0, averageMs: 1_000 }, 100],
    ['slow', { failures: 0, requests: 10, failed: 0, averageMs: 5_001 }, 70],
    ['half of the answers failed', { failures: 0, requests: 10, failed: 5, averageMs: 2_000 }, 75],
    ['failed just now', { failures: 1, requests: 10, failed: 1, averageMs: 2_000 }, 35],
    ['half-open', { failures: 0, requests: 10, failed: 0, averageMs: 2_000, openedAt: -10 * MINUTE }, 75],
    ['open, and never below nothing', after(3), 0],
  ])('EX3 the score of a provider: %s', (_, health, score) => {
    expect(scoreHealth(health, 0)).toBe(score)
  })

  test('EX3 what happened long ago weighs less', () => {
    let health = after(50)
    for (let at = 0; at < 1_000; at++) health = recordSuccess(health, 10)
    expect(health.failed).toBeLessThan(1)
    expect(health.requests).toBeLessThanOrEqual(100)
  })
})
