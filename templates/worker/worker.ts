import { Worker } from 'tidemark'

// Two databases, each filled by a sync. Run it twice to see the changes:
//
//   npx tidemark run
//   npx tidemark query "select * from vessels limit 5"
//
// The source is a small simulated harbour at the end of this file, so it works without an account and a network.
// To read your own API, call it in `execute`: `context.fetch` is paced, limited in time and size, and aborts when you
// stop the run; `context.secrets.get('HARBOUR_TOKEN')` reads .env. Changes are validated and committed exactly once.

const worker = new Worker({ name: 'harbour' })

const vessels = worker.database('vessels')
const berths = worker.database('berths')

// At most 6,000 requests a minute, evenly spaced. Set the limit of your API; both syncs share it.
const pacer = worker.pacer('harbour-api', { allowedRequests: 6_000, intervalMs: 60_000 })

/** The time and the id of the last vessel that was read, because many may have moved in the same second. */
interface Cursor {
  movedAt: string
  id: string
}

const PAGE_SIZE = 50

/** A move may become visible this much later, so no cycle reads closer to now. Real APIs need 10 to 60 seconds. */
const LAG_MS = 2_000

// Incremental: each cycle returns the changes since the last one. `execute` receives the state that the previous page
// returned, in this cycle, in the next one and after a crash. Vessels are never deleted here. If your source deletes
// records, find them with a backfill or return `delete` changes: see worker.track.
// tidemark-ignore vessel-moves: missing-deletes
worker.sync<Cursor>('vessel-moves', {
  database: vessels,
  mode: 'incremental',
  schedule: '1m',
  pacer,
  async execute(state, { pacer, cycle }) {
    await pacer.wait() // `context.fetch` does this by itself.
    // Fixed for the whole cycle: later moves belong to the next cycle.
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

// Replace: each cycle returns all records, and other rows are swept. For sources without change tracking.
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
// A pure function of the current second. Delete it when you read a real source.

const STATUSES = ['at sea', 'arriving', 'moored', 'loading', 'departing']
const NAMES = ['Alcyone', 'Borealis', 'Cormorant', 'Doldrum', 'Ebb', 'Fulmar', 'Gannet', 'Halyard', 'Islander', 'Jetty', 'Kittiwake', 'Leeward']
const FLAGS = ['DK', 'GR', 'LR', 'MT', 'NO', 'PA', 'PT', 'SG']

const harbour = {
  /** Ordered by time of the move, then by id; only after the cursor, and not later than `until`. */
  vesselsMovedSince(after: Cursor | undefined, until: string, limit: number) {
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
