// node bench/programs/embed-start.mjs tidemark|fastify <store url> <key>: the milliseconds from the first import to the
// first answer, in a new process.
const startedAt = performance.now()
const [kind, store, key] = process.argv.slice(2)
const status = kind === 'tidemark' ? await askTidemark() : await askFastify()
const ms = performance.now() - startedAt
if (status !== 200) throw new Error(`${kind} answered ${status}`)
console.log(JSON.stringify({ ms, cpuMs: (process.cpuUsage().user + process.cpuUsage().system) / 1_000 }))
process.exit(0)

async function askTidemark() {
  const { Worker } = await import('../../dist/index.js')
  const { createTidemark } = await import('../../dist/embed/index.js')
  const worker = new Worker({ name: 'bench' })
  worker.database('accounts')
  const tidemark = createTidemark({ store, workers: [worker], log: 'error' })
  const headers = { authorization: `Bearer ${key}` }
  const response = await tidemark.handler(new Request('http://app/agents/v1/changes?limit=1', { headers }))
  await response.text()
  return response.status
}

async function askFastify() {
  const { default: fastify } = await import('fastify')
  const app = fastify()
  app.get('/changes', async () => ({ data: [] }))
  return (await app.inject('/changes')).statusCode
}
