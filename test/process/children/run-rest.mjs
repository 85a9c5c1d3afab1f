// One incremental cycle over the children of a service's projects; it stops before the page `holdAt`.
import { input, openStore, run, report, waitForMessage, Worker } from './child-runtime.mjs'

const { url, service, holdAt = 0 } = input
const { rest } = await import(`${input.dist}/sources/rest/source.js`)
const page = { kind: 'token', parameter: 'after', next: 'next' }
const { tasks } = rest({
  baseUrl: service,
  streams: [
    { name: 'projects', path: '/projects', key: 'id', records: 'items', page },
    {
      name: 'tasks',
      path: '/projects/{parent.id}/tasks',
      key: 'id',
      records: 'items',
      updatedAt: 'at',
      lagMs: 0,
      deletes: 'ignore',
      page,
      partitions: { parent: 'projects' },
      follow: { kind: 'window', since: 'since', page },
    },
  ],
})
const worker = new Worker({ name: 'office' })
worker.sync('tasks', {
  database: worker.database('tasks'),
  mode: 'incremental',
  async execute(state, context) {
    if (context.cycle.page === holdAt) await waitForMessage()
    return tasks.delta(state, context)
  },
})
const store = await openStore(url)
const { stopReason, resumed, counts, error } = await run(store, worker.plan('tasks'), {
  onProgress: ({ kind, page: number }) => report(kind, { page: number }),
})
await store.close()
report('result', { stopReason, resumed, counts, error })
