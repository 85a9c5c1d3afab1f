import { Worker } from 'tidemark'
import { github } from 'tidemark/sources/github'

/** All repositories and their issues, listed completely in each cycle: rows that are no longer there are swept. */
const account = github({
  token: 'GITHUB_TOKEN',
  ...(process.env.GITHUB_URL !== undefined && { baseUrl: process.env.GITHUB_URL }),
  ...(process.env.GITHUB_OWNER !== undefined && { owner: process.env.GITHUB_OWNER }),
})

const worker = new Worker({ name: 'github' })
worker.sync('repositories', { database: worker.database('repositories'), schedule: '1h', ...account.repositories })
worker.sync('issues', { database: worker.database('issues'), schedule: '1h', ...account.issues })

export default worker
