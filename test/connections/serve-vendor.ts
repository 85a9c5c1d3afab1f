import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** A vendor without OAuth on a loopback port. */
export async function serveVendor(
  listener: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<string> {
  const server = createServer((request, response) => void listener(request, response)).listen(0, '127.0.0.1')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
