import { createServer, type IncomingMessage, type Server } from 'node:http'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'

/** Serves a Fetch handler with `node:http`. */
export function serveFetch(handle: (request: Request) => Response | Promise<Response>): Server {
  return createServer((incoming, outgoing) => {
    const gone = new AbortController()
    outgoing.once('close', () => gone.abort())
    void Promise.resolve(handle(toRequest(incoming, gone.signal))).then((response) => {
      outgoing.statusCode = response.status
      for (const [name, value] of response.headers) if (name !== 'set-cookie') outgoing.setHeader(name, value)
      outgoing.setHeader('set-cookie', response.headers.getSetCookie())
      if (response.body === null) return outgoing.end()
      const body = Readable.fromWeb(response.body as ReadableStream)
      body.on('error', () => outgoing.destroy()).pipe(outgoing)
      outgoing.once('close', () => body.destroy())
    })
  })
}

function toRequest(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = 'GET', headers, url = '/' } = incoming
  const hasBody = method !== 'GET' && method !== 'HEAD'
  return new Request(`http://${headers.host ?? 'localhost'}${url}`, {
    method,
    headers: headers as Record<string, string>,
    signal,
    ...(hasBody && { body: Readable.toWeb(incoming), duplex: 'half' }),
  } as RequestInit)
}
