import { amount, ratio } from '../measures.mjs'

/** Whether a load slows down, and how much memory it takes, independently of the number of rows. */
export const long = {
  title: 'A long first load, whole cycle',
  async run(bench) {
    const { long: rows, page } = bench.sizes
    const [measures, details] = [[], {}]
    for (const [kind, name] of [
      ['sqlite', 'SQLite'],
      ['postgres', 'PostgreSQL'],
    ]) {
      const load = (count) => bench.store(kind, (url) => bench.child('cycles.mjs', url, count, page, 'first'))
      const [tenth, whole] = [await load(Math.ceil(rows / 10)), await load(rows)]
      const { firstTenth: raw, lastTenth: ours } = whole.passes.first
      details[kind] = { tenth, whole }
      measures.push(
        ratio(`${name}: last tenth of ${rows} rows`, 'first tenth', { ratio: ours / raw, ours, raw }, 'rows/s'),
        amount(`${name}: peak memory with ${rows / 10} rows`, '–', { figure: tenth.peakMb }, 'MB', 150),
        amount(`${name}: peak memory with ${rows} rows`, '–', { figure: whole.peakMb }, 'MB', 150),
      )
    }
    return { ...details, measures }
  },
}
