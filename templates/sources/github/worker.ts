import { Worker } from 'tidemark'
import { github } from 'tidemark/sources/github'
import { realOrSimulated } from '@tidemark/simulators'

// Until GITHUB_TOKEN is set in .env, the worker reads a simulated account in this process.
const simulated = realOrSimulated('github', { unless: 'GITHUB_TOKEN', since: '{{now}}' })
// The account of the token; set `owner` for another user or organization.
const account = github({ token: 'GITHUB_TOKEN' })

// GitHub has no change feed: each cycle lists everything, and rows that are no longer there are swept.
const worker = new Worker({ name: '{{name}}' })
worker.sync('repositories', { database: worker.database('repositories'), schedule: '1h', ...simulated(account.repositories) })
worker.sync('issues', { database: worker.database('issues'), schedule: '1h', ...simulated(account.issues) })

export default worker
