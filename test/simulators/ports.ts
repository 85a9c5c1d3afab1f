import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { ManualClock } from '../../simulators/src/kit/manual-clock.ts'

/** A stopped clock and seeded randomness. */
export function portsOf(seed = 1): { clock: ManualClock; random: RandomStream } {
  return { clock: new ManualClock(), random: new RandomStream(seed, 'simulator') }
}
