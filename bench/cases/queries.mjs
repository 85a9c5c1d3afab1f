import { ratio } from '../measures.mjs'

const QUERIES = {
  unindexed: 'lookup, no index',
  indexed: "lookup by the user's index",
  group: 'group by',
  count: 'count(*)',
}

/** The copy is an ordinary table: a query on it costs the same as on a table that the user created. */
export const queries = {
  title: "Queries on the copy and on the user's own table",
  async run(bench) {
    const { records, page, turns } = bench.sizes
    const [measures, details] = [[], {}]
    for (const [kind, name] of [
      ['sqlite', 'SQLite'],
      ['postgres', 'PostgreSQL'],
    ]) {
      const result = await bench.store(kind, (url) => bench.child('queries.mjs', url, records, page, turns))
      details[kind] = result
      for (const [query, work] of Object.entries(QUERIES)) {
        const bar = query === 'count' ? null : 0.9
        measures.push(ratio(`${name}: ${work}`, "the same on the user's own table", result[query], 'ms', bar))
      }
    }
    return { ...details, measures }
  },
}
