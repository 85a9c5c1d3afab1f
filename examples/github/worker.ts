import { Worker } from 'tidemark'
import { github } from 'tidemark/sources/github'

/** Repositories and the issues of all of them, whole each time: what is gone is swept. */
const account = github({
  token: 'GITHUB_TOKEN',
  ...(process.env.GITHUB_URL !== undefined && { baseUrl: process.env.GITHUB_URL }),
  ...(process.env.GITHUB_OWNER !== undefined && { owner: process.env.GITHUB_OWNER }),
})

const worker = new Worker({ name: 'github' })
worker.sync('repositories', { database: worker.database('repositories'), schedule: '1h', ...account.repositories })
worker.sync('issues', { database: worker.database('issues'), schedule: '1h', ...account.issues })

export default worker
