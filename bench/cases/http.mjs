import { compared, ratio } from '../measures.mjs'

export const http = {
  title: 'HTTP API on loopback to SQLite',
  async run(bench) {
    const { records, page, turns } = bench.sizes
    const result = await bench.withServer('http-server.mjs', [records, page], ({ port }) =>
      bench.child('http.mjs', port, bench.file('http.db'), records, page, turns),
    )
    const limit = 'one-thread sum of fetch, parse, land'
    return {
      ...result,
      measures: [
        ratio('HTTP API → SQLite, end to end', limit, compared(result.rates, result.oneThread), 'rows/s', 0.9),
      ],
    }
  },
}
