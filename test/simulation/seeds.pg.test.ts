import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { SimulationReport } from '../../src/testing/simulation/campaign.ts'
import { simulate } from '../../src/testing/simulation/simulate.ts'
import { simulateVendors } from '../../src/testing/simulation/vendors/simulate-vendors.ts'
import { PostgresWorlds } from './postgres-worlds.ts'

/** Each takes a second and more; `npm run campaign:sim` runs more. */
const SEEDS = Number(process.env['TIDEMARK_POSTGRES_SEEDS'] ?? 8)
const FIRST_SEED = Number(process.env['TIDEMARK_FIRST_SEED'] ?? 1)

describe.skipIf(inject('postgresUrl') === '')('worlds on PostgreSQL, whose clock is the virtual one', () => {
  let store: PostgresWorlds
  beforeAll(async () => void (store = await PostgresWorlds.create(inject('postgresUrl'))))
  afterAll(() => store?.remove())

  test('no invariant is broken in worlds of any kind', async () => {
    expectNoFailure(await simulate({ seeds: SEEDS, firstSeed: FIRST_SEED, store }))
  }, 3_600_000)

  test('no invariant is broken in worlds in which runners with soft and with hard deletes alternate', async () => {
    expectNoFailure(
      await simulate({ seeds: Math.ceil(SEEDS / 2), firstSeed: FIRST_SEED, overrides: { deletes: 'changing' }, store }),
    )
  }, 3_600_000)

  test('no invariant is broken in worlds of any vendor', async () => {
    expectNoFailure(await simulateVendors({ seeds: SEEDS, firstSeed: FIRST_SEED, store }))
  }, 3_600_000)

  test('a world is deterministic', async () => {
    const [one, other] = [await simulate({ seeds: 2, store }), await simulate({ seeds: 2, store })]
    expect(other.digest).toBe(one.digest)
  })
})

function expectNoFailure({ failures, sentence, perSecond, digest }: SimulationReport): void {
  expect(failures.map(({ seed, kind, oracle, message, faults }) => ({ seed, kind, oracle, message, faults }))).toEqual(
    [],
  )
  console.info(`${sentence} ${perSecond.toFixed(1)} worlds a second, digest ${digest}.`)
}
