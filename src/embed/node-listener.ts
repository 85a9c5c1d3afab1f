import { randomUUID } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { HttpError } from '../server/http-error.ts'
import type { Server } from '../server/server.ts'
import { notMountedError, notOpenError, stripPrefix } from './mount-path.ts'

/** Express sets `baseUrl` on a request below a mounted path. */
interface MountedRequest extends IncomingMessage {
  readonly baseUrl?: string
}

/** Passes requests of a server of `node:http`, Express or Fastify on, without a copy. */
export function createNodeListener(open: () => Promise<Server>, prefix: string): RequestListener {
  return (request: MountedRequest, response: ServerResponse) => {
    const path = stripPrefix(request.url ?? '/', prefix, request.baseUrl !== undefined)
    if (path === null) return sendError(response, notMountedError(prefix))
    request.url = path
    open().then(
      ({ listener }) => listener(request, response),
      () => sendError(response, notOpenError()),
    )
  }
}

function sendError(response: ServerResponse, error: HttpError): void {
  response.writeHead(error.status, { 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' })
  response.end(error.body(randomUUID()))
}
