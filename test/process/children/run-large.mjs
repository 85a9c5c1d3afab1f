// A backfill of many pages, then the same again without changes. Reports its peak memory.
import { readFileSync } from 'node:fs'
import { input, openStore, run, report, Worker } from './child-runtime.mjs'

const { url, pages, pageSize, cycles } = input
const worker = new Worker({ name: 'office' })
worker.sync('listing', {
  database: worker.database('people'),
  async execute(state) {
    const page = state?.page ?? 0
    const changes = Array.from({ length: pageSize }, (_, index) => {
      const key = `p-${String(page * pageSize + index).padStart(9, '0')}`
      const record = {
        id: key,
        name: `Person ${page} of ${index}`,
        email: `${key}@example.org`,
        amount: page * index,
        active: index % 2 === 0,
        tags: ['a', 'b', `t${index % 7}`],
        note: `${key} `.repeat(15),
      }
      return { type: 'upsert', key, record, upstreamUpdatedAt: '2026-01-01T00:00:00Z' }
    })
    return { changes, hasMore: page + 1 < pages, nextState: { page: page + 1 } }
  },
})

const store = await openStore(url)
for (let cycle = 1; cycle <= cycles; cycle++) {
  const startedAt = performance.now()
  const { stopReason, counts, error } = await run(store, worker.plan('listing'), {
    onProgress: (progress) => {
      if (progress.kind === 'landed' && progress.page % 100 === 0)
        report('at', { page: progress.page, megabytes: megabytes('VmRSS') })
    },
  })
  report('cycle', {
    stopReason,
    counts,
    error,
    seconds: Math.round((performance.now() - startedAt) / 100) / 10,
    peakMegabytes: megabytes('VmHWM'),
  })
}
await store.close()
report('done', { peakMegabytes: megabytes('VmHWM') })

function megabytes(field) {
  const kilobytes = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync('/proc/self/status', 'utf8'))[1]
  return Math.round(Number(kilobytes) / 1024)
}
