import { expect, test } from 'vitest'
import { runCycle } from '../../src/index.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { stripe } from '../../src/sources/stripe/source.ts'
import { realOrSimulated } from '../../simulators/src/index.ts'

test('a simulated source keeps the properties of its functions, and a range is read from the simulated account', async () => {
  const account = stripe({ apiKey: 'STRIPE_KEY' })
  const simulated = realOrSimulated('stripe', { unless: 'STRIPE_KEY', since: new Date().toISOString() })
  const { backfill } = simulated(account.customers)
  for (const name of Object.keys(account.customers.backfill)) expect(backfill, name).toHaveProperty(name)
  const range = backfill.range?.({ from: '2000-01-01T00:00:00Z' })
  expect(range).toBeTypeOf('function')
  const store = await openStore('sqlite::memory:')
  try {
    const execute = range ?? backfill
    const sync = { name: 'range', database: 'customers', mode: 'incremental' as const, execute }
    const { stopReason, counts } = await runCycle({ store, sync, secrets: {} })
    expect(stopReason).toBe('complete')
    expect(counts.created).toBeGreaterThan(0)
  } finally {
    await store.close()
  }
})
