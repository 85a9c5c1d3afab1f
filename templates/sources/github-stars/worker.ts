import { Worker } from 'tidemark'
import { githubStars } from 'tidemark/sources/github-stars'
import { realOrSimulated } from '@tidemark/simulators'

// Until GITHUB_TOKEN is set in .env, the worker reads a simulated account in this process.
const simulated = realOrSimulated('github-stars', { unless: 'GITHUB_TOKEN', since: '{{now}}' })
const stars = githubStars({ token: 'GITHUB_TOKEN' })

// New stars every 15 minutes; the whole list once a day, to find removed stars.
const worker = new Worker({ name: '{{name}}' })
worker.track('stars', { database: worker.database('stars'), source: simulated(stars), schedule: '15m', backfillSchedule: '1d' })

export default worker
