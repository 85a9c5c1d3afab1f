// node bench/http.mjs <port> <file> <records>: fetch, parse, hash and landing each alone, then an API to SQLite end to end.
import { hash } from 'node:crypto'
import { openStore, runCycle } from '../dist/index.js'
import { PAGE } from './records.mjs'
import { systemFetch } from '../dist/platform/fetch.js'

const [port, file, count] = [process.argv[2], process.argv[3], Number(process.argv[4])]
const pages = count / PAGE
const urlOf = (page) => `http://127.0.0.1:${port}/?page=${page}`

const alone = { fetch: 0, parse: 0, hash: 0, land: 0 }
const landStore = await openStore(`sqlite:${file}.alone`)
const time = async (part, body) => {
  const startedAt = performance.now()
  const result = await body()
  alone[part] += performance.now() - startedAt
  return result
}
{
  const taken = await landStore.acquire({ worker: 'bench', sync: 'alone' }, { holder: 'bench', ttlMs: 3_600_000, at: Date.now() })
  const begun = await landStore.begin(taken.lease, { at: Date.now(), mode: 'incremental', trigger: 'bench', fresh: false, databases: ['accounts'] })
  for (let page = 0; page < pages; page++) {
    const text = await time('fetch', async () => (await systemFetch(urlOf(page))).text())
    const { records } = await time('parse', () => JSON.parse(text))
    const landings = await time('hash', () => records.map((record) => {
      const recordText = JSON.stringify(record)
      return { type: 'upsert', database: 'accounts', key: record.id, text: recordText, hash: hash('sha1', recordText, 'base64').slice(0, 16), cursor: null, upstreamAt: null }
    }))
    const outcome = await time('land', () => landStore.commit({
      lease: taken.lease, version: 0, at: Date.now(), move: { kind: 'continue', cycle: begun.inflight.cycle, page: page + 1, state: '1', tidemark: null, scope: null, guard: null },
      owner: 'bench', landings, quarantined: [], columns: {}, readFrom: 0, upstreamToleranceMs: 0,
    }))
    if (outcome.kind !== 'landed') throw new Error(outcome.kind)
  }
}
await landStore.close()

const store = await openStore(`sqlite:${file}`)
const startedAt = performance.now()
const result = await runCycle({
  store,
  worker: 'bench',
  sync: {
    name: 'http', database: 'accounts', mode: 'replace',
    execute: async (state, { fetch }) => {
      const body = JSON.parse(await (await fetch(urlOf(state?.page ?? 0))).text())
      return {
        changes: body.records.map((record) => ({ type: 'upsert', key: record.id, record, upstreamUpdatedAt: record.updated_at })),
        hasMore: body.next !== null,
        nextState: { page: body.next },
      }
    },
  },
})
const ms = performance.now() - startedAt
if (result.stopReason !== 'complete' || result.counts.created !== count) throw new Error(JSON.stringify(result))
await store.close()
const sum = Object.values(alone).reduce((a, b) => a + b)
const rates = Object.fromEntries(Object.entries(alone).map(([part, spent]) => [part, count / (spent / 1000)]))
console.log(JSON.stringify({ alone: rates, oneThread: count / (sum / 1000), rate: count / (ms / 1000) }))
