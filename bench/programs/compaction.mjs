// node bench/programs/compaction.mjs <url> <entries> <seconds>: a long history that is compacted while pages are
// committed, by its tenant and by another, before, during and after; as one JSON line.
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../dist/platform/clock.js'
import { compactLogPeriodically } from '../../dist/runner/compact-log.js'
import { openPostgresStore } from '../../dist/stores/postgres/store.js'
import { landings, Lander } from '../lander.mjs'

const [url, entries, seconds] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])]
const store = await openPostgresStore({ url })
const lander = await Lander.take(store, 'load')
// Each record in ten versions: nine of ten entries are in the history.
const keys = entries / 10
for (let version = 0; version < 10; version++) {
  for (let from = 0; from < keys; from += 10_000)
    await lander.cycle(landings(from, Math.min(10_000, keys - from), version))
}
const before = Date.now() + 1
await sleep(10)

const commits = { own: { before: [], during: [], after: [] }, other: { before: [], during: [], after: [] } }
let phase = 'before'
const ended = new AbortController()
const landing = [
  ['own', store],
  ['other', store.forTenant('other')],
].map(async ([whose, at]) => {
  const lander = await Lander.take(at, whose)
  for (let n = 0; !ended.signal.aborted; n++) {
    const [noted, from] = [commits[whose][phase], performance.now()]
    await lander.cycle(landings(entries + n * 100, 100))
    noted.push(performance.now() - from)
  }
})
await sleep(seconds * 10_000)
phase = 'during'
const [steps, compacted, silent] = [[], new AbortController(), () => {}]
let removed = 0
const startedAt = performance.now()
const timed = async (request) => {
  const from = performance.now()
  const step = await store.compact(request)
  steps.push(performance.now() - from)
  removed += step.removedEntries
  if (!step.hasMore) compacted.abort()
  return step
}
const quietPorts = { clock: systemClock, log: { info: silent, warn: silent } }
await compactLogPeriodically({ ...store, compact: timed }, quietPorts, Date.now() - before, compacted.signal)
const tookMs = performance.now() - startedAt
while (Object.values(commits).some(({ during }) => during.length === 0)) await sleep(1)
phase = 'after'
await sleep(seconds * 10_000)
ended.abort()
await Promise.all(landing)
await store.close()
console.log(JSON.stringify({ removed, steps, tookMs, commits }))
