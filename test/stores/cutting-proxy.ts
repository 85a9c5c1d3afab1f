import { connect, createServer, type Socket } from 'node:net'

/**
 * When the connection is cut: as COMMIT arrives, before the server receives it; or after the server has answered it.
 */
export type Cut = 'before COMMIT' | 'after COMMIT'

export interface CuttingProxy {
  readonly url: string
  cutNext(cut: Cut): void
  /** From now on no data passes over the open connections, and neither side is notified. */
  freeze(): void
  close(): Promise<void>
}

/** A proxy between a store and its server that fails like a network. */
export async function startCuttingProxy(target: string): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let armed: Cut | null = null
  const freezers = new Set<() => void>()
  const proxy = createServer((client) => {
    const server = connect(Number(port), hostname)
    let cutting = false
    let frozen = false
    freezers.add(() => void (frozen = true))
    const cut = () => [client, server].forEach((socket) => socket.destroy())
    for (const socket of [client, server]) {
      sockets.add(socket)
      socket.on('error', cut)
      socket.on('close', cut)
    }
    client.on('data', (chunk) => {
      if (frozen) return
      if (armed !== null && chunk.includes('commit\0')) {
        const when = armed
        armed = null
        if (when === 'before COMMIT') return cut()
        cutting = true
      }
      server.write(chunk)
    })
    server.on('data', (chunk) => {
      if (frozen) return
      // Answers to earlier statements may come first.
      if (cutting && chunk.includes('COMMIT\0')) return cut()
      client.write(chunk)
    })
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  return {
    url: Object.assign(new URL(target), { port: String((proxy.address() as { port: number }).port) }).href,
    cutNext: (cut) => void (armed = cut),
    freeze: () => freezers.forEach((freeze) => freeze()),
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => proxy.close(resolve))
    },
  }
}
