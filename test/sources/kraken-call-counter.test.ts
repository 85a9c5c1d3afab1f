import { describe, expect, test } from 'vitest'
import { CallCounter, TIERS, type KrakenTier } from '../../src/sources/kraken/call-counter.ts'

const NOW = 1_700_000_000_000
const tiers = Object.keys(TIERS) as KrakenTier[]
const waits = (counter: CallCounter, calls: number, now = NOW): number[] =>
  Array.from({ length: calls }, () => counter.reserveCall(now))

describe('XD1 the call counter of a Kraken key', () => {
  test.each(tiers)('%s: lets calls of two points through up to its maximum', (tier) => {
    const counter = new CallCounter(tier)
    const free = Math.floor(TIERS[tier].max / 2)
    expect(waits(counter, free)).toEqual(Array.from({ length: free }, () => 0))
    expect(counter.reserveCall(NOW)).toBeGreaterThan(0)
  })

  test.each(tiers)('%s: a call that has waited finds the counter at its maximum, not above', (tier) => {
    const { max, decayPerSecond } = TIERS[tier]
    const counter = new CallCounter(tier)
    const taken = waits(counter, 20)
    for (const [at, ms] of taken.entries()) {
      const valueThen = 2 * (at + 1) - (ms / 1_000) * decayPerSecond
      expect(valueThen).toBeLessThanOrEqual(max + 1e-9)
      if (ms > 0) expect(valueThen).toBeGreaterThan(max - 0.01)
    }
  })

  test('decays with time and never below zero', () => {
    const counter = new CallCounter('pro')
    waits(counter, 10)
    expect(counter.reserveCall(NOW + 2_000)).toBe(0)
    expect(counter.reserveCall(NOW + 2_000)).toBe(2_000)
    // After an hour it is exactly zero: the eleventh call waits again.
    expect(waits(counter, 11, NOW + 3_600_000)).toEqual([...Array.from({ length: 10 }, () => 0), 2_000])
  })

  test('a clock that is set back does not change it', () => {
    const counter = new CallCounter('pro')
    waits(counter, 10)
    expect(counter.reserveCall(NOW - 3_600_000)).toBe(2_000)
  })

  test('is at least full after a rejection, and keeps a higher value', () => {
    const counter = new CallCounter('pro')
    counter.recordRefusal(NOW)
    expect(counter.reserveCall(NOW)).toBe(4_000)
    const busy = new CallCounter('pro')
    waits(busy, 20)
    busy.recordRefusal(NOW)
    expect(busy.reserveCall(NOW)).toBe(22_000)
  })

  test('the wait after a rejection empties it', () => {
    expect(tiers.map((tier) => new CallCounter(tier).drainMs)).toEqual([51_516, 44_000, 22_000])
    const counter = new CallCounter('pro')
    counter.recordRefusal(NOW)
    expect(waits(counter, 10, NOW + counter.drainMs)).toEqual(Array.from({ length: 10 }, () => 0))
  })
})
