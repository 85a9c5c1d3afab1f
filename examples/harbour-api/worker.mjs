import { SyncError, Worker } from 'tidemark'

/**
 * A backfill and a delta of one database, the usual setup for an API with change tracking:
 *
 *   vessels-backfill  lists everything, on request; rows that it does not return are swept
 *   vessels-delta     reads every minute the vessels that moved, then those that were scrapped
 *
 * Both set the source's own time of each record, so that their order does not matter.
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
    return { changes: page.map(toUpsert), hasMore: page.length === LIMIT, nextState: cursorAfter(page, 'moved_at') }
  },
})

worker.sync('vessels-delta', {
  database: vessels,
  mode: 'incremental',
  schedule: '1m',
  pacer,
  /** One cursor for each endpoint: neither can overtake the other. */
  async execute(state, context) {
    const { phase, moved, scrapped } = state ?? { phase: 'moved', moved: null, scrapped: null }
    const until = horizon(context)
    if (phase === 'moved') {
      const page = await ask(context, '/vessels', { after: moved, until })
      const next = cursorAfter(page, 'moved_at') ?? moved
      return {
        changes: page.map(toUpsert),
        hasMore: true,
        nextState: { phase: page.length === LIMIT ? 'moved' : 'scrapped', moved: next, scrapped },
      }
    }
    const page = await ask(context, '/scrapped', { after: scrapped, until })
    const next = cursorAfter(page, 'scrapped_at') ?? scrapped
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
  const query = new URLSearchParams({
    limit: String(LIMIT),
    until,
    ...(after && { after: after.at, after_id: after.id }),
  })
  const response = await fetch(`${HARBOUR}${path}?${query}`, {
    headers: { authorization: `Bearer ${secrets.get('HARBOUR_TOKEN')}` },
  })
  if (response.ok) return response.json()
  // The code decides what the engine does: retry, wait as requested, or stop until the token is renewed.
  const message = `the harbour API returned ${response.status}`
  if (response.status === 401) throw new SyncError('AUTH_REJECTED', message)
  if (response.status === 429)
    throw new SyncError('RATE_LIMITED', message, { retryAfterMs: Number(response.headers.get('retry-after')) * 1_000 })
  throw new SyncError('SOURCE_UNAVAILABLE', message)
}

/** Fixed for the whole cycle, also after a resume: later moves belong to the next cycle. */
function horizon({ cycle }) {
  return new Date(cycle.startedAt - LAG_MS).toISOString()
}

function toUpsert({ id, moved_at, ...rest }) {
  return { type: 'upsert', key: id, record: { id, ...rest, moved_at }, upstreamUpdatedAt: moved_at }
}

function cursorAfter(page, time) {
  const last = page.at(-1)
  return last === undefined ? null : { at: last[time], id: last.id }
}
