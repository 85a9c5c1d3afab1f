import { Worker } from 'tidemark'
import { githubStars } from 'tidemark/sources/github-stars'
import { realOrSimulated } from 'tidemark/testing'

// Without GITHUB_TOKEN in .env a simulated account answers, inside this process; with it, the real one.
const simulated = realOrSimulated('github-stars', { unless: 'GITHUB_TOKEN', since: '{{now}}' })
const stars = githubStars({ token: 'GITHUB_TOKEN' })

// What is new every quarter of an hour; once a day all of it, to find what is no longer starred.
const worker = new Worker({ name: '{{name}}' })
worker.track('stars', { database: worker.database('stars'), source: simulated(stars), schedule: '15m', backfillSchedule: '1d' })

export default worker
