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
  const begin = (request: IncomingMessage, response: ServerResponse, pending: PendingRequests): void => {
    response.once('close', () => {
      const next = pending.shift()
      if (next === undefined || request.socket.destroyed) connections.delete(request.socket)
      else begin(...next, pending)
    })
    handle(request, response)
  }
  return (request, response) => {
    const pending = connections.get(request.socket)
    if (pending === undefined) {
      const empty: PendingRequests = []
      connections.set(request.socket, empty)
      begin(request, response, empty)
    } else if (pending.length < PIPELINED_MAX) pending.push([request, response])
    else request.socket.destroy()
  }
}
