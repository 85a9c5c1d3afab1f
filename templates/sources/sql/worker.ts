import { Worker } from 'tidemark'
import { sql } from 'tidemark/sources/sql'
import { realOrSampleShop } from '@tidemark/simulators'

// Until SOURCE_URL is set in .env, the worker reads a small SQLite file with simulated edits in this folder; you can
// write to it as well. Your own database: postgres://…, mysql://…, mariadb://… or sqlite:path.
const shop = realOrSampleShop({ unless: 'SOURCE_URL', file: new URL('shop.db', import.meta.url), since: '{{now}}' })
const database = sql({ url: 'SOURCE_URL' })

const worker = new Worker({ name: '{{name}}' })
// Reads changes by a column that increases with every change of a row. The backfill finds deletions.
worker.track('customers', { database: worker.database('customers'), source: shop(database.table('customers', { cursor: 'updated_at' })), schedule: '5m', backfillSchedule: '1d' })
// For small tables, or tables without such a column: reads everything in each cycle.
worker.sync('countries', { database: worker.database('countries'), schedule: '1d', ...shop(database.listing('countries')) })

export default worker
