// node bench/programs/cycles.mjs <store url> <records> <page size> all|first: cycles through the engine, as one JSON
// line. A separate process, so that its peak memory is the engine's.
import { openStore, runCycle } from '../../dist/index.js'
import { changeOf, PASSES } from '../records.mjs'

const [url, count, size, wanted] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4]), process.argv[5]]
const store = await openStore(url)
const passes = {}
for (const pass of wanted === 'all' ? Object.keys(PASSES) : [wanted]) passes[pass] = await run(PASSES[pass])
await store.close()
console.log(JSON.stringify({ passes, peakMb: process.resourceUsage().maxRSS / 1024 }))

async function run(versionOf) {
  const pageEnds = []
  const startedAt = performance.now()
  const result = await runCycle({
    store,
    worker: 'bench',
    sync: {
      name: 'load',
      database: 'accounts',
      mode: 'replace',
      execute: async (state) => {
        const from = state?.from ?? 0
        const changes = []
        for (let i = from; i < Math.min(from + size, count); i++) {
          const version = versionOf(i)
          if (version !== null) changes.push(changeOf(i, version))
        }
        return { changes, hasMore: from + size < count, nextState: { from: from + size } }
      },
    },
    onProgress: (progress) => {
      if (progress.kind === 'landed') pageEnds.push(performance.now())
    },
  })
  if (result.stopReason !== 'complete') throw new Error(`${result.stopReason} ${result.error?.message}`)
  const tenth = Math.max(1, Math.floor(pageEnds.length / 10))
  return {
    counts: result.counts,
    rate: rate(count, startedAt, performance.now()),
    firstTenth: rate(tenth * size, startedAt, pageEnds[tenth - 1]),
    // The first page begins with the cycle.
    lastTenth: rate(tenth * size, pageEnds.at(-1 - tenth) ?? startedAt, pageEnds.at(-1)),
  }
}

function rate(rows, from, to) {
  return rows / ((to - from) / 1_000)
}
