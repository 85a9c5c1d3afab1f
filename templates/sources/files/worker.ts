import { Worker } from 'tidemark'
import { files } from 'tidemark/sources/files'

// Reads new and changed .csv, .ndjson and .parquet files in `drop/`; an s3:// URL works as well.
const worker = new Worker({ name: '{{name}}' })
worker.sync('orders', { database: worker.database('orders'), schedule: '5m', ...files({ folder: 'drop', key: 'order_id', settleMs: 1_000 }) })

export default worker
