import { RandomStream } from '../../src/testing/simulation/random-stream.ts'
import { ManualClock } from '../../src/testing/simulators/kit/manual-clock.ts'

/** A clock that stands still and chance from a seed. */
export function portsOf(seed = 1): { clock: ManualClock; random: RandomStream } {
  return { clock: new ManualClock(), random: new RandomStream(seed, 'simulator') }
}
