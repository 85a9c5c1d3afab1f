// node bench/compaction.mjs <url> <entries>: a long log that is compacted while pages are landed, as one JSON line. One tenant,
// and another beside it; before, during and after, so that what the compaction costs can be told from what the machine does.
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../dist/platform/clock.js'
import { keepLog } from '../dist/runner/keep-log.js'
import { openPostgresStore } from '../dist/stores/postgres/store.js'
import { landings, Lander } from './lander.mjs'

const [url, entries] = [process.argv[2], Number(process.argv[3])]
const store = await openPostgresStore({ url })
const lander = await Lander.take(store, 'load')
// Each record ten times over: nine of ten entries stand under no row.
const keys = entries / 10
for (let version = 0; version < 10; version++) for (let from = 0; from < keys; from += 10_000) await lander.cycle(landings(from, Math.min(10_000, keys - from), version))
const before = Date.now() + 1
await sleep(10)

const commits = { own: { before: [], during: [], after: [] }, other: { before: [], during: [], after: [] } }
let phase = 'before'
const ended = new AbortController()
const landing = [['own', store], ['other', store.forTenant('other')]].map(async ([whose, at]) => {
  const lander = await Lander.take(at, whose)
  for (let n = 0; !ended.signal.aborted; n++) {
    const [noted, from] = [commits[whose][phase], performance.now()]
    await lander.cycle(landings(entries + n * 100, 100))
    noted.push(performance.now() - from)
  }
})
await sleep(10_000)
phase = 'during'
const [steps, compacted, silent] = [[], new AbortController(), () => {}]
let removed = 0
const startedAt = performance.now()
const timed = async (request) => {
  const from = performance.now()
  const step = await store.compact(request)
  steps.push(performance.now() - from)
  removed += step.removed
  if (!step.more) compacted.abort()
  return step
}
await keepLog({ ...store, compact: timed }, { clock: systemClock, log: { info: silent, warn: silent } }, Date.now() - before, compacted.signal)
const tookMs = performance.now() - startedAt
phase = 'after'
await sleep(10_000)
ended.abort()
await Promise.all(landing)
await store.close()
console.log(JSON.stringify({ removed, steps, tookMs, commits }))
