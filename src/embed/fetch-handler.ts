import { randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import type { HttpError } from '../server/http-error.ts'
import type { Server } from '../server/server.ts'
import { notMountedError, notOpenError, stripPrefix } from './mount-path.ts'

/** Answers a Fetch request. `remoteAddress` is the client's, for the rate limit of failed authentications. */
export type FetchHandler = (request: Request, client?: { readonly remoteAddress?: string }) => Promise<Response>

/** The largest body that a route accepts, and one byte, so that the route itself refuses a longer one. */
const BODY_MAX_BYTES = 1_048_576 + 1

/** Passes Fetch requests on to the server, and streams its responses. */
export function createFetchHandler(open: () => Promise<Server>, prefix: string): FetchHandler {
  return async (request, { remoteAddress = '0.0.0.0' } = {}) => {
    const { pathname, search } = new URL(request.url)
    const url = stripPrefix(`${pathname}${search}`, prefix, false)
    if (url === null) return toErrorResponse(notMountedError(prefix))
    const server = await open().catch(() => null)
    if (server === null) return toErrorResponse(notOpenError())
    const response = await server.app.inject({
      method: request.method as 'GET',
      url,
      headers: Object.fromEntries(request.headers),
      remoteAddress,
      payloadAsStream: true,
      signal: request.signal,
      ...(request.body !== null && { payload: await readBody(request.body) }),
    })
    const raw = response.raw.res
    const headers = toHeaders(response.headers)
    if (request.method === 'HEAD' || response.statusCode === 204 || response.statusCode === 304) {
      response.stream().resume()
      return new Response(null, { status: response.statusCode, headers })
    }
    const body = response.stream()
    // A route that streams stops when its connection closes.
    body.once('close', () => raw.destroy())
    return new Response(toWebStream(body), { status: response.statusCode, headers })
  }
}

/** `Readable.toWeb` of Node 20 throws outside of every handler if the reader cancels while a chunk arrives. */
function toWebStream(body: Readable): ReadableStream<Uint8Array> {
  const chunks = body.iterator() as AsyncIterator<Buffer>
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await chunks.next()
      if (done === true) controller.close()
      else controller.enqueue(new Uint8Array(value))
    },
    cancel() {
      body.destroy()
    },
  })
}

/** Reads no more than a route accepts. */
async function readBody(body: ReadableStream<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= BODY_MAX_BYTES) break
  }
  return Buffer.concat(chunks)
}

function toHeaders(given: Readonly<Record<string, string | number | readonly string[] | undefined>>): Headers {
  const headers = new Headers()
  for (const [name, value] of Object.entries(given)) {
    // The host's server frames the body itself.
    if (value === undefined || name === 'connection' || name === 'transfer-encoding' || name === 'keep-alive') continue
    for (const one of [value].flat()) headers.append(name, String(one))
  }
  return headers
}

function toErrorResponse(error: HttpError): Response {
  return new Response(error.body(randomUUID()), {
    status: error.status,
    headers: { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' },
  })
}
