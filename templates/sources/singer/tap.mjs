// A minimal tap of the Singer protocol: issues of a project with one change every ten seconds.
// It receives its last state (--state), and writes the changes since then and the new state.
import { readFileSync } from 'node:fs'

const given = (flag) => (process.argv.includes(flag) ? JSON.parse(readFileSync(process.argv[process.argv.indexOf(flag) + 1], 'utf8')) : undefined)
const say = (message) => process.stdout.write(`${JSON.stringify(message)}\n`)

const stream = 'issues'
const schema = { type: 'object', properties: { id: { type: 'integer' }, title: { type: 'string' }, state: { type: 'string' }, updated_at: { type: 'string', format: 'date-time' } } }

if (process.argv.includes('--discover')) {
  const metadata = [{ breadcrumb: [], metadata: { 'table-key-properties': ['id'], 'valid-replication-keys': ['updated_at'], inclusion: 'available' } }]
  say({ streams: [{ tap_stream_id: stream, stream, schema, metadata }] })
} else {
  const since = given('--state')?.bookmarks?.[stream]?.updated_at ?? ''
  const changed = issues(Date.parse(given('--config').start_date), Date.now()).filter((issue) => issue.updated_at > since)
  say({ type: 'SCHEMA', stream, schema, key_properties: ['id'], bookmark_properties: ['updated_at'] })
  for (const record of changed) say({ type: 'RECORD', stream, record, time_extracted: new Date().toISOString() })
  say({ type: 'STATE', value: { bookmarks: { [stream]: { updated_at: changed.at(-1)?.updated_at ?? since } } } })
}

/** The current issues by time of change: forty initial ones, and one change every ten seconds since the start. */
function issues(start, now) {
  const all = new Map()
  const put = (id, state, at) => {
    all.delete(id)
    all.set(id, { id, title: `${['Check', 'Paint', 'Repair', 'Move'][id % 4]} the ${['anchor', 'beacon', 'crane', 'dock', 'ferry'][id % 5]}`, state, updated_at: new Date(at).toISOString() })
  }
  for (let id = 1; id <= 40; id++) put(id, 'open', start - (41 - id) * 60_000)
  for (let n = 0; n < 500 && start + n * 10_000 <= now; n++) put(n % 3 === 2 ? 41 + Math.floor(n / 3) : 1 + ((n * 7) % 40), n % 2 === 0 ? 'closed' : 'open', start + n * 10_000)
  return [...all.values()]
}
