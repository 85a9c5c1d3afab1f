import { Worker } from 'tidemark'
import { singer } from 'tidemark/sources/singer'

// Any tap: python3 -m venv tap && tap/bin/pip install tap-github
const tap = singer({ command: './tap/bin/tap-github', config: { access_token: '${GITHUB_TOKEN}', repository: 'singer-io/tap-github', start_date: '2026-01-01T00:00:00Z' } })

const worker = new Worker({ name: '{{name}}' })
worker.sync('issues', { database: worker.database('issues'), schedule: '15m', ...tap.stream('issues') })

export default worker
