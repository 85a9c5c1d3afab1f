import { compared, ratio } from '../measures.mjs'

export const partitions = {
  title: 'Parallel reading of partitions',
  async run(bench) {
    const { records, page, turns } = bench.sizes
    const result = await bench.store('postgres', (url) =>
      bench.child('partitions.mjs', bench.file('partitions.db'), url, records, page, turns),
    )
    const { api, sql, distant } = result
    return {
      ...result,
      measures: [
        ratio(
          'API of 100 ms per page, 16 partitions, 8 at a time',
          'one at a time',
          compared(api.many, api.one),
          'rows/s',
          4,
        ),
        ratio(
          'PostgreSQL table 25 ms away, 16 ranges, 8 at a time',
          'one at a time',
          compared(distant.many, distant.one),
          'rows/s',
          2,
        ),
        ratio('PostgreSQL table, 16 ranges, 8 at a time', 'one at a time', compared(sql.many, sql.one), 'rows/s'),
        ratio('PostgreSQL table, 16 ranges, 8 at a time', 'undivided', compared(sql.many, sql.plain), 'rows/s'),
      ],
    }
  },
}
