import { createServer } from 'node:http'

/**
 * A harbour's API on this machine, with the manners of a real one: a token, pages ordered by (moved_at, id), 429 for the
 * impatient, a list of what was scrapped on an endpoint of its own, and now and then a 503.
 *
 *   node server.mjs [port]
 */
const TOKEN = process.env.HARBOUR_TOKEN ?? 'let-me-in'
const REQUESTS_PER_SECOND = 50
/** Nobody sails and nobody is refused: for `tidemark sim`, which brings trouble of its own. */
const isCalm = process.env.HARBOUR_CALM === '1'

const startedAt = Date.now()
const vessels = new Map(Array.from({ length: 500 }, (_, number) => {
  const id = `V${String(number + 1).padStart(4, '0')}`
  // Many moved in the same second: a page may end in the middle of it.
  return [id, { id, name: `Vessel ${number + 1}`, berth: number % 40, moved_at: new Date(startedAt - (500 - number) * 100).toISOString().replace(/\.\d+Z/, '.000Z') }]
}))
const scrapped = []
let requests = []
let asked = 0

/** Somebody sails twice a second; one in twenty for the last time. */
setInterval(() => {
  if (isCalm) return
  const ids = [...vessels.keys()]
  const vessel = vessels.get(ids[Math.floor(Math.random() * ids.length)])
  const moved_at = new Date().toISOString()
  if (Math.random() < 0.05) {
    vessels.delete(vessel.id)
    scrapped.push({ id: vessel.id, scrapped_at: moved_at })
  } else vessels.set(vessel.id, { ...vessel, berth: (vessel.berth + 1) % 40, moved_at })
}, 500).unref()

const server = createServer((request, response) => {
  const answer = (status, body, headers = {}) => response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  if (request.headers.authorization !== `Bearer ${TOKEN}`) return answer(401, { error: 'who are you?' })
  const now = Date.now()
  requests = [...requests.filter((at) => at > now - 1_000), now]
  if (!isCalm && requests.length > REQUESTS_PER_SECOND) return answer(429, { error: 'slow down' }, { 'retry-after': '1' })
  if (++asked % 17 === 0 && !isCalm) return answer(503, { error: 'low tide' })
  const url = new URL(request.url, 'http://localhost')
  const limit = Math.min(Number(url.searchParams.get('limit') ?? 50), 100)
  const after = { at: url.searchParams.get('after') ?? '', id: url.searchParams.get('after_id') ?? '' }
  const until = url.searchParams.get('until') ?? '9999'
  const page = (records, time) => records
    .filter((record) => record[time] <= until && (record[time] > after.at || (record[time] === after.at && record.id > after.id)))
    .toSorted((a, b) => (a[time] === b[time] ? (a.id < b.id ? -1 : 1) : a[time] < b[time] ? -1 : 1))
    .slice(0, limit)
  if (url.pathname === '/vessels') return answer(200, page([...vessels.values()], 'moved_at'))
  if (url.pathname === '/scrapped') return answer(200, page(scrapped, 'scrapped_at'))
  answer(404, { error: 'no such place' })
})

server.listen(Number(process.argv[2] ?? 4010), '127.0.0.1', () => console.log(`the harbour answers at http://127.0.0.1:${server.address().port}`))
