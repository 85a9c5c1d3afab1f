import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { SyncError } from '../../contract/index.ts'

/**
 * The wanted ports of this machine, and any free one for each that is not named (absent or 0). All are tried at once, so
 * that no two are the same; somebody else may still be quicker between this and their use.
 */
export async function freePorts(wanted: ReadonlyArray<number | undefined>): Promise<number[]> {
  const servers: Server[] = []
  try {
    for (const port of wanted) {
      const server = createServer()
      servers.push(server)
      await listen(server, port ?? 0)
    }
    return servers.map((server) => (server.address() as { port: number }).port)
  } finally {
    await Promise.all(servers.filter(({ listening }) => listening).map((server) => new Promise((resolve) => server.close(resolve))))
  }
}

async function listen(server: Server, port: number): Promise<void> {
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  } catch (error) {
    throw new SyncError('PORT_TAKEN', `Restate cannot listen at 127.0.0.1:${port} (${(error as NodeJS.ErrnoException).code ?? 'unknown error'}).`, { cause: error })
  }
}
