import type { FastifyRequest } from 'fastify'
import { serializeChange } from '../feed/serialize-item.ts'
import type { FeedPageRequest } from '../feed/read-feed-page.ts'
import { keyEndedError } from './authenticator.ts'
import { HttpError } from './http-error.ts'
import { readFeed } from './read-feed.ts'
import { createRequestLog, type RouteRequest } from './route.ts'
import { toHttpError } from './to-http-error.ts'

const HEARTBEAT_MS = 15_000
const PAGE_SIZE = 200
/** Concurrent streams per key. */
const STREAMS_MAX = 32

export function wantsStream({ method, headers }: FastifyRequest): boolean {
  return method === 'GET' && (headers.accept ?? '').split(',').some((type) => type.trim().toLowerCase().startsWith('text/event-stream'))
}

/**
 * Sends changes as server-sent events until either side closes. Each event's id is the cursor after it, so a client
 * that reconnects with `Last-Event-ID` continues there.
 */
export async function streamChanges(ask: RouteRequest, asked: FeedPageRequest, fields: readonly string[] | undefined): Promise<unknown> {
  const { caller, request, reply, context: hall } = ask
  const last = request.headers['last-event-id']
  const start: FeedPageRequest = { ...asked, limit: PAGE_SIZE, cursor: typeof last === 'string' && last !== '' ? last : asked.cursor }
  // The first page is read before the headers are sent, so that an invalid cursor gets an error response.
  let page = await readFeed(hall, caller.store, start)
  const who = caller.id ?? ''
  if ((hall.openStreams.get(who) ?? 0) >= STREAMS_MAX) throw new HttpError('RATE_LIMIT_EXCEEDED', `This key has ${STREAMS_MAX} streams open already. Close one.`, { headers: { 'retry-after': '15' } })
  hall.openStreams.set(who, (hall.openStreams.get(who) ?? 0) + 1)

  reply.hijack()
  const { raw } = reply
  const left = new AbortController()
  const followed = hall.authenticator.watchAccess(caller, 'changes:read')
  const over = AbortSignal.any([left.signal, followed.signal])
  let drained = new AbortController()
  raw.on('drain', () => drained.abort())
  raw.once('close', () => left.abort())
  over.addEventListener('abort', () => drained.abort())
  const say = async (text: string): Promise<void> => {
    if (over.aborted || raw.write(text)) return
    // Backpressure: waits for a slow reader instead of buffering, and disconnects one that reads nothing.
    drained = new AbortController()
    await hall.ports.clock.sleep(hall.timeoutMs, drained.signal).then(() => raw.destroy()).catch(() => {})
  }
  try {
    raw.writeHead(200, { ...toRawHeaders(reply.getHeaders()), 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' })
    raw.flushHeaders()
    for (;;) {
      for (const entry of page.entries) await say(`id: ${page.cursorAt(entry)}\nevent: change\ndata: ${serializeChange(entry, { fields, resourceTypes: hall.resourceTypes })}\n\n`)
      if (!page.hasMore) {
        // An id without an event: saves the reader's position and marks it as up to date, so that a quiet range is not
        // scanned again after a reconnect.
        await say(`: up to date\nid: ${page.nextCursor}\n\n`)
        await hall.feedHead.waitBeyond(caller.store, page.headSequence, HEARTBEAT_MS, over)
      }
      if (left.signal.aborted || hall.stopping.aborted) break
      if (!(await hall.authenticator.isStillValid(caller, 'changes:read'))) throw keyEndedError()
      page = await readFeed(hall, caller.store, { ...start, cursor: page.nextCursor, updatedSince: undefined })
    }
  } catch (thrown) {
    const error = toHttpError(thrown)
    if (error.status >= 500) createRequestLog(ask).warn('a stream of changes ended', { code: error.code })
    // Does not wait for a stalled reader once its key has ended.
    if (followed.signal.aborted && raw.writableNeedDrain) raw.destroy()
    else raw.write(`event: error\ndata: ${error.body(request.id)}\n\n`)
  } finally {
    followed.close()
    const count = (hall.openStreams.get(who) ?? 1) - 1
    if (count === 0) hall.openStreams.delete(who)
    else hall.openStreams.set(who, count)
    raw.end()
  }
  return reply
}

function toRawHeaders(headers: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined).map(([name, value]) => [name, String(value)]))
}
