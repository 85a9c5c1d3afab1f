import type { FastifyRequest } from 'fastify'
import { changeText } from '../feed/item.ts'
import type { PageRequest } from '../feed/read-page.ts'
import { keyEnded } from './callers.ts'
import { HttpError } from './http-error.ts'
import { readFeed } from './read-feed.ts'
import { logOf, type Ask } from './route.ts'
import { toHttpError } from './to-http-error.ts'

const BEAT_MS = 15_000
const PAGE = 200
/** Streams of one key at once. */
const STREAMS_MAX = 32

export function wantsStream({ method, headers }: FastifyRequest): boolean {
  return method === 'GET' && (headers.accept ?? '').split(',').some((type) => type.trim().toLowerCase().startsWith('text/event-stream'))
}

/**
 * The changes as server-sent events, one by one, for as long as both sides like. Every event carries the cursor after it
 * as its id: whoever comes back with `Last-Event-ID` goes on from there.
 */
export async function streamChanges(ask: Ask, asked: PageRequest, fields: readonly string[] | undefined): Promise<unknown> {
  const { caller, request, reply, hall } = ask
  const last = request.headers['last-event-id']
  const start: PageRequest = { ...asked, limit: PAGE, cursor: typeof last === 'string' && last !== '' ? last : asked.cursor }
  // The first page is read before anything is said, so that a cursor that is not valid gets a proper answer.
  let page = await readFeed(hall, caller.store, start)
  const who = caller.id ?? ''
  if ((hall.streams.get(who) ?? 0) >= STREAMS_MAX) throw new HttpError('RATE_LIMIT_EXCEEDED', `This key has ${STREAMS_MAX} streams open already. Close one.`, { headers: { 'retry-after': '15' } })
  hall.streams.set(who, (hall.streams.get(who) ?? 0) + 1)

  reply.hijack()
  const { raw } = reply
  const left = new AbortController()
  const followed = hall.callers.follow(caller, 'changes:read')
  const over = AbortSignal.any([left.signal, followed.signal])
  let drained = new AbortController()
  raw.on('drain', () => drained.abort())
  raw.once('close', () => left.abort())
  over.addEventListener('abort', () => drained.abort())
  const say = async (text: string): Promise<void> => {
    if (over.aborted || raw.write(text)) return
    // A reader that does not keep up is waited for, not remembered for; one that takes nothing at all is left.
    drained = new AbortController()
    await hall.ports.clock.sleep(hall.patienceMs, drained.signal).then(() => raw.destroy()).catch(() => {})
  }
  try {
    raw.writeHead(200, { ...outgoing(reply.getHeaders()), 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' })
    raw.flushHeaders()
    for (;;) {
      for (const entry of page.entries) await say(`id: ${page.cursorAt(entry)}\nevent: change\ndata: ${changeText(entry, { fields, resourceTypes: hall.resourceTypes })}\n\n`)
      if (!page.hasMore) {
        // No event, but the reader's place, and that there is no more: so a quiet stretch is not read again after a break.
        await say(`: up to date\nid: ${page.nextCursor}\n\n`)
        await hall.tide.wait(caller.store, page.position, BEAT_MS, over)
      }
      if (left.signal.aborted || hall.stopping.aborted) break
      if (!(await hall.callers.isStillValid(caller, 'changes:read'))) throw keyEnded()
      page = await readFeed(hall, caller.store, { ...start, cursor: page.nextCursor, updatedSince: undefined })
    }
  } catch (thrown) {
    const error = toHttpError(thrown)
    if (error.status >= 500) logOf(ask).warn('a stream of changes ended', { code: error.code })
    // A reader that is not taking anything is not waited for once its key has ended.
    if (followed.signal.aborted && raw.writableNeedDrain) raw.destroy()
    else raw.write(`event: error\ndata: ${error.body(request.id)}\n\n`)
  } finally {
    followed.close()
    const count = (hall.streams.get(who) ?? 1) - 1
    if (count === 0) hall.streams.delete(who)
    else hall.streams.set(who, count)
    raw.end()
  }
  return reply
}

function outgoing(headers: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined).map(([name, value]) => [name, String(value)]))
}
