import { ratio } from '../measures.mjs'

const VIEWS = {
  first: 'first page by key',
  sorted: 'page sorted by an indexed column',
  unindexed: 'page sorted by a column without an index',
  filtered: 'page filtered by an indexed column',
  search: 'search of 50,000 rows',
  statistics: 'statistics of 100,000 rows',
}

/** A page of the data explorer costs about as much as the same SQL by hand. */
export const explorer = {
  title: 'Pages of the data explorer and the same SQL by hand',
  async run(bench) {
    const { records, page, turns } = bench.sizes
    const [measures, details] = [[], {}]
    for (const [kind, name] of [
      ['sqlite', 'SQLite'],
      ['postgres', 'PostgreSQL'],
    ]) {
      const result = await bench.store(kind, (url) => bench.child('explorer.mjs', url, records, page, turns))
      details[kind] = result
      for (const [view, work] of Object.entries(VIEWS))
        measures.push(ratio(`${name}: ${work}`, 'the same SQL by hand', result[view], 'ms', null))
    }
    return { ...details, measures }
  },
}
