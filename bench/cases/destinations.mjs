import { createJiti } from 'jiti'
import { join } from 'node:path'
import { HERE } from '../bench.mjs'
import { compared, median, amount, ratio } from '../measures.mjs'

/** By kind: the limit, the lowest ratio, and how its server is started. `bench/raw/destinations/` has the raw side. */
const KINDS = {
  postgres: { name: 'PostgreSQL', limit: 'binary COPY', bar: 0.6, open: (bench, act) => bench.withDatabase(act) },
  mariadb: { name: 'MariaDB', limit: 'LOAD DATA LOCAL', bar: 0.6, open: (_, act) => withMariadb(act) },
  duckdb: { name: 'DuckDB', limit: 'Appender', bar: 0.5, open: (bench, act) => act(bench.file('copy.duckdb')) },
  lake: { name: 'Iceberg', limit: 'hyparquet-writer', bar: 0.5, open: (bench, act) => act(bench.file('lake')) },
}

/** The initial load of a destination from a SQLite store. */
export const destinations = {
  title: 'The initial load of a destination',
  async run(bench) {
    const { records, turns } = bench.sizes
    const results = {}
    const measures = []
    const file = bench.file('store.db')
    for (const [kind, { name, limit, bar, open }] of Object.entries(KINDS)) {
      const result = await open(bench, (url) => bench.child('destinations.mjs', kind, url, records, turns, file))
      results[kind] = result
      const rates = (whose) => result[whose].map(({ rate }) => rate)
      const cpu = (whose) => median(result[whose].map(({ cpuMs, serverMs }) => cpuMs + serverMs))
      const memory = (half) => Math.max(...result.ours.map((run) => run.memory[half]))
      const cpuRatio = cpu('raw') / cpu('ours')
      measures.push(
        ratio(`${name}: initial load`, limit, { ...compared(rates('ours'), rates('raw')), cpuRatio }, 'rows/s', bar),
        amount('… memory, first half', '–', { figure: memory(0) }, 'MB'),
        amount('… memory, second half', '–', { figure: memory(1) }, 'MB'),
      )
    }
    return { ...results, measures }
  },
}

async function withMariadb(act) {
  const setup = await createJiti(import.meta.url).import(join(HERE, '../test/setup/mariadb-server.ts'))
  // As in production: a commit is on the disk.
  const server = await setup.startMariadb({ 'innodb-flush-log-at-trx-commit': '1', 'innodb-buffer-pool-size': '512M' })
  try {
    return await act(server.url)
  } finally {
    await server.stop()
  }
}
