import { Worker } from 'tidemark'
import { github } from 'tidemark/sources/github'
import { realOrSimulated } from 'tidemark/testing'

// Without GITHUB_TOKEN in .env a simulated account answers, inside this process; with it, the real one.
const simulated = realOrSimulated('github', { unless: 'GITHUB_TOKEN', since: '{{now}}' })
// Of whoever the token belongs to; `owner` names another.
const account = github({ token: 'GITHUB_TOKEN' })

// GitHub does not tell what changed: all of it each time, and what is gone is swept.
const worker = new Worker({ name: '{{name}}' })
worker.sync('repositories', { database: worker.database('repositories'), schedule: '1h', ...simulated(account.repositories) })
worker.sync('issues', { database: worker.database('issues'), schedule: '1h', ...simulated(account.issues) })

export default worker
