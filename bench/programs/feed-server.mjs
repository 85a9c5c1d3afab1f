// node bench/programs/feed-server.mjs <store url> <entries> <databases> <entries of a commit>: serves the feed over
// this many entries, committed to the databases in turn. Prints its port, its key and queries that begin at several
// points.
import { createApiKey } from '../../dist/server/api-key.js'
import { createServer } from '../../dist/server/server.js'
import { Lander, landings, openBareStore } from '../lander.mjs'

const url = process.argv[2]
const [entries, databases, perCommit] = process.argv.slice(3).map(Number)
const store = await openBareStore(url, { thread: true })
const times = await fill()
const readMs = await readPages()
const { text, key } = createApiKey({ name: 'bench', scopes: ['*:read'], rateLimit: 1e12, createdAt: Date.now() })
await store.addApiKey(key)
const quiet = () => {}
const clock = { now: Date.now, sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) }
const ports = { clock, random: { next: Math.random }, log: { debug: quiet, info: quiet, warn: quiet, error: quiet } }
const server = createServer({ store, ports, version: '0.0.0' })
const { port } = new URL(await server.listen(0))
const since = (at) => `&updatedSince=${new Date(times[Math.floor(at)]).toISOString()}`
console.log(
  JSON.stringify({
    port: Number(port),
    key: text,
    readMs,
    starts: {
      // The page after the first requested one counts: the last full one.
      head: since(times.length - 2),
      middle: since(times.length / 2),
      spread: Array.from({ length: 8 }, (_, n) => since((times.length * n) / 8)),
    },
  }),
)
process.on('disconnect', () => process.exit(0))

/** When each commit was made. */
async function fill() {
  const lander = await Lander.take(store, 'feed')
  const names = Array.from({ length: databases }, (_, n) => `accounts_${n}`)
  const at = []
  for (let from = 0; from < entries; from += perCommit) {
    const database = names[(from / perCommit) % databases]
    await lander.cycle(landings(from, Math.min(perCommit, entries - from), 0, database), [database])
    at.push((await store.feed({ after: from, limit: 1, scanMax: 1 })).entries[0].committedAt)
  }
  await lander.release()
  return at
}

async function readPages() {
  const ms = []
  for (let n = 0; n < 100; n++) {
    const startedAt = performance.now()
    await store.feed({ after: (n * 7_919 * 101) % (entries - 100), limit: 100, scanMax: 1 })
    ms.push(performance.now() - startedAt)
  }
  return ms
}
