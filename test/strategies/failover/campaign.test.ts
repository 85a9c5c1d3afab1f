import { expect, test } from 'vitest'
import { runFailoverWorld, type Outcome } from './campaign.ts'

/** More with `npm run sim:failover`; one alone with TIDEMARK_SEEDS=1 TIDEMARK_FIRST_SEED=n. */
const SEEDS = Number(process.env['TIDEMARK_SEEDS'] ?? 30)
const FIRST = Number(process.env['TIDEMARK_FIRST_SEED'] ?? 1)

test(
  'E49 XC35 XC38 in every world, whatever the providers do, the rows become those of the chain, and the feed contains each change once',
  { timeout: 60_000 + SEEDS * 5_000 },
  async () => {
    const seeds = Array.from({ length: SEEDS }, (_, at) => FIRST + at)
    const failed: Outcome[] = []
    const sums = { faults: 0, switches: 0, reorgs: 0, crashes: 0 }
    for (const seed of seeds) {
      const outcome = await runFailoverWorld(seed)
      for (const name of Object.keys(sums) as Array<keyof typeof sums>) sums[name] += outcome[name]
      if (outcome.problem !== null) failed.push(outcome)
      if (failed.length >= 5) break
      if ((seed - FIRST + 1) % 250 === 0)
        console.info(`${seed - FIRST + 1} worlds, ${failed.length} failed: ${JSON.stringify(sums)}`)
    }
    expect(failed).toEqual([])
    // A world in which nothing happens proves nothing.
    if (SEEDS >= 10)
      for (const [name, count] of Object.entries(sums)) expect(count, name).toBeGreaterThan(seeds.length / 4)
  },
)
