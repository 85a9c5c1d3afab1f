import { Worker } from 'tidemark'
import { bookmarks } from 'tidemark/sources/bookmarks'

/**
 * The bookmarks of one user of X, newest first:
 *
 *   bookmarks           every quarter of an hour: what is new, and the history behind it until all of it is there
 *   bookmarks-backfill  once a day all of it, to find what is no longer bookmarked
 */
const worker = new Worker({ name: 'reader' })

worker.track('bookmarks', {
  database: worker.database('bookmarks'),
  source: bookmarks({ userId: process.env.X_USER_ID ?? '2244994945', token: 'X_TOKEN', baseUrl: process.env.X_URL ?? 'https://api.x.com' }),
  schedule: '15m',
  backfillSchedule: '1d',
})

export default worker
