import { SyncError, Worker } from 'tidemark'

/**
 * A backfill and a delta of one database, as most APIs with change tracking want them:
 *
 *   vessels-backfill  lists everything, when asked to; what it no longer finds is swept
 *   vessels-delta     asks every minute for what moved, then for what was scrapped
 *
 * Both tell the source's own time of each record, so that it does not matter which of them comes first.
 */
const HARBOUR = process.env.HARBOUR_URL ?? 'http://127.0.0.1:4010'
const LIMIT = 100
/** A record may become visible this long after its time. */
const LAG_MS = 2_000

const worker = new Worker({ name: 'harbour' })
const vessels = worker.database('vessels')
const pacer = worker.pacer('harbour-api', { allowedRequests: 40, intervalMs: 1_000 })

worker.sync('vessels-backfill', {
  database: vessels,
  mode: 'replace',
  schedule: 'manual',
  pacer,
  async execute(state, context) {
    const page = await ask(context, '/vessels', { after: state, until: horizon(context) })
    return { changes: page.map(toUpsert), hasMore: page.length === LIMIT, nextState: positionAfter(page, 'moved_at') }
  },
})

worker.sync('vessels-delta', {
  database: vessels,
  mode: 'incremental',
  schedule: '1m',
  pacer,
  /** Two positions, one for each endpoint: neither can overtake the other. */
  async execute(state, context) {
    const { phase, moved, scrapped } = state ?? { phase: 'moved', moved: null, scrapped: null }
    const until = horizon(context)
    if (phase === 'moved') {
      const page = await ask(context, '/vessels', { after: moved, until })
      const next = positionAfter(page, 'moved_at') ?? moved
      return { changes: page.map(toUpsert), hasMore: true, nextState: { phase: page.length === LIMIT ? 'moved' : 'scrapped', moved: next, scrapped } }
    }
    const page = await ask(context, '/scrapped', { after: scrapped, until })
    const next = positionAfter(page, 'scrapped_at') ?? scrapped
    const hasMore = page.length === LIMIT
    return {
      changes: page.map(({ id, scrapped_at }) => ({ type: 'delete', key: id, upstreamUpdatedAt: scrapped_at })),
      hasMore,
      nextState: { phase: hasMore ? 'scrapped' : 'moved', moved, scrapped: next },
    }
  },
})

export default worker

async function ask({ fetch, secrets }, path, { after, until }) {
  const query = new URLSearchParams({ limit: String(LIMIT), until, ...(after && { after: after.at, after_id: after.id }) })
  const response = await fetch(`${HARBOUR}${path}?${query}`, { headers: { authorization: `Bearer ${secrets.get('HARBOUR_TOKEN')}` } })
  if (response.ok) return response.json()
  // A code tells the engine what to do: try again, wait as long as asked, or stop until somebody renews the token.
  const said = `the harbour answered ${response.status}`
  if (response.status === 401) throw new SyncError('AUTH_REJECTED', said)
  if (response.status === 429) throw new SyncError('RATE_LIMITED', said, { retryAfterMs: Number(response.headers.get('retry-after')) * 1_000 })
  throw new SyncError('SOURCE_UNAVAILABLE', said)
}

/** Fixed for the whole cycle, also when it is resumed: what moves meanwhile belongs to the next one. */
function horizon({ cycle }) {
  return new Date(cycle.startedAt - LAG_MS).toISOString()
}

function toUpsert({ id, moved_at, ...rest }) {
  return { type: 'upsert', key: id, record: { id, ...rest, moved_at }, upstreamUpdatedAt: moved_at }
}

function positionAfter(page, time) {
  const last = page.at(-1)
  return last === undefined ? null : { at: last[time], id: last.id }
}
