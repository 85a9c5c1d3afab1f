import { Worker } from 'tidemark'
import { files } from 'tidemark/sources/files'

// Every .csv, .ndjson and .parquet in `drop/`, as it comes and changes; an s3:// address works as well.
const worker = new Worker({ name: '{{name}}' })
worker.sync('orders', { database: worker.database('orders'), schedule: '5m', ...files({ folder: 'drop', key: 'order_id', settleMs: 1_000 }) })

export default worker
