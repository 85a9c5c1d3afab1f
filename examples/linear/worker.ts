import { Worker } from 'tidemark'
import { linear } from 'tidemark/sources/linear'

/** Teams and issues, listed completely in each cycle: archived and deleted ones are swept. */
const workspace = linear({
  apiKey: 'LINEAR_KEY',
  ...(process.env.LINEAR_URL !== undefined && { baseUrl: process.env.LINEAR_URL }),
})

const worker = new Worker({ name: 'linear' })
const pacer = worker.pacer('linear-api', { allowedRequests: 10, intervalMs: 1_000 })
worker.sync('teams', { database: worker.database('teams'), schedule: '1h', pacer, ...workspace.teams })
worker.sync('issues', { database: worker.database('issues'), schedule: '1h', pacer, ...workspace.issues })

export default worker
