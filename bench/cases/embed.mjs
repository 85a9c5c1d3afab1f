import { amount, compared, median, ratio } from '../measures.mjs'

const ENTRIES = 10_000
const STARTS_PER_TURN = 2

/** The API inside a program beside the API of `tidemark start`, and the time until a new program serves. */
export const embed = {
  title: 'Tidemark inside a program, on SQLite',
  async run(bench) {
    const { seconds, turns, entries } = bench.sizes
    const url = `sqlite:${bench.file('embed.db')}`
    const serve = (mode, act) => bench.withServer('embed-server.mjs', [url, Math.min(entries, ENTRIES), mode], act)
    const rates = { start: [], listener: [], fetch: [] }
    const starts = { tidemark: [], fastify: [] }
    await serve('start', (start) =>
      serve('listener', (listener) =>
        serve('fetch', async (fetch) => {
          const servers = { start, listener, fetch }
          for (let turn = 0; turn < turns; turn++) {
            const order = turn % 2 === 0 ? Object.keys(servers) : Object.keys(servers).toReversed()
            for (const mode of order) {
              const { port, key } = servers[mode]
              rates[mode].push((await bench.child('feed-load.mjs', port, key, seconds, 'stay', '')).pages)
            }
            for (let n = 0; n < STARTS_PER_TURN; n++)
              for (const kind of Object.keys(starts))
                starts[kind].push(await bench.child('embed-start.mjs', kind, url, listener.key))
          }
        }),
      ),
    )
    const ms = (kind) => median(starts[kind].map((one) => one.ms))
    const limit = '`tidemark start`, the same page'
    return {
      rates,
      starts,
      measures: [
        ratio('listener in node:http: a page of 100', limit, compared(rates.listener, rates.start), 'pages/s', 0.95),
        ratio('Fetch handler: a page of 100', limit, compared(rates.fetch, rates.start), 'pages/s'),
        amount(
          'first answer of a new program',
          'bare Fastify',
          { figure: ms('tidemark'), raw: ms('fastify') },
          'ms',
          150,
        ),
        amount(
          '… processor time',
          'bare Fastify',
          {
            figure: median(starts.tidemark.map(({ cpuMs }) => cpuMs)),
            raw: median(starts.fastify.map(({ cpuMs }) => cpuMs)),
          },
          'ms',
        ),
      ],
    }
  },
}
