import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Requests that one connection may pipeline; a client that sends more is disconnected. */
const PIPELINED_MAX = 64

type PendingRequests = Array<readonly [IncomingMessage, ServerResponse]>

/**
 * Handles the requests of one connection sequentially. Node starts all pipelined requests at once and buffers their
 * responses in order, so a few connections could use unbounded memory.
 */
export function serializeRequests(handle: RequestListener): RequestListener {
  const connections = new WeakMap<Socket, PendingRequests>()
  const begin = (request: IncomingMessage, response: ServerResponse, waiting: PendingRequests): void => {
    response.once('close', () => {
      const next = waiting.shift()
      if (next === undefined || request.socket.destroyed) connections.delete(request.socket)
      else begin(...next, waiting)
    })
    handle(request, response)
  }
  return (request, response) => {
    const waiting = connections.get(request.socket)
    if (waiting === undefined) {
      const none: PendingRequests = []
      connections.set(request.socket, none)
      begin(request, response, none)
    } else if (waiting.length < PIPELINED_MAX) waiting.push([request, response])
    else request.socket.destroy()
  }
}
