import { createServer } from 'node:http'

/**
 * The API of a harbour on this machine, with the behaviour of a real one: a token, pages ordered by (moved_at, id), 429
 * above the rate limit, a separate endpoint for scrapped vessels, and an occasional 503.
 *
 *   node server.mjs [port]
 */
const TOKEN = process.env.HARBOUR_TOKEN ?? 'let-me-in'
const REQUESTS_PER_SECOND = 50
/** No moves and no refusals: for `tidemark sim`, which injects its own faults. */
const isCalm = process.env.HARBOUR_CALM === '1'

const startedAt = Date.now()
const vessels = new Map(
  Array.from({ length: 500 }, (_, number) => {
    const id = `V${String(number + 1).padStart(4, '0')}`
    // Many vessels moved in the same second: a page may end within it.
    return [
      id,
      {
        id,
        name: `Vessel ${number + 1}`,
        berth: number % 40,
        moved_at: new Date(startedAt - (500 - number) * 100).toISOString().replace(/\.\d+Z/, '.000Z'),
      },
    ]
  }),
)
const scrapped = []
let requests = []
let asked = 0

/** Twice a second a vessel moves; one in twenty is scrapped instead. */
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
  const answer = (status, body, headers = {}) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  if (request.headers.authorization !== `Bearer ${TOKEN}`) return answer(401, { error: 'unauthorized' })
  const now = Date.now()
  requests = [...requests.filter((at) => at > now - 1_000), now]
  if (!isCalm && requests.length > REQUESTS_PER_SECOND)
    return answer(429, { error: 'too many requests' }, { 'retry-after': '1' })
  if (++asked % 17 === 0 && !isCalm) return answer(503, { error: 'unavailable' })
  const url = new URL(request.url, 'http://localhost')
  const limit = Math.min(Number(url.searchParams.get('limit') ?? 50), 100)
  const after = { at: url.searchParams.get('after') ?? '', id: url.searchParams.get('after_id') ?? '' }
  const until = url.searchParams.get('until') ?? '9999'
  const page = (records, time) =>
    records
      .filter(
        (record) =>
          record[time] <= until && (record[time] > after.at || (record[time] === after.at && record.id > after.id)),
      )
      .toSorted((a, b) => (a[time] === b[time] ? (a.id < b.id ? -1 : 1) : a[time] < b[time] ? -1 : 1))
      .slice(0, limit)
  if (url.pathname === '/vessels') return answer(200, page([...vessels.values()], 'moved_at'))
  if (url.pathname === '/scrapped') return answer(200, page(scrapped, 'scrapped_at'))
  answer(404, { error: 'not found' })
})

server.listen(Number(process.argv[2] ?? 4010), '127.0.0.1', () =>
  console.log(`listening on http://127.0.0.1:${server.address().port}`),
)
