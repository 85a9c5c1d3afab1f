import { Worker } from 'tidemark'
import { sql } from 'tidemark/sources/sql'
import { realOrSampleShop } from 'tidemark/testing'

// Without SOURCE_URL in .env a small SQLite file is made beside this one, and people work in it; write to it as well if you like.
// With it, your own database: postgres://…, mysql://…, mariadb://… or sqlite:path.
const shop = realOrSampleShop({ unless: 'SOURCE_URL', file: new URL('shop.db', import.meta.url), since: '{{now}}' })
const database = sql({ url: 'SOURCE_URL' })

const worker = new Worker({ name: '{{name}}' })
// Followed by a column that every change of a row raises. Deletions are found by the backfill.
worker.track('customers', { database: worker.database('customers'), source: shop(database.table('customers', { cursor: 'updated_at' })), schedule: '5m', backfillSchedule: '1d' })
// Small, or without such a column: all of it each time.
worker.sync('countries', { database: worker.database('countries'), schedule: '1d', ...shop(database.listing('countries')) })

export default worker
