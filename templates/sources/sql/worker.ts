import { Worker } from 'tidemark'
import { sql } from 'tidemark/sources/sql'

// postgres://…, mysql://…, mariadb://… or sqlite:path, in .env.
const database = sql({ url: 'SOURCE_URL' })

const worker = new Worker({ name: '{{name}}' })
// Followed by a column that every change of a row raises. Deletions are found by the backfill.
worker.track('customers', { database: worker.database('customers'), source: database.table('customers', { cursor: 'updated_at' }), schedule: '5m', backfillSchedule: '1d' })
// Small, or without such a column: all of it each time.
worker.sync('countries', { database: worker.database('countries'), schedule: '1d', ...database.listing('countries') })

export default worker
