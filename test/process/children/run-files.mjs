// One incremental cycle over a folder or a bucket of files; it stops before the page `holdAt`.
import { input, openStore, run, report, waitForMessage, Worker } from './child-runtime.mjs'

const { url, folder, bucket, pageSize, settleMs = 0, holdAt = 0 } = input
const { files, s3Folder } = await import(`${input.dist}/sources/files/source.js`)
const stream = files({ folder: bucket === undefined ? folder : s3Folder(bucket), pageSize, settleMs })
const worker = new Worker({ name: 'office' })
worker.sync('items', {
  database: worker.database('items'),
  ...stream,
  async execute(state, context) {
    if (context.cycle.page === holdAt) await waitForMessage()
    return stream.execute(state, context)
  },
})
const store = await openStore(url)
const { stopReason, resumed, counts, error } = await run(store, worker.plan('items'), {
  onProgress: ({ kind, page }) => report(kind, { page }),
})
await store.close()
report('result', { stopReason, resumed, counts, error })
