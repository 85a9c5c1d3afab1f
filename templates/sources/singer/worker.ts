import { Worker } from 'tidemark'
import { singer } from 'tidemark/sources/singer'

// Runs any tap. The small one in tap.mjs works at once; for a real one, set its command and its config:
//   python3 -m venv tap && tap/bin/pip install tap-github
//   command: './tap/bin/tap-github', config: { access_token: '${GITHUB_TOKEN}', repository: 'singer-io/tap-github', start_date: '2026-01-01T00:00:00Z' }
const tap = singer({ folder: new URL('.', import.meta.url), command: ['node', 'tap.mjs'], config: { start_date: '{{now}}' } })

const worker = new Worker({ name: '{{name}}' })
worker.sync('issues', { database: worker.database('issues'), schedule: '15m', ...tap.stream('issues') })

export default worker
