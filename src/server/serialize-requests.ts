import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Requests that one connection may send ahead; a client that sends more is cut off. */
const PIPELINED_MAX = 64

type PendingRequests = Array<readonly [IncomingMessage, ServerResponse]>

/**
 * Answers the requests of one connection one after the other. Node begins all that a client has pipelined at once and keeps
 * their answers in memory until their turn comes, so a few connections could take as much of it as they like.
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
