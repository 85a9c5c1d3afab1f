import assert from 'node:assert/strict'
import { START, SyncDriver, type StoreCase, rule } from './harness.ts'
import { required } from '../../values/required.ts'

const MINUTE = 60_000
const API = { worker: 'crm', pacers: ['api'], origin: 'https://api.example.com', ms: 10 * MINUTE, at: START } as const

export const pauseCases: readonly StoreCase[] = [
  rule('XD1 a pause is stored for every process, and ends automatically', async ({ store, reopen, supports }) => {
    await store.recordPause(API)
    const { now, pauses } = await (await reopen()).pauses({ worker: 'crm', at: START })
    assert.deepEqual(
      pauses.map(({ pacer, origin }) => [pacer, origin]),
      [['api', API.origin]],
    )
    assertNear(required(pauses[0], 'pauses[0]').until - now, 10 * MINUTE)
    // Where the store has its own clock, only that one ends it.
    if (supports?.ownClock === true) return
    assert.equal((await store.pauses({ worker: 'crm', at: START + 10 * MINUTE - 1 })).pauses.length, 1)
    assert.deepEqual((await store.pauses({ worker: 'crm', at: START + 10 * MINUTE })).pauses, [])
  }),
  rule('XD1 of two pauses of one account the later end counts, in either order', async ({ store }) => {
    for (const ms of [MINUTE, 10 * MINUTE, 2 * MINUTE]) await store.recordPause({ ...API, ms })
    const { now, pauses } = await store.pauses({ worker: 'crm', at: START })
    assert.equal(pauses.length, 1)
    assertNear(required(pauses[0], 'pauses[0]').until - now, 10 * MINUTE)
  }),
  rule('XD1 accounts are distinguished by pacer, origin, worker and tenant', async ({ store }) => {
    await store.recordPause({ ...API, pacers: ['search', 'api'] })
    await store.recordPause({ ...API, pacers: [], origin: '' })
    await store.recordPause({ ...API, origin: 'https://other.example.com' })
    const { pauses } = await store.pauses({ worker: 'crm', at: START })
    assert.deepEqual(
      pauses.map(({ pacer, origin }) => [pacer, origin]),
      [
        ['', ''],
        ['api', API.origin],
        ['api', 'https://other.example.com'],
        ['search', API.origin],
      ],
    )
    assert.deepEqual((await store.pauses({ worker: 'shop', at: START })).pauses, [])
    assert.deepEqual((await store.forTenant('acme').pauses({ worker: 'crm', at: START })).pauses, [])
  }),
  rule(
    'XD1 a cycle blocked by a pause does not count as a further failure, and has a retry time',
    async ({ store }) => {
      const error = { code: 'RATE_LIMITED', message: 'asked for a pause' } as const
      for (const [run, failures] of [
        [1, 1],
        [2, 1],
        [3, 1],
      ] as const) {
        const driver = await SyncDriver.acquire(store)
        await driver.begin()
        await driver.release({
          stopReason: 'error',
          endedAt: START + run,
          error,
          retryAt: START + 60_000 + run,
          isBlockedByPause: true,
        })
        const checkpoint = await store.readCheckpoint(driver.ref)
        assert.deepEqual(
          [checkpoint.failures, checkpoint.lastError?.code, checkpoint.retryAt],
          [failures, 'RATE_LIMITED', START + 60_000 + run],
        )
      }
    },
  ),
  rule('XC26 a clock that was set back makes no pause longer than announced', async ({ store, supports }) => {
    if (supports?.ownClock === true) return
    await store.recordPause(API)
    const back = START - 24 * 60 * MINUTE
    const { now, pauses } = await store.pauses({ worker: 'crm', at: back })
    assert.equal(required(pauses[0], 'pauses[0]').until - now, 10 * MINUTE)
    await store.recordPause({ ...API, ms: MINUTE, at: back })
    assert.equal(
      required((await store.pauses({ worker: 'crm', at: back })).pauses[0], 'pauses[0]').until,
      back + 10 * MINUTE,
    )
  }),
]

/** The store's own clock advances between two calls. */
function assertNear(actual: number, expected: number): void {
  assert.ok(actual <= expected && actual > expected - MINUTE, `${actual} ms instead of ${expected}`)
}
