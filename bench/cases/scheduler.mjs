import { amount, ratio } from '../measures.mjs'

/** Due syncs in one process, the cost of idle ones, and the small transactions that a fleet makes in PostgreSQL. */
export const scheduler = {
  title: 'The scheduler: one process, syncs of five tenants',
  async run(bench) {
    const { syncs, seconds } = bench.sizes
    const result = await bench.withDatabase((url) => bench.child('scheduler.mjs', syncs, seconds, url))
    const { idleUsPerSync, peakMb, drainedMb, postgres, lastSmall, triggered, halfway } = result
    const bare = (name, ours) => {
      const raw = postgres.barePerSecond
      const figures = { ratio: ours / raw, ours, raw }
      return ratio(`PostgreSQL, 16 at once: ${name}`, 'update of one row by key', figures, '/s')
    }
    bench.say(`  half-way, cycles of each tenant: ${Object.values(halfway).join(', ')}`)
    bench.say(`  ${syncs} triggered for one tenant, few for four others:`)
    bench.say(`  the last of the few was number ${lastSmall} of ${triggered}`)
    return {
      ...result,
      measures: [
        amount('cycles in one process, all due', '–', { figure: result.cyclesPerSecond }, '/s'),
        amount('CPU of an idle sync per second', '–', { figure: idleUsPerSync }, 'µs'),
        amount('memory after all ran', '–', { figure: drainedMb }, 'MB'),
        amount('peak memory', '–', { figure: peakMb }, 'MB'),
        amount('PostgreSQL: status of 10,000 syncs', '–', { figure: postgres.allMs }, 'ms'),
        amount('PostgreSQL: changed syncs, none', '–', { figure: postgres.movedMs }, 'ms'),
        amount('PostgreSQL: changed syncs, one', '–', { figure: postgres.oneMs }, 'ms'),
        bare('empty cycles of 16 tenants', postgres.cyclesPerSecond),
        bare('empty cycles of one tenant', postgres.cyclesOfOnePerSecond),
        bare('slots of one pacer', postgres.slotsPerSecond),
      ],
    }
  },
}
