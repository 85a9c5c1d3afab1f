import { expect, test } from 'vitest'
import { frontier } from '../../src/strategies/index.ts'
import { runCampaign } from './frontier-world.ts'

/** More by hand, or by night: TIDEMARK_SEEDS=10000 npx vitest run test/strategies/frontier-worlds */
const SEEDS = Number(process.env['TIDEMARK_SEEDS'] ?? 100)

test('SD1 SD2 SD4 SD6 T9 XC27 XC28 XC29: in no world is anything missing by forward passes alone, or too much after a sweep', async () => {
  const { failures, sentence } = await runCampaign(SEEDS, frontier)
  expect(failures.map(({ seed, broken, conditions }) => ({ seed, broken, conditions }))).toEqual([])
  console.info(sentence)
}, 3_600_000)
