import { Worker } from 'tidemark'
import { linear } from 'tidemark/sources/linear'
import { realOrSimulated } from '@tidemark/simulators'

// Until LINEAR_KEY is set in .env, the worker reads a simulated account in this process.
const simulated = realOrSimulated('linear', { unless: 'LINEAR_KEY', since: '{{now}}' })
const workspace = linear({ apiKey: 'LINEAR_KEY' })

const worker = new Worker({ name: '{{name}}' })
worker.sync('issues', { database: worker.database('issues'), schedule: '30m', ...simulated(workspace.issues) })
worker.sync('teams', { database: worker.database('teams'), schedule: '1d', ...simulated(workspace.teams) })

export default worker
