import { readFileSync, writeFileSync } from 'node:fs'
import { compared, median, ratio } from '../measures.mjs'

const LIMIT = 'bare HTTP server, the same bytes'
const PER_COMMIT = 100
const PLACES = { head: 'the newest page', middle: 'a page in the middle', walk: 'page after page, from the store' }

/**
 * A page of 100 changes beside a bare server that sends the same bytes, at the head and in the middle of the log, with
 * one database and with many. A page that was read before comes from memory; walking reads every page from the store.
 */
export const feed = {
  title: 'The feed on loopback: pages of 100 changes',
  async run(bench) {
    const [measures, details] = [[], {}]
    for (const [kind, name] of [
      ['sqlite', 'SQLite'],
      ['postgres', 'PostgreSQL'],
    ]) {
      const result = await measureStore(bench, kind)
      details[kind] = result
      for (const [databases, rates] of Object.entries(result.rates)) {
        for (const [place, label] of Object.entries(PLACES)) {
          const work = `${name}, ${databases} database${databases === '1' ? '' : 's'}: ${label}`
          measures.push(ratio(work, LIMIT, compared(rates[place], rates.bare), 'pages/s', 0.5))
        }
      }
      const [one, many] = Object.values(result.readMs)
      measures.push(
        ratio(
          `${name}: reading a page, ${bench.sizes.databases} databases`,
          'with one database',
          { ratio: one / many, ours: many, raw: one },
          'ms',
        ),
      )
    }
    return { ...details, measures }
  },
}

async function measureStore(bench, kind) {
  const { entries, databases, seconds, turns } = bench.sizes
  const serve = (count, act) =>
    bench.store(kind, (url) => bench.withServer('feed-server.mjs', [url, entries, count, PER_COMMIT], act))
  return serve(1, (one) =>
    serve(databases, async (many) => {
      const page = bench.file('page.json')
      writeFileSync(page, await (await ask(one)).text())
      return bench.withServer('feed-bare.mjs', [page], async (bare) => {
        const load = async ({ port, key = '-' }, mode, starts) =>
          (await bench.child('feed-load.mjs', port, key, seconds, mode, ...starts)).pages
        const rates = {}
        const servers = [
          [1, one],
          [databases, many],
        ]
        for (const [count] of servers) rates[count] = { bare: [], head: [], middle: [], walk: [] }
        for (let turn = 0; turn < turns; turn++) {
          for (const [count, server] of servers) {
            rates[count].bare.push(await load(bare, 'stay', ['']))
            rates[count].head.push(await load(server, 'stay', [server.starts.head]))
            rates[count].middle.push(await load(server, 'stay', [server.starts.middle]))
            rates[count].walk.push(await load(server, 'walk', server.starts.spread))
          }
        }
        const readMs = { 1: median(one.readMs), [databases]: median(many.readMs) }
        return { rates, readMs, pageBytes: readFileSync(page).length }
      })
    }),
  )
}

async function ask({ port, key, starts }) {
  const response = await fetch(`http://127.0.0.1:${port}/agents/v1/changes?limit=100${starts.middle}`, {
    headers: { authorization: `Bearer ${key}`, 'accept-encoding': 'identity' },
  })
  if (!response.ok) throw new Error(`The feed answered ${response.status}`)
  return response
}
