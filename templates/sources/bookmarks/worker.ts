import { Worker } from 'tidemark'
import { bookmarks } from 'tidemark/sources/bookmarks'
import { realOrSimulated } from 'tidemark/testing'

// Without X_TOKEN in .env a simulated account answers, inside this process; with it, the real one.
const simulated = realOrSimulated('bookmarks', { unless: 'X_TOKEN', since: '{{now}}' })
// The id of the user of X whose bookmarks these are.
const list = bookmarks({ userId: '2244994945', token: 'X_TOKEN' })

// What is new every quarter of an hour; once a day all of it, to find what is no longer bookmarked.
const worker = new Worker({ name: '{{name}}' })
worker.track('bookmarks', { database: worker.database('bookmarks'), source: simulated(list), schedule: '15m', backfillSchedule: '1d' })

export default worker
