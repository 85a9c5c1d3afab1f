import { expect, test } from 'vitest'
import { frontier } from '../../src/strategies/index.ts'
import { runCampaign } from './frontier-world.ts'

/** `npm run campaign:sim` runs more. */
const SEEDS = Number(process.env['TIDEMARK_SEEDS'] ?? 40)
const FIRST_SEED = Number(process.env['TIDEMARK_FIRST_SEED'] ?? 1)

/** Progress is printed after this many worlds, so that a long campaign is not silent until its end. */
const BLOCK = 500

test(
  'SD1 SD2 SD4 SD6 T9 XC27 XC28 XC29: in no world is anything missing by forward passes alone, or too much after a sweep',
  async () => {
    for (let done = 0; done < SEEDS; done += BLOCK) {
      const { failures, sentence } = await runCampaign(Math.min(BLOCK, SEEDS - done), frontier, {
        firstSeed: FIRST_SEED + done,
      })
      console.info(`from seed ${FIRST_SEED + done}: ${sentence}`)
      expect(failures.map(({ seed, broken, conditions }) => ({ seed, broken, conditions }))).toEqual([])
    }
  },
  6 * 3_600_000,
)
