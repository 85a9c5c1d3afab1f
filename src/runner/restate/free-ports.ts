import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { SyncError } from '../../contract/index.ts'

/** Below the ephemeral port range, from which a busy machine may take a port while the server starts or restarts. */
const PORT_RANGE = [10_000, 32_768] as const
const TRIES_MAX = 100

/**
 * Returns the requested ports, and a free one for each that is absent or 0. All are bound at the same time, so no two
 * are equal. Another process may still take one before it is used.
 */
export async function findFreePorts(requested: ReadonlyArray<number | undefined>): Promise<number[]> {
  const servers: Server[] = []
  try {
    for (const port of requested)
      servers.push(port === undefined || port === 0 ? await listenOnRandomPort() : await listen(port))
    return servers.map((server) => (server.address() as { port: number }).port)
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  }
}

async function listenOnRandomPort(): Promise<Server> {
  for (let tries = 1; ; tries++) {
    try {
      return await listen(randomInt(...PORT_RANGE))
    } catch (error) {
      if (tries === TRIES_MAX) throw error
    }
  }
}

async function listen(port: number): Promise<Server> {
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return server
  } catch (error) {
    throw new SyncError(
      'PORT_TAKEN',
      `Restate cannot listen on 127.0.0.1:${port} (${(error as NodeJS.ErrnoException).code ?? 'unknown error'}).`,
      { cause: error },
    )
  }
}
