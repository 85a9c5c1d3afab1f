import { Worker } from 'tidemark'
import { bookmarks } from 'tidemark/sources/bookmarks'

/**
 * The bookmarks of one user of X, newest first:
 *
 *   bookmarks           every 15 minutes: new bookmarks, and the history before them until it is complete
 *   bookmarks-backfill  once a day: the whole list, to find removed bookmarks
 */
const worker = new Worker({ name: 'reader' })

worker.track('bookmarks', {
  database: worker.database('bookmarks'),
  source: bookmarks({
    userId: process.env.X_USER_ID ?? '2244994945',
    token: 'X_TOKEN',
    baseUrl: process.env.X_URL ?? 'https://api.x.com',
  }),
  schedule: '15m',
  backfillSchedule: '1d',
})

export default worker
