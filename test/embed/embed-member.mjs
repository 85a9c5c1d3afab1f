// A program that embeds the compiled package. Every call of its source and every committed page is a line in a log that
// all processes share. argv: as JSON, the folder of the package, the store, the log, the number of syncs and pages, the
// milliseconds of a page, and `budgetMs` for a program that calls `tick` again and again.
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'

const { dist, store, log, syncs, pages, pageMs, budgetMs } = JSON.parse(process.argv[2])
const { Worker } = await import(join(dist, 'index.js'))
const { createTidemark } = await import(join(dist, 'embed/index.js'))

const note = (...words) => appendFileSync(log, `${words.join(' ')}\n`)

const worker = new Worker({ name: 'app' })
const database = worker.database('rows')
for (let i = 0; i < syncs; i++)
  worker.sync(`s${i}`, {
    database,
    mode: 'incremental',
    schedule: '1h',
    async execute(state, { clock, cycle, signal }) {
      const page = (state?.page ?? 0) + 1
      note('ask', `s${i}`, process.pid, cycle.id, page)
      try {
        await clock.sleep(pageMs, signal)
        const key = `s${i}-${page}`
        return {
          changes: [{ type: 'upsert', key, record: { page } }],
          hasMore: page % pages !== 0,
          nextState: { page },
        }
      } finally {
        note('answer', `s${i}`, process.pid, cycle.id, page)
      }
    },
  })

const tidemark = createTidemark({ store, workers: [worker], concurrency: 3, log: 'error' })
tidemark.on('pageCommitted', ({ sync, cycle, page }) => note('landed', sync, process.pid, cycle, page))

const stopping = new AbortController()
process.once('SIGTERM', () => {
  stopping.abort()
  void tidemark.stop({ graceMs: 5_000 }).then(() => process.exit(0))
})
note('up', process.pid)
if (budgetMs === undefined) await tidemark.start()
else
  while (!stopping.signal.aborted)
    await tidemark.tick({ budgetMs }).catch((error) => stopping.signal.aborted || Promise.reject(error))
