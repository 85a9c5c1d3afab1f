import { ratio } from '../measures.mjs'

const NAMES = {
  first: 'first load',
  unchanged: 'the same again, unchanged',
  changed10: '10 % changed',
  changed100: '100 % changed',
  sweep1: 'a listing without 1 %',
}
const STORES = {
  sqlite: { name: 'SQLite', limit: 'keyed insert per page', bars: { first: 0.7, unchanged: 2.5, changed10: 1 } },
  postgres: { name: 'PostgreSQL', limit: 'binary COPY per page', bars: { first: 0.8, unchanged: 2.5, changed10: 1 } },
}

export const sqlite = { title: 'Landing in SQLite', run: (bench) => land(bench, 'sqlite') }
export const postgres = { title: 'Landing in PostgreSQL', run: (bench) => land(bench, 'postgres') }

/** The commits of the store alone, which the targets refer to, and then whole cycles through the engine. */
async function land(bench, kind) {
  const { name, limit, bars } = STORES[kind]
  const { records, page } = bench.sizes
  const landing = await bench.store(kind, (url) => bench.child('landing.mjs', url, records, page))
  const cycles = await bench.store(kind, (url) => bench.child('cycles.mjs', url, records, page, 'all'))
  const { swept, sweepMs, rawSweepMs } = landing.sweep1
  return {
    landing,
    cycles,
    measures: [
      ...Object.entries(NAMES).map(([pass, work]) =>
        ratio(`${name}: ${work}`, limit, landing[pass], 'rows/s', bars[pass]),
      ),
      ratio(
        `${name}: the page that sweeps ${swept} rows`,
        'the page, and delete by keys',
        { ratio: rawSweepMs / sweepMs, ours: sweepMs, raw: rawSweepMs },
        'ms',
      ),
      ...Object.entries(NAMES).map(([pass, work]) => {
        const [ours, raw] = [cycles.passes[pass].rate, landing[pass].raw]
        return ratio(`${name}: ${work}, whole cycle`, limit, { ratio: ours / raw, ours, raw }, 'rows/s')
      }),
    ],
  }
}
