import { compared, median, ratio } from '../measures.mjs'

export const tables = {
  title: 'A table of PostgreSQL to PostgreSQL',
  async run(bench) {
    const { records, turns } = bench.sizes
    const result = await bench.withDatabase((url) => bench.child('tables.mjs', url, records, turns))
    const rates = (name) => result[name].map(({ rate }) => rate)
    const cpuUs = Object.entries(result).map(([name, runs]) => [name, median(runs.map(({ cpu }) => cpu))])
    const measure = (work, name, bar) => ratio(work, 'COPY | COPY', compared(rates(name), rates('raw')), 'rows/s', bar)
    return {
      ...result,
      cpuUs: Object.fromEntries(cpuUs),
      measures: [
        measure('PostgreSQL table → PostgreSQL', 'cycle', 0.5),
        measure('… of rows that must be decoded', 'decoded'),
        measure('… with pages read beforehand', 'given'),
        measure('… reading alone, as bytes', 'reading'),
        measure('… reading alone, decoded', 'readingDecoded'),
      ],
    }
  },
}
