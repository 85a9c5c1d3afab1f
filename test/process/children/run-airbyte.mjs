// One cycle of every stream of a manifest, one after the other.
import { input, openStore, run, report, Worker } from './child-runtime.mjs'

const { url, folder, config, names } = input
const { airbyte } = await import(`${input.dist}/sources/airbyte/source.js`)
const source = airbyte({ manifest: 'manifest.yaml', folder, config })
const worker = new Worker({ name: 'office' })
for (const name of names) worker.sync(name, { database: worker.database(name), ...source.stream(name, { lagMs: 0 }) })
const store = await openStore(url)
for (const name of names) {
  const { stopReason, resumed, counts, error } = await run(store, worker.plan(name))
  report('result', { name, stopReason, resumed, counts, error })
}
await store.close()
