import { Worker } from 'tidemark'

// Two databases, each filled by a sync. Run it twice and see what moved:
//
//   npx tidemark run
//   npx tidemark query "select * from vessels limit 5"
//
// The source is a small harbour at the end of this file, so that all of this works without an account and a network.
// To read an API of your own, let `execute` ask it: `context.fetch` is paced, bounded in time and size, and stops when
// you do; `context.secrets.get('HARBOUR_TOKEN')` reads .env. What comes in is checked, landed and never written twice.

const worker = new Worker({ name: 'harbour' })

const vessels = worker.database('vessels')
const berths = worker.database('berths')

// At most 6,000 requests a minute, evenly spaced. Put in what your API allows; both syncs share it.
const pacer = worker.pacer('harbour-api', { allowedRequests: 6_000, intervalMs: 60_000 })

/** Where the last page ended: the time and the id of its last vessel, because many may have moved in the same second. */
interface Position {
  movedAt: string
  id: string
}

const PAGE_SIZE = 50

/** A move may become visible this long after its time. Real APIs need 10 to 60 seconds; no cycle reads beyond it. */
const LAG_MS = 2_000

// Incremental: each cycle returns what changed since the last one. The state you return with a page is what the next
// page is asked with, in this cycle, in the next one and after a crash. Vessels are never deleted here; where records
// are, a backfill has to find it, or a `delete` change has to tell: see worker.track.
// tidemark-ignore vessel-moves: missing-deletes
worker.sync<Position>('vessel-moves', {
  database: vessels,
  mode: 'incremental',
  schedule: '1m',
  pacer,
  async execute(state, { pacer, cycle }) {
    await pacer.wait() // `context.fetch` does this by itself.
    // Fixed for the whole cycle: what moves while we read belongs to the next one.
    const until = new Date(cycle.startedAt - LAG_MS).toISOString()
    const page = harbour.vesselsMovedSince(state, until, PAGE_SIZE)
    const last = page.at(-1)
    return {
      changes: page.map((vessel) => ({ type: 'upsert', key: vessel.id, record: { ...vessel }, upstreamUpdatedAt: vessel.movedAt })),
      hasMore: page.length === PAGE_SIZE,
      nextState: last === undefined ? state : { movedAt: last.movedAt, id: last.id },
    }
  },
})

// Replace: each cycle returns all there is, and rows it did not return are swept. For sources that cannot tell what changed.
worker.sync('berth-list', {
  database: berths,
  mode: 'replace',
  schedule: '5m',
  pacer,
  async execute(_state, { pacer, clock }) {
    await pacer.wait()
    return {
      changes: harbour.openBerths(clock.now()).map((berth) => ({ type: 'upsert', key: berth.id, record: { ...berth } })),
      hasMore: false,
    }
  },
})

export default worker

// ── The harbour: 240 vessels that move now and then, 24 berths of which one is closed each minute ──────────────────────
// The same for everybody at the same second. Throw it away when you read from something real.

const STATUSES = ['at sea', 'arriving', 'moored', 'loading', 'departing']
const NAMES = ['Alcyone', 'Borealis', 'Cormorant', 'Doldrum', 'Ebb', 'Fulmar', 'Gannet', 'Halyard', 'Islander', 'Jetty', 'Kittiwake', 'Leeward']
const FLAGS = ['DK', 'GR', 'LR', 'MT', 'NO', 'PA', 'PT', 'SG']

const harbour = {
  /** In the order they moved, then by id; only after the position, and not later than `until`. */
  vesselsMovedSince(after: Position | undefined, until: string, limit: number) {
    return Array.from({ length: 240 }, (_, number) => vesselAt(number, Date.parse(until)))
      .filter(({ movedAt, id }) => after === undefined || movedAt > after.movedAt || (movedAt === after.movedAt && id > after.id))
      .toSorted((a, b) => (a.movedAt === b.movedAt ? (a.id < b.id ? -1 : 1) : a.movedAt < b.movedAt ? -1 : 1))
      .slice(0, limit)
  },

  openBerths(now: number) {
    const minute = Math.floor(now / 60_000)
    return Array.from({ length: 24 }, (_, number) => number)
      .filter((number) => (minute + number) % 24 !== 0)
      .map((number) => ({ id: `B${String(number + 1).padStart(2, '0')}`, quay: 'NESW'[number % 4]!, lengthMetres: 80 + (number * 37) % 220 }))
  },
}

function vesselAt(number: number, now: number) {
  const periodMs = (20 + (number * number * 7) % 2_400) * 1_000
  const moves = Math.floor((now - number * 1_000) / periodMs)
  return {
    id: `V${String(number + 1).padStart(3, '0')}`,
    name: `${NAMES[number % NAMES.length]} ${Math.floor(number / NAMES.length) + 1}`,
    flag: FLAGS[number % FLAGS.length]!,
    status: STATUSES[(moves + number) % STATUSES.length]!,
    movedAt: new Date(moves * periodMs + number * 1_000).toISOString(),
  }
}
