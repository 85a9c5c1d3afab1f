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
  return (
    method === 'GET' &&
    (headers.accept ?? '').split(',').some((type) => type.trim().toLowerCase().startsWith('text/event-stream'))
  )
}

/**
 * Sends changes as server-sent events until either side closes. Each event's id is the cursor after it, so a client
 * that reconnects with `Last-Event-ID` continues there.
 */
export async function streamChanges(
  routeRequest: RouteRequest,
  pageRequest: FeedPageRequest,
  fields: readonly string[] | undefined,
): Promise<unknown> {
  const { caller, request, reply, context } = routeRequest
  const last = request.headers['last-event-id']
  const start: FeedPageRequest = {
    ...pageRequest,
    limit: PAGE_SIZE,
    cursor: typeof last === 'string' && last !== '' ? last : pageRequest.cursor,
  }
  // The first page is read before the headers are sent, so that an invalid cursor gets an error response.
  let page = await readFeed(context, caller.store, start)
  const streamOwner = caller.id ?? ''
  if ((context.openStreams.get(streamOwner) ?? 0) >= STREAMS_MAX)
    throw new HttpError('RATE_LIMIT_EXCEEDED', `This key already has ${STREAMS_MAX} open streams. Close one.`, {
      headers: { 'retry-after': '15' },
    })
  context.openStreams.set(streamOwner, (context.openStreams.get(streamOwner) ?? 0) + 1)

  reply.hijack()
  const { raw } = reply
  const disconnected = new AbortController()
  const access = context.authenticator.watchAccess(caller, 'changes:read')
  const ended = AbortSignal.any([disconnected.signal, access.signal])
  let drained = new AbortController()
  raw.on('drain', () => drained.abort())
  raw.once('close', () => disconnected.abort())
  ended.addEventListener('abort', () => drained.abort())
  const write = async (text: string): Promise<void> => {
    if (ended.aborted || raw.write(text)) return
    // Backpressure: waits for a slow reader instead of buffering, and disconnects one that reads nothing.
    drained = new AbortController()
    await context.ports.clock
      .sleep(context.timeoutMs, drained.signal)
      .then(() => raw.destroy())
      .catch(() => {})
  }
  try {
    raw.writeHead(200, {
      ...toRawHeaders(reply.getHeaders()),
      'content-type': 'text/event-stream; charset=utf-8',
      'x-accel-buffering': 'no',
    })
    raw.flushHeaders()
    for (;;) {
      for (const entry of page.entries)
        await write(
          `id: ${page.cursorAt(entry)}\nevent: change\ndata: ${serializeChange(entry, { fields, resourceTypes: context.resourceTypes })}\n\n`,
        )
      if (!page.hasMore) {
        // An id without an event: saves the reader's position and marks it as up to date, so that a quiet range is not
        // scanned again after a reconnect.
        await write(`: up to date\nid: ${page.nextCursor}\n\n`)
        await context.feedHead.waitBeyond(caller.store, page.headSequence, HEARTBEAT_MS, ended)
      }
      if (disconnected.signal.aborted || context.stopping.aborted) break
      if (!(await context.authenticator.isStillValid(caller, 'changes:read'))) throw keyEndedError()
      page = await readFeed(context, caller.store, { ...start, cursor: page.nextCursor, updatedSince: undefined })
    }
  } catch (thrown) {
    const error = toHttpError(thrown)
    if (error.status >= 500) createRequestLog(routeRequest).warn('change stream failed', { code: error.code })
    // Does not wait for a stalled reader once its key has ended.
    if (access.signal.aborted && raw.writableNeedDrain) raw.destroy()
    else raw.write(`event: error\ndata: ${error.body(request.id)}\n\n`)
  } finally {
    access.close()
    const count = (context.openStreams.get(streamOwner) ?? 1) - 1
    if (count === 0) context.openStreams.delete(streamOwner)
    else context.openStreams.set(streamOwner, count)
    raw.end()
  }
  return reply
}

function toRawHeaders(headers: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, String(value)]),
  )
}
