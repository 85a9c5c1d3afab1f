import { expect, test } from 'vitest'
import type { Lease, Store } from '../../src/contract/index.ts'
import { startLeaseHeartbeat, type LeaseHeartbeat } from '../../src/engine/lease-heartbeat.ts'
import { FakeClock } from './fake-clock.ts'
import { ref, SECOND } from './engine-fixture.ts'

const TTL_MS = 30 * SECOND
const LEASE: Lease = { ref: ref(), holder: 'process-1', epoch: 1 }

interface KeptLease {
  readonly clock: FakeClock
  readonly lease: LeaseHeartbeat
  /** Aborted when the cycle has to stop. */
  readonly signal: AbortSignal
  readonly renewals: () => number
}

function keep(answer: () => Promise<boolean>): KeptLease {
  const clock = new FakeClock()
  const stopping = new AbortController()
  let renewals = 0
  const store = { renew: () => (renewals++, answer()) } as Partial<Store> as Store
  const lease = startLeaseHeartbeat({
    store,
    clock,
    lease: LEASE,
    ttlMs: TTL_MS,
    requestedAt: clock.now(),
    cycleAbort: stopping,
  })
  return { clock, lease, signal: stopping.signal, renewals: () => renewals }
}

test('XB1 a lease that another runner has taken over stops the cycle at the next renewal', async () => {
  const { clock, signal, renewals } = keep(async () => false)
  await clock.advance(TTL_MS / 3 - 1)
  expect(signal.aborted).toBe(false)
  await clock.advance(2)
  expect(signal.reason).toMatchObject({ code: 'LEASE_LOST' })
  await clock.advance(10 * TTL_MS)
  expect(renewals()).toBe(1)
})

test('XB1 a lease that the store cannot renew expires after its TTL, and not before', async () => {
  const { clock, lease, signal } = keep(() => Promise.reject(new Error('the store is away')))
  await clock.advance(TTL_MS - 1)
  expect([lease.isLate(), signal.aborted]).toEqual([true, false])
  await clock.advance(2)
  expect(signal.reason).toMatchObject({ code: 'LEASE_LOST' })
})

test('XB1 a lease is renewed three times per TTL, until the cycle ends', async () => {
  const { clock, lease, signal, renewals } = keep(async () => true)
  await clock.advance(10 * TTL_MS)
  expect(renewals()).toBe(30)
  expect([lease.isLate(), signal.aborted]).toEqual([false, false])
  lease.stop()
  await clock.advance(10 * TTL_MS)
  expect([renewals(), signal.aborted]).toEqual([30, false])
})

test('XB1 the TTL of a renewed lease starts when the renewal was requested', async () => {
  let answers = true
  const { clock, signal } = keep(async () => answers || Promise.reject(new Error('the store is away')))
  await clock.advance(TTL_MS / 3)
  answers = false
  await clock.advance(TTL_MS - 1)
  expect(signal.aborted).toBe(false)
  await clock.advance(1)
  expect(signal.reason).toMatchObject({ code: 'LEASE_LOST' })
})

test('XB1 a lease is late when a third of its TTL is left, until it is renewed', async () => {
  const { clock, lease } = keep(async () => true)
  clock.step((2 * TTL_MS) / 3 - 1)
  expect(lease.isLate()).toBe(false)
  clock.step(1)
  expect(lease.isLate()).toBe(true)
  expect(await lease.renew()).toBe(true)
  expect(lease.isLate()).toBe(false)
})
