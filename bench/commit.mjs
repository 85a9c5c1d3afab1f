// node bench/commit.mjs <store url> <records>: landing alone, as one JSON line. Pages come serialised and hashed, as the raw
// limit's do, and only the store's commit is timed: log, rows and checkpoint in one transaction per page. In this thread, as
// the raw limit is; what the way to the store's own thread costs shows in the whole cycle.
import { hash } from 'node:crypto'
import { openPostgresStore } from '../dist/stores/postgres/store.js'
import { openSqliteStore } from '../dist/stores/sqlite/store.js'
import { PAGE, PASSES, recordOf } from './records.mjs'

const [url, count] = [process.argv[2], Number(process.argv[3])]
const store = url.startsWith('sqlite:') ? await openSqliteStore({ file: url.slice('sqlite:'.length), thread: false }) : await openPostgresStore({ url })
const { lease } = await store.acquire({ worker: 'bench', sync: 'commit' }, { holder: 'bench', ttlMs: 3_600_000, at: Date.now() })
const rates = {}
let version = 0
for (const [name, versionOf] of Object.entries(PASSES)) {
  const { inflight } = await store.begin(lease, { at: Date.now(), mode: 'replace', trigger: 'bench', fresh: false, databases: ['commits'] })
  let ms = 0
  for (let page = 1, from = 0; from < count; page++, from += PAGE) {
    const landings = []
    for (let i = from; i < from + PAGE; i++) {
      const record = recordOf(i, versionOf(i))
      const text = JSON.stringify(record)
      landings.push({ type: 'upsert', database: 'commits', key: record.id, text, hash: hash('sha1', text, 'base64').slice(0, 16), cursor: null, upstreamAt: `${record.updated_at.slice(0, 19)}.000000Z` })
    }
    const last = from + PAGE >= count
    const move = last
      ? { kind: 'complete', cycle: inflight.cycle, page, state: null, tidemark: null, scope: null, sweep: { maxShare: 0.5, allowEmpty: false } }
      : { kind: 'continue', cycle: inflight.cycle, page, state: `${from}`, tidemark: null, scope: null, guard: null }
    const startedAt = performance.now()
    const outcome = await store.commit({
      lease, version, at: Date.now(), move, owner: 'bench', landings, quarantined: [], columns: {}, readFrom: 0, upstreamToleranceMs: 0,
    })
    ms += performance.now() - startedAt
    if (outcome.kind !== 'landed') throw new Error(outcome.kind)
    version = outcome.version
  }
  rates[name] = count / (ms / 1000)
}
await store.release(lease)
await store.close()
console.log(JSON.stringify({ rates }))
