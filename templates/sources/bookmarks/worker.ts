import { Worker } from 'tidemark'
import { bookmarks } from 'tidemark/sources/bookmarks'
import { realOrSimulated } from '@tidemark/simulators'

// Until X_TOKEN is set in .env, the worker reads a simulated account in this process.
const simulated = realOrSimulated('bookmarks', { unless: 'X_TOKEN', since: '{{now}}' })
// The X user id of the owner of the bookmarks.
const list = bookmarks({ userId: '2244994945', token: 'X_TOKEN' })

// New bookmarks every 15 minutes; the whole list once a day, to find removed bookmarks.
const worker = new Worker({ name: '{{name}}' })
worker.track('bookmarks', { database: worker.database('bookmarks'), source: simulated(list), schedule: '15m', backfillSchedule: '1d' })

export default worker
