import { amount } from '../measures.mjs'
import { SMALL } from '../sizes.mjs'

/** Virtual time, real runner and engine; see bench/fleet/simulate.mjs. */
export const fleet = {
  title: 'A simulated fleet: hourly syncs of 2 s, 8 processes with 32 slots each; one process ends early',
  async run(bench) {
    const shape = bench.sizes.syncs === SMALL.syncs ? [4, 10, 3, 4, 75] : [1_000, 100, 8, 32, 75]
    const result = await bench.child('../fleet/simulate.mjs', ...shape)
    const { overlaps, early, drainedAfterS, lagS, heldShare, cpuMsPerCycle, peakMb, realS } = result
    return {
      ...result,
      measures: [
        amount('two cycles of a sync at once', '–', { figure: overlaps }, 'cycles', 0),
        amount('cycles before their time', '–', { figure: early }, 'cycles', 0),
        amount('all due at once, done after', '–', { figure: drainedAfterS }, 's'),
        amount('lateness of a slot, median', '–', { figure: lagS.p50 }, 's'),
        amount('lateness of a slot, 99 of 100', '–', { figure: lagS.p99 }, 's'),
        amount('leases asked for that were taken', '–', { figure: heldShare * 100 }, '%'),
        amount('CPU of scheduler and engine', '–', { figure: cpuMsPerCycle }, 'ms/cycle'),
        amount('peak memory of all processes', '–', { figure: peakMb }, 'MB'),
        amount('real time', '–', { figure: realS }, 's'),
      ],
    }
  },
}
