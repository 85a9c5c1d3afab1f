import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Below the ephemeral port range, from which a busy machine may take a port while the server starts or restarts. */
const PORT_RANGE = [10_000, 32_768] as const
const TRIES_MAX = 100

/** A port of the loopback interface that is free now. Another process may still take it before it is used. */
export async function findFreePort(): Promise<number> {
  for (let tries = 1; ; tries++) {
    const port = randomInt(...PORT_RANGE)
    const server = createServer()
    try {
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
      return port
    } catch (error) {
      if (tries === TRIES_MAX) throw error
    } finally {
      server.close()
    }
  }
}
