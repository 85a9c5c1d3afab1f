// node bench/programs/embed-server.mjs <store url> <entries> start|listener|fetch: serves the feed as `tidemark start`
// does, by the listener of an embedded instance, or by its Fetch handler behind a minimal server. Prints its port, a key
// and the query of a page.
import { createServer } from 'node:http'
import { Worker } from '../../dist/index.js'
import { createRuntime } from '../../dist/embed/create-runtime.js'
import { createTidemark } from '../../dist/embed/index.js'
import { openService } from '../../dist/embed/service.js'
import { openStore } from '../../dist/stores/open-store.js'
import { Lander, landings, openBareStore } from '../lander.mjs'

const [url, entries, mode] = process.argv.slice(2)
const PER_COMMIT = 1_000
await fill(Number(entries))
const worker = new Worker({ name: 'bench' })
worker.database('accounts')
const tidemark = createTidemark({ store: url, workers: [worker], log: 'error' })
const { text } = await tidemark.keys.create({ name: 'bench', rateLimit: 1_000_000_000 })
const port = mode === 'start' ? await serveLikeStart() : await listen(mode)
console.log(JSON.stringify({ port, key: text, starts: { middle: '' } }))
process.on('disconnect', () => process.exit(0))

async function fill(count) {
  const store = await openBareStore(url)
  if ((await store.headSequence()) === 0) {
    const lander = await Lander.take(store, 'feed')
    for (let from = 0; from < count; from += PER_COMMIT)
      await lander.cycle(landings(from, Math.min(PER_COMMIT, count - from)), ['accounts'])
    await lander.release()
  }
  await store.close()
}

async function serveLikeStart() {
  const store = await openStore(url)
  const service = await openService({
    workers: [worker],
    store,
    sourceRuntime: await createRuntime({ store: url, workers: [worker], log: 'error' }),
    concurrency: 4,
    api: { address: { host: '127.0.0.1', port: 0 }, keysOnly: true },
    onEvent: () => {},
  })
  return Number(new URL(service.api.url).port)
}

async function listen(kind) {
  const server = createServer(kind === 'listener' ? tidemark.nodeListener : passToHandler)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server.address().port
}

async function passToHandler(incoming, outgoing) {
  const response = await tidemark.handler(new Request(`http://app${incoming.url}`, { headers: incoming.headers }))
  outgoing.writeHead(response.status, Object.fromEntries(response.headers))
  outgoing.end(Buffer.from(await response.arrayBuffer()))
}
