import { startPostgres } from '../bench.mjs'
import { amount, compared, median, percentile, ratio } from '../measures.mjs'

/** The delay of a streaming replica on the machine of its primary. Starts both servers. */
export const replica = {
  title: 'A streaming replica on the machine of its primary',
  async run(bench) {
    const primary = await startPostgres()
    const copy = await primary.replica()
    try {
      const { turns, page } = bench.sizes
      const result = await bench.child('replica.mjs', primary.url, copy.url, turns * 40, page)
      const { lag, pages } = result
      const delay = (work, ms) => [
        amount(`${work}, median`, '–', { figure: median(ms) }, 'ms'),
        amount(`${work}, 99 of 100`, '–', { figure: percentile(ms, 0.99) }, 'ms'),
      ]
      return {
        ...result,
        measures: [
          ...delay('a commit is seen on the primary', lag.here),
          ...delay('a commit is seen on the replica', lag.there),
          ...delay('… while four writers commit', lag.busy),
          ratio('page of 100 changes, replica', 'from the primary', compared(pages.there, pages.here), 'pages/s'),
        ],
      }
    } finally {
      await copy.stop()
      await primary.stop()
    }
  },
}
