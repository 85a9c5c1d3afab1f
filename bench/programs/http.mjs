// node bench/programs/http.mjs <port> <file> <records> <page size> <turns>: fetch, parse, hash and landing each
// alone, then an API to SQLite end to end, in turns; as one JSON line.
import { openStore, runCycle } from '../../dist/index.js'
import { systemFetch } from '../../dist/platform/fetch.js'
import { Lander, landingOf, openBareStore } from '../lander.mjs'

const [port, file] = process.argv.slice(2)
const [count, size, turns] = process.argv.slice(4).map(Number)
const urlOf = (page) => `http://127.0.0.1:${port}/?page=${page}`
const results = { alone: [], oneThread: [], rates: [] }
for (let turn = 0; turn < turns; turn++) {
  const alone = await landAlone(turn)
  results.alone.push(Object.fromEntries(Object.entries(alone).map(([part, ms]) => [part, rate(ms)])))
  results.oneThread.push(rate(Object.values(alone).reduce((a, b) => a + b)))
  results.rates.push(rate(await runEndToEnd(turn)))
}
console.log(JSON.stringify(results))

async function landAlone(turn) {
  const alone = { fetch: 0, parse: 0, hash: 0, land: 0 }
  const store = await openBareStore(`sqlite:${file}.alone${turn}`, { thread: true })
  const lander = await Lander.take(store, 'alone')
  await lander.begin('incremental')
  const time = async (part, act) => {
    const startedAt = performance.now()
    const result = await act()
    alone[part] += performance.now() - startedAt
    return result
  }
  for (let page = 0; page < Math.ceil(count / size); page++) {
    const text = await time('fetch', async () => (await systemFetch(urlOf(page))).text())
    const { records } = await time('parse', () => JSON.parse(text))
    const incoming = await time('hash', () => records.map((record) => landingOf(record)))
    await time('land', () => lander.continue(incoming))
  }
  await store.close()
  return alone
}

async function runEndToEnd(turn) {
  const store = await openStore(`sqlite:${file}.${turn}`)
  const startedAt = performance.now()
  const result = await runCycle({
    store,
    worker: 'bench',
    sync: {
      name: 'http',
      database: 'accounts',
      mode: 'replace',
      execute: async (state, { fetch }) => {
        const body = JSON.parse(await (await fetch(urlOf(state?.page ?? 0))).text())
        return {
          changes: body.records.map((record) => ({
            type: 'upsert',
            key: record.id,
            record,
            upstreamUpdatedAt: record.updated_at,
          })),
          hasMore: body.next !== null,
          nextState: { page: body.next },
        }
      },
    },
  })
  const ms = performance.now() - startedAt
  if (result.stopReason !== 'complete' || result.counts.created !== count) throw new Error(JSON.stringify(result))
  await store.close()
  return ms
}

function rate(ms) {
  return count / (ms / 1_000)
}
