// node bench/land.mjs <store url> <records>: three cycles through the engine, as one JSON line. A process of its own, so that
// its peak memory is the engine's.
import { openStore, runCycle } from '../dist/index.js'
import { changeOf, PAGE, PASSES } from './records.mjs'

const [url, count] = [process.argv[2], Number(process.argv[3])]
const store = await openStore(url)
const passes = {}
for (const [name, versionOf] of Object.entries(PASSES)) {
  const pageEnds = []
  const startedAt = performance.now()
  const result = await runCycle({
    store,
    worker: 'bench',
    sync: {
      name: 'load', database: 'accounts', mode: 'replace',
      execute: async (state) => {
        const from = state?.from ?? 0
        const changes = []
        for (let i = from; i < Math.min(from + PAGE, count); i++) changes.push(changeOf(i, versionOf(i)))
        return { changes, hasMore: from + PAGE < count, nextState: { from: from + PAGE } }
      },
    },
    onProgress: (progress) => {
      if (progress.kind === 'landed') pageEnds.push(performance.now())
    },
  })
  if (result.stopReason !== 'complete') throw new Error(`${name}: ${result.stopReason} ${result.error?.message}`)
  const tenth = Math.max(1, Math.floor(pageEnds.length / 10))
  passes[name] = {
    counts: result.counts,
    rate: rate(count, startedAt, performance.now()),
    firstTenth: rate(tenth * PAGE, startedAt, pageEnds[tenth - 1]),
    lastTenth: rate(tenth * PAGE, pageEnds[pageEnds.length - 1 - tenth], pageEnds.at(-1)),
  }
}
await store.close()
console.log(JSON.stringify({ passes, peakMb: process.resourceUsage().maxRSS / 1024 }))

function rate(rows, from, to) {
  return rows / ((to - from) / 1000)
}
